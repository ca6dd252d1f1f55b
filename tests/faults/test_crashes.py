"""A worker is killed at each step of a checkout, an approval and a cancellation.

Afterwards either the client's retry or `reconcile_payments` resolves everything.
"""

import time
from collections.abc import Iterable
from functools import partial

import pytest

from payments.gateways.sandbox import confirm_payment
from payments.gateways.sandbox_models import SandboxPayment
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.faults import consistency, figures
from tests.faults.client import BROKEN_CONNECTION, Answer, retry_until_resolved, run_concurrently
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG
from tests.faults.world import CARD, Customer, World

# Whether the payment was authorized before the crash: then reconcile_payments books, otherwise it
# releases everything.
CHECKOUT = {
    "in T1": False,
    "after T1": False,
    "in authorize": False,
    "after authorize": True,
    "in T2": True,
    "after T2": True,
    "in capture": True,
    "after the gateway's capture": True,
    "after capture": True,
}
APPROVAL = {
    "in approval": Status.PENDING,
    "after approval": Status.CONFIRMED,
    "in capture": Status.CONFIRMED,
    "after the gateway's capture": Status.CONFIRMED,
    "after capture": Status.CONFIRMED,
}
CANCEL = {
    "in cancel": Status.CONFIRMED,
    "after cancel": Status.CANCELLED,
    "in capture": Status.CANCELLED,  # The refund takes the same lock.
    "after the gateway's refund": Status.CANCELLED,
    "after refund": Status.CANCELLED,
}
# The checkout that follows the customer's confirmation at the bank. All of them end in a booking.
CONFIRMED = ["after lookup", "in T2", "after T2", "after the gateway's capture"]
CANCEL_REQUEST = {
    "in cancel": Status.PENDING,
    "after cancel": Status.CANCELLED,
    "after the gateway's void": Status.CANCELLED,
    "after void": Status.CANCELLED,
}


def status_of(service: Service, pk: int) -> str:
    with service.database.open():
        return Reservation.objects.get(pk=pk).status


def crashed(service: Service, point: str, answer: Answer) -> Answer:
    """Assert that the worker crashed at the point instead of answering."""
    assert service.has_crashed, f"no worker passed {point!r}"
    assert answer.status == BROKEN_CONNECTION, point
    return answer


def checkouts(
    service: Service, row: figures.CaseFigures, points: Iterable[str] = CHECKOUT
) -> dict[str, tuple[Customer, int]]:
    """Crash one checkout, with promo code and included hours, at each of the points."""
    with service.database.open():
        world = World(service)
        promo = PromoCodeFactory().code
        started = {}
        for point in points:
            customer = world.customer()
            AllowanceFactory(user=customer.user, hours=1)
            started[point] = customer, world.draft(customer, world.room(), promo=promo).pk
    for point, (customer, pk) in started.items():
        service.crash(point)
        row.count_answers([crashed(service, point, customer.client.checkout(pk, CARD))])
        row.runs += 1
    return started


def test_checkout_crash_is_resolved_by_the_clients_retry(short_lease_service, check_everything):
    case = "checkout crashes, client retries"
    row = figures.get_row(case)
    with short_lease_service.database.open():
        captured = consistency.count_captures()

    for customer, pk in checkouts(short_lease_service, row).values():
        received = []
        answer = retry_until_resolved(
            partial(customer.client.checkout, pk, CARD), received=received
        )
        row.count_answers(received)
        assert answer.code == "Confirmed"
        row.confirmed += 1

    check_everything(short_lease_service, case)
    with short_lease_service.database.open():
        captured = consistency.count_captures() - captured
    row.captures += captured
    assert captured == len(CHECKOUT)


def test_checkout_crash_is_resolved_by_parallel_retries(short_lease_service, check_everything):
    """All retries find the same unresolved payment, and one of them resolves it."""
    case = "checkout crashes, 8 parallel retries"
    row = figures.get_row(case)
    with short_lease_service.database.open():
        captured = consistency.count_captures()
    points = list(CHECKOUT) if LONG else ["after T1", "after authorize"]
    for customer, pk in checkouts(short_lease_service, row, points).values():
        time.sleep(LEASE)
        answers = run_concurrently([partial(customer.client.checkout, pk, CARD)] * 8)
        row.count_answers(answers)
        # On a slow machine, a request may outlive its own lease: ReservationNotOpen.
        allowed = {"Confirmed", "Processing", "ReservationNotOpen"}
        assert {answer.code for answer in answers} <= allowed
        last = retry_until_resolved(partial(customer.client.checkout, pk, CARD))
        assert last.code == "Confirmed"
        row.confirmed += 1

    check_everything(short_lease_service, case)
    with short_lease_service.database.open():
        captured = consistency.count_captures() - captured
    row.captures += captured
    assert captured == len(points)


def test_checkout_crash_is_resolved_by_reconcile_payments(short_lease_service, check_everything):
    case = "checkout crashes, reconcile_payments"
    row = figures.get_row(case)
    with short_lease_service.database.open():
        captured = consistency.count_captures()
    started = checkouts(short_lease_service, row)
    time.sleep(LEASE)

    check_everything(short_lease_service, case)

    for point, (_, pk) in started.items():
        was_reserved = CHECKOUT[point]
        wanted = Status.CONFIRMED if was_reserved else Status.NEW
        assert status_of(short_lease_service, pk) == wanted, point
        row.confirmed += was_reserved
    with short_lease_service.database.open():
        captured = consistency.count_captures() - captured
    row.captures += captured
    assert captured == sum(CHECKOUT.values())
    # What was released can be booked again, here by the same customer.
    customer, pk = started["after T1"]
    assert customer.client.checkout(pk, CARD).code == "Confirmed"


