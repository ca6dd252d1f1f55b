"""The gateway is slow, does not answer, fails or breaks the connection, in every operation."""

import threading
import time
from functools import partial

import pytest

from reservations.models import Reservation
from tests.faults import consistency
from tests.faults.client import Answer, retry_until_resolved, run_concurrently
from tests.faults.size import LEASE, LONG, SIZE, WORKERS
from tests.faults.world import CARD, Customer, World, card
from tests.gateway_faults import FaultKind

KINDS = list(FaultKind)
SLOW = 0.3


def add_fault(service, operation: str, kind: str, *, times: int | None = 1) -> None:
    """Let the next calls of the operation fail."""
    seconds = SLOW if kind == FaultKind.SLOW else 0
    service.add_gateway_fault(operation, kind, seconds=seconds, times=times)


def make_drafts(service, number: int, **room: object) -> list[tuple[Customer, int]]:
    with service.database.open():
        world = World(service)
        made = []
        for _ in range(number):
            customer = world.customer()
            made.append((customer, world.draft(customer, world.room(**room)).pk))
        return made


@pytest.fixture
def service(short_lease_service, check_everything):
    """Checks the consistency after the test."""
    yield short_lease_service
    check_everything(short_lease_service)
    assert not short_lease_service.find_gateway_faults(), "a fault was not used"


def test_authorize(service):
    started = list(zip(KINDS, make_drafts(service, len(KINDS)), strict=True))
    for kind, (customer, pk) in started:
        add_fault(service, "authorize", kind)
        first = customer.client.checkout(pk, CARD)
        assert first.code == ("Confirmed" if kind == FaultKind.SLOW else "Processing"), kind
        # Not resolved: a retry gets Processing, or on a slow machine the outcome.
        assert customer.client.checkout(pk, CARD).code in {first.code, "Confirmed"}
    for kind, (customer, pk) in started:
        last = retry_until_resolved(partial(customer.client.checkout, pk, CARD))
        assert last.code == "Confirmed", kind


def test_authorize_and_no_status_afterwards(service):
    """If find_payment or void fail too, the payment is not resolved until they succeed."""
    cases = [(operation, kind) for operation in ("lookup", "void") for kind in KINDS]
    started = list(zip(cases, make_drafts(service, len(cases)), strict=True))
    for _, (customer, pk) in started:
        add_fault(service, "authorize", FaultKind.TIMEOUT_BEFORE)
        assert customer.client.checkout(pk, CARD).code == "Processing"
    time.sleep(LEASE)
    for (operation, kind), (customer, pk) in started:
        add_fault(service, operation, kind)
        second = customer.client.checkout(pk, CARD)
        is_known = kind == FaultKind.SLOW
        assert second.code == ("Confirmed" if is_known else "Processing"), (operation, kind)
        last = customer.client.checkout(pk, CARD)
        assert last.code == "Confirmed", (operation, kind)


def test_capture(service):
    """The booking stands. The capture stays due, and check_everything reconciles it."""
    for kind, (customer, pk) in zip(KINDS, make_drafts(service, len(KINDS)), strict=True):
        add_fault(service, "capture", kind)
        answer = customer.client.checkout(pk, CARD)
        assert answer.code == "Confirmed", kind


def test_cancellation_with_a_due_capture(service):
    """The payment is captured first, so that it can be refunded. Otherwise nothing happens."""
    for kind, (customer, pk) in zip(KINDS, make_drafts(service, len(KINDS)), strict=True):
        if kind == FaultKind.SLOW:
            continue
        add_fault(service, "capture", kind, times=2)
        assert customer.client.checkout(pk, CARD).code == "Confirmed"
        first = customer.client.cancel(pk)
        assert first.status == 503, kind
        last = customer.client.cancel(pk)
        assert (last.status, last.body["Refund"]) == (200, 50), kind


def test_refund(service):
    for kind, (customer, pk) in zip(KINDS, make_drafts(service, len(KINDS)), strict=True):
        assert customer.client.checkout(pk, CARD).code == "Confirmed"
        add_fault(service, "refund", kind)
        answer = customer.client.cancel(pk)
        assert (answer.status, answer.body["Refund"]) == (200, 50), kind
        assert customer.client.cancel(pk).body["Refund"] == 50


