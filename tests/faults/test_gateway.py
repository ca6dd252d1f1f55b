"""The gateway is slow, does not answer, fails or breaks the connection, in every operation."""

import threading
import time
from functools import partial

import pytest

from reservations.models import Reservation
from tests.faults import consistency, figures
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
def measured(short_lease_service, check_everything):
    """The figures of faults in one operation. Checks the consistency after the test."""
    with short_lease_service.database.open():
        before = consistency.count_captures()
    row = figures.get_row("gateway faults")
    yield row
    check_everything(short_lease_service, row.case)
    with short_lease_service.database.open():
        assert not short_lease_service.find_gateway_faults(), "a fault was not used"
        row.captures += consistency.count_captures() - before


def test_authorize(short_lease_service, measured):
    started = list(zip(KINDS, make_drafts(short_lease_service, len(KINDS)), strict=True))
    for kind, (customer, pk) in started:
        add_fault(short_lease_service, "authorize", kind)
        first = customer.client.checkout(pk, CARD)
        assert first.code == ("Confirmed" if kind == FaultKind.SLOW else "Processing"), kind
        # Not resolved: a retry gets Processing, or on a slow machine the outcome.
        assert customer.client.checkout(pk, CARD).code in {first.code, "Confirmed"}
        measured.count_answers([first])
    for kind, (customer, pk) in started:
        last = retry_until_resolved(partial(customer.client.checkout, pk, CARD))
        assert last.code == "Confirmed", kind
        measured.count_answers([last])
        measured.runs += 1
        measured.confirmed += 1


def test_authorize_and_no_status_afterwards(short_lease_service, measured):
    """If find_payment or void fail too, the payment is not resolved until they succeed."""
    cases = [(operation, kind) for operation in ("lookup", "void") for kind in KINDS]
    started = list(zip(cases, make_drafts(short_lease_service, len(cases)), strict=True))
    for _, (customer, pk) in started:
        add_fault(short_lease_service, "authorize", FaultKind.TIMEOUT_BEFORE)
        assert customer.client.checkout(pk, CARD).code == "Processing"
    time.sleep(LEASE)
    for (operation, kind), (customer, pk) in started:
        add_fault(short_lease_service, operation, kind)
        second = customer.client.checkout(pk, CARD)
        is_known = kind == FaultKind.SLOW
        assert second.code == ("Confirmed" if is_known else "Processing"), (operation, kind)
        last = customer.client.checkout(pk, CARD)
        assert last.code == "Confirmed", (operation, kind)
        measured.count_answers([second, last])
        measured.runs += 1
        measured.confirmed += 1


def test_capture(short_lease_service, measured):
    """The booking stands. The capture stays due, and check_everything reconciles it."""
    for kind, (customer, pk) in zip(
        KINDS, make_drafts(short_lease_service, len(KINDS)), strict=True
    ):
        add_fault(short_lease_service, "capture", kind)
        answer = customer.client.checkout(pk, CARD)
        assert answer.code == "Confirmed", kind
        measured.count_answers([answer])
        measured.runs += 1
        measured.confirmed += 1


def test_cancellation_with_a_due_capture(short_lease_service, measured):
    """The payment is captured first, so that it can be refunded. Otherwise nothing happens."""
    for kind, (customer, pk) in zip(
        KINDS, make_drafts(short_lease_service, len(KINDS)), strict=True
    ):
        if kind == FaultKind.SLOW:
            continue
        add_fault(short_lease_service, "capture", kind, times=2)
        assert customer.client.checkout(pk, CARD).code == "Confirmed"
        first = customer.client.cancel(pk)
        assert first.status == 503, kind
        last = customer.client.cancel(pk)
        assert (last.status, last.body["Refund"]) == (200, 50), kind
        measured.count_answers([first, last])
        measured.runs += 1


def test_refund(short_lease_service, measured):
    for kind, (customer, pk) in zip(
        KINDS, make_drafts(short_lease_service, len(KINDS)), strict=True
    ):
        assert customer.client.checkout(pk, CARD).code == "Confirmed"
        add_fault(short_lease_service, "refund", kind)
        answer = customer.client.cancel(pk)
        assert (answer.status, answer.body["Refund"]) == (200, 50), kind
        assert customer.client.cancel(pk).body["Refund"] == 50
        measured.count_answers([answer])
        measured.runs += 1