def test_reconcile_payments_reports_what_it_resolved(short_lease_service, check_everything):
    """The command as an administrator runs it, in its own process."""
    with short_lease_service.database.open():
        world = World(short_lease_service)
        customer = world.customer()
        pk = world.draft(customer, world.room()).pk
    short_lease_service.crash("after T2")
    crashed(short_lease_service, "after T2", customer.client.checkout(pk, CARD))

    done = short_lease_service.manage("reconcile_payments")

    assert (done.returncode, done.stderr) == (0, "")
    assert "1 captured" in done.stdout
    check = short_lease_service.manage("verify_integrity")
    assert (check.returncode, check.stdout) == (0, "")


@pytest.mark.parametrize("resolver", ["client retries", "reconcile_payments"])
def test_crash_after_confirmation_at_the_bank_is_resolved(
    resolver, short_lease_service, check_everything
):
    case = f"confirmed checkout crashes, {resolver}"
    row = figures.get_row(case)
    with short_lease_service.database.open():
        world = World(short_lease_service)
        captured = consistency.count_captures()
        waiting = {}
        for point in CONFIRMED:
            customer = world.customer()
            SavedCardFactory(user=customer.user, outcome="requires_action", saved_by_setup=True)
            draft = world.draft(customer, world.room())
            pay = partial(
                customer.client.post,
                "reservations/checkout",
                ReservationId=draft.pk,
                UseSavedPaymentInfo=True,
            )
            waiting[point] = draft.pk, pay

    for point, (pk, pay) in waiting.items():
        assert pay().code == "Processing"
        with short_lease_service.database.open():
            payment = Reservation.objects.get(pk=pk).payments.get()
            confirm_payment(SandboxPayment.objects.get(key=payment.key).secret)
        short_lease_service.crash(point)
        row.count_answers([crashed(short_lease_service, point, pay())])
        row.runs += 1
        if resolver == "client retries":
            assert retry_until_resolved(pay).code == "Confirmed"

    check_everything(short_lease_service, case)
    assert {status_of(short_lease_service, pk) for pk, _ in waiting.values()} == {Status.CONFIRMED}
    with short_lease_service.database.open():
        captured = consistency.count_captures() - captured
    row.confirmed += len(CONFIRMED)
    row.captures += captured
    assert captured == len(CONFIRMED)


@pytest.mark.parametrize("resolver", ["client retries", "reconcile_payments"])
def test_approval_crash_is_resolved(resolver, short_lease_service, check_everything):
    case = f"approval crashes, {resolver}"
    row = figures.get_row(case)
    with short_lease_service.database.open():
        world = World(short_lease_service)
        staff = world.staff_client()
        requests = {}
        for point in APPROVAL:
            customer = world.customer()
            room = world.room(is_live_inventory=False)
            requests[point] = customer, world.draft(customer, room).pk
    for customer, pk in requests.values():
        assert customer.client.checkout(pk, CARD).code == "Pending"

    for point, (_, pk) in requests.items():
        short_lease_service.crash(point)
        row.count_answers([crashed(short_lease_service, point, staff.run_action("approve", pk))])
        row.runs += 1
        assert status_of(short_lease_service, pk) == APPROVAL[point], point
        if resolver == "client retries":
            assert staff.run_action("approve", pk).status == 302
            assert status_of(short_lease_service, pk) == Status.CONFIRMED

    check_everything(short_lease_service, case)
    confirmed = [
        pk for _, pk in requests.values() if status_of(short_lease_service, pk) == Status.CONFIRMED
    ]
    row.confirmed += len(confirmed)
    with short_lease_service.database.open():
        row.captures += sum(
            payment.state == "captured"
            for pk in confirmed
            for payment in Reservation.objects.get(pk=pk).payments.all()
        )
    assert len(confirmed) == (len(APPROVAL) if resolver == "client retries" else len(APPROVAL) - 1)


@pytest.mark.parametrize("resolver", ["client retries", "reconcile_payments"])
@pytest.mark.parametrize("live", [True, False], ids=["a booking", "a request"])
def test_cancellation_crash_is_resolved(live, resolver, short_lease_service, check_everything):
    steps = CANCEL if live else CANCEL_REQUEST
    case = f"cancelling {'a booking' if live else 'a request'} crashes, {resolver}"
    row = figures.get_row(case)
    with short_lease_service.database.open():
        world = World(short_lease_service)
        booked = {}
        for point in steps:
            customer = world.customer()
            room = world.room(is_live_inventory=live)
            booked[point] = customer, world.draft(customer, room).pk
    for customer, pk in booked.values():
        wanted = "Confirmed" if live else "Pending"
        assert customer.client.checkout(pk, CARD).code == wanted

    for point, (customer, pk) in booked.items():
        short_lease_service.crash(point)
        row.count_answers([crashed(short_lease_service, point, customer.client.cancel(pk))])
        row.runs += 1
        assert status_of(short_lease_service, pk) == steps[point], point
        if resolver == "client retries":
            answer = customer.client.cancel(pk)
            row.count_answers([answer])
            assert answer.status == 200
            assert answer.body.get("Refund", 0) == (50 if live else 0)
            assert status_of(short_lease_service, pk) == Status.CANCELLED

    # This also checks that captured payments are refunded once and authorized ones voided.
    check_everything(short_lease_service, case)