def test_void(service):
    made = make_drafts(service, len(KINDS), is_live_inventory=False)
    for kind, (customer, pk) in zip(KINDS, made, strict=True):
        assert customer.client.checkout(pk, CARD).code == "Pending"
        add_fault(service, "void", kind)
        answer = customer.client.cancel(pk)
        assert answer.status == 200, kind


def test_storing_a_card(service):
    """A checkout does not fail if its card cannot be stored; updating the card does."""
    for kind, (customer, pk) in zip(KINDS, make_drafts(service, len(KINDS)), strict=True):
        add_fault(service, "store", kind)
        answer = customer.client.checkout(pk, CARD, SavePaymentInfo=True)
        assert answer.code == "Confirmed", kind
        add_fault(service, "store", kind)
        saved = customer.client.post("account/update-payment-info", PaymentInfo=CARD)
        assert saved.status == (200 if kind == FaultKind.SLOW else 503), kind
        saved = customer.client.post("account/update-payment-info", PaymentInfo=CARD)
        assert saved.status == 200
        add_fault(service, "forget", kind)
        again = customer.client.post("account/update-payment-info", PaymentInfo=CARD)
        assert again.status == 200, kind


def test_checkout_in_test_mode(service):
    for kind, (customer, pk) in zip(KINDS, make_drafts(service, len(KINDS)), strict=True):
        add_fault(service, "check", kind)
        first = customer.client.checkout(pk, CARD, TestMode=True)
        assert first.status == (200 if kind == FaultKind.SLOW else 503), kind
        assert customer.client.checkout(pk, CARD, TestMode=True).code == "New"


def test_declined_card_keeps_the_room_held(service):
    [(customer, pk)] = make_drafts(service, 1)
    declined = customer.client.checkout(pk, card("4000000000000002"))
    assert (declined.status, declined.code) == (402, "CardDeclined")
    assert customer.client.checkout(pk, CARD).code == "Confirmed"


# --- A gateway that hangs ------------------------------------------------------------------------


def request_while_gateway_hangs(service) -> list[Answer]:
    """The answers to other customers while checkouts wait for a hanging gateway."""
    with service.database.open():
        world = World(service)
        waiting = []
        for _ in range(SIZE.hung):
            customer = world.customer()
            waiting.append((customer, world.draft(customer, world.room()).pk))
        other, room, start = world.customer(), world.room(), world.start()
        read = world.draft(other, room, start).pk
    service.add_gateway_fault("authorize", FaultKind.SLOW, seconds=SIZE.hang, times=SIZE.hung)
    span = {"StartDate": start.isoformat(), "EndDate": (start.replace(minute=45)).isoformat()}
    received: list[Answer] = []

    def hang() -> None:
        run_concurrently([partial(each.client.checkout, pk, CARD) for each, pk in waiting])

    hanging = threading.Thread(target=hang)
    hanging.start()
    time.sleep(SIZE.hang / 4)
    until = time.monotonic() + SIZE.hang / 2
    while time.monotonic() < until:
        received += run_concurrently(
            [
                lambda: other.client.post("account/reservation", Id=read),
                lambda: other.client.post(
                    "meeting-rooms/check-availability", RoomId=room.pk, **span
                ),
                lambda: other.client.post("locations/search", Query="Denver"),
            ]
        )
    hanging.join(SIZE.hang + 60)
    assert not hanging.is_alive()
    return received


def test_hanging_checkouts_do_not_block_other_requests(start, check_everything):
    """Each worker has threads, so more hanging checkouts than workers do not block the others."""
    assert SIZE.hung > WORKERS
    service = start()
    received = request_while_gateway_hangs(service)
    check_everything(service)
    with service.database.open():
        assert consistency.count_captures() == SIZE.hung
    assert {answer.status for answer in received} == {200}
    # No other request waited for the gateway.
    assert max(answer.ms for answer in received) < SIZE.hang * 1000 * (0.25 if LONG else 0.9)


def test_hanging_checkouts_block_requests_with_one_thread(start, check_everything):
    """The control: the same with workers that process one request at a time."""
    service = start("--worker-class", "sync", "--threads", "1")
    received = request_while_gateway_hangs(service)
    check_everything(service)
    assert any(answer.ms > SIZE.hang * 1000 / 4 for answer in received)
    with service.database.open():
        assert Reservation.objects.filter(status="Confirmed").count() == SIZE.hung