def test_void(short_lease_service, measured):
    made = make_drafts(short_lease_service, len(KINDS), is_live_inventory=False)
    for kind, (customer, pk) in zip(KINDS, made, strict=True):
        assert customer.client.checkout(pk, CARD).code == "Pending"
        add_fault(short_lease_service, "void", kind)
        answer = customer.client.cancel(pk)
        assert answer.status == 200, kind
        measured.count_answers([answer])
        measured.runs += 1


def test_storing_a_card(short_lease_service, measured):
    """A checkout does not fail if its card cannot be stored; updating the card does."""
    for kind, (customer, pk) in zip(
        KINDS, make_drafts(short_lease_service, len(KINDS)), strict=True
    ):
        add_fault(short_lease_service, "store", kind)
        answer = customer.client.checkout(pk, CARD, SavePaymentInfo=True)
        assert answer.code == "Confirmed", kind
        measured.confirmed += 1
        add_fault(short_lease_service, "store", kind)
        saved = customer.client.post("account/update-payment-info", PaymentInfo=CARD)
        assert saved.status == (200 if kind == FaultKind.SLOW else 503), kind
        saved = customer.client.post("account/update-payment-info", PaymentInfo=CARD)
        assert saved.status == 200
        add_fault(short_lease_service, "forget", kind)
        again = customer.client.post("account/update-payment-info", PaymentInfo=CARD)
        assert again.status == 200, kind
        measured.count_answers([answer, saved, again])
        measured.runs += 1


def test_checkout_in_test_mode(short_lease_service, measured):
    for kind, (customer, pk) in zip(
        KINDS, make_drafts(short_lease_service, len(KINDS)), strict=True
    ):
        add_fault(short_lease_service, "check", kind)
        first = customer.client.checkout(pk, CARD, TestMode=True)
        assert first.status == (200 if kind == FaultKind.SLOW else 503), kind
        assert customer.client.checkout(pk, CARD, TestMode=True).code == "New"
        measured.count_answers([first])
        measured.runs += 1


def test_declined_card_keeps_the_room_held(short_lease_service, measured):
    [(customer, pk)] = make_drafts(short_lease_service, 1)
    declined = customer.client.checkout(pk, card("4000000000000002"))
    assert (declined.status, declined.code) == (402, "CardDeclined")
    assert customer.client.checkout(pk, CARD).code == "Confirmed"
    measured.count_answers([declined])
    measured.runs += 1
    measured.confirmed += 1


# --- A gateway that hangs ------------------------------------------------------------------------


def request_while_gateway_hangs(service, row: figures.CaseFigures) -> list[Answer]:
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
        row.count_answers(
            run_concurrently([partial(each.client.checkout, pk, CARD) for each, pk in waiting])
        )

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
    row = figures.get_row(f"{SIZE.hung} hanging checkouts, others")
    received = request_while_gateway_hangs(service, row)
    row.slowest_ms = max(answer.ms for answer in received)
    row.runs, row.confirmed = len(received), SIZE.hung
    check_everything(service, row.case)
    with service.database.open():
        row.captures = consistency.count_captures()
        assert row.captures == SIZE.hung
    assert {answer.status for answer in received} == {200}
    # No other request waited for the gateway.
    assert row.slowest_ms < SIZE.hang * 1000 * (0.25 if LONG else 0.9)


def test_hanging_checkouts_block_requests_with_one_thread(start, check_everything):
    """The control: the same with workers that process one request at a time."""
    service = start("--worker-class", "sync", "--threads", "1")
    row = figures.get_row(f"{SIZE.hung} hanging checkouts, others")
    received = request_while_gateway_hangs(service, figures.CaseFigures("control"))
    slowest = max(answer.ms for answer in received)
    row.control = sum(answer.ms > SIZE.hang * 1000 / 4 for answer in received)
    row.remarks = f"sync workers: slowest {slowest:.0f} ms"
    check_everything(service, row.case)
    assert row.control
    with service.database.open():
        assert Reservation.objects.filter(status="Confirmed").count() == SIZE.hung
