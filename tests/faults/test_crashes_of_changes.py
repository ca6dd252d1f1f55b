"""A worker is killed at each step of a change of a paid booking (B27).

Afterwards the client's retry or `reconcile_payments` resolves it: the change is applied and paid
once, or neither. docs/checkout.md has the table of the steps.
"""

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from payments.gateways.sandbox import confirm_payment
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment
from reservations.models import BookingChange, Reservation
from tests.factories_people import SavedCardFactory
from tests.faults import consistency, figures
from tests.faults.client import BROKEN_CONNECTION, Answer, StaffClient, retry_until_resolved
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG
from tests.faults.world import CARD, HOUR, World

# By way: the steps, and whether the change is applied in the end if nobody repeats the request.
STEPS = {
    "card": {
        "in a change": False,
        "in T1 of a change": False,
        "after T1 of a change": False,
        "in authorize": False,
        "after authorize": True,
        "in T2 of a change": True,
        "after T2 of a change": True,
        "in capture": True,
        "after the gateway's capture": True,
        "after capture": True,
    },
    # The request that follows the customer's confirmation at the bank.
    "bank": {
        "after lookup": True,
        "in T2 of a change": True,
        "after T2 of a change": True,
        "after the gateway's capture": True,
    },
    # It costs less.
    "refund": {
        "in a change": False,
        "after cancel": True,  # after the transaction of any change
        "after the gateway's refund": True,
        "after refund": True,
    },
    # Staff take the difference in one transaction.
    "cash": {"in a change": False, "in taking a difference": False, "after cancel": True},
}
# In the short form, the client repeats only these: those that do most after a crash.
RETRIED = {
    "card": ["after T1 of a change", "after authorize", "in capture"],
    "bank": ["in T2 of a change"],
    "refund": ["after cancel"],
}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a booking of two hours, which cost 50."""

    pk: int
    send: Callable[[], Answer]
    new_total: int


def make_change(service: Service, world: World, staff: StaffClient, way: str) -> Change:
    """Book, and prepare the change to three hours, or to one if it is to cost less."""
    hours = 1 if way == "refund" else 3
    with service.database.open():
        customer = world.customer()
        if way == "bank":
            SavedCardFactory(user=customer.user, outcome="requires_action", saved_by_setup=True)
        draft = world.draft(customer, world.room())
    pk, end, total = draft.pk, draft.start + hours * HOUR, hours * 25
    assert customer.client.checkout(pk, CARD).code == "Confirmed"
    if way == "cash":
        local = end.astimezone(ZoneInfo("America/Denver"))
        data = {"end_0": f"{local:%Y-%m-%d}", "end_1": f"{local:%H:%M}", "way": "cash"}
        return Change(pk, partial(staff.extend, pk, **data, expected_amount=total), total)
    method = {"UseSavedPaymentInfo": True} if way == "bank" else {"PaymentInfo": CARD}
    wanted = {"EndDate": end.isoformat(), "ExpectedTotal": total, **method}
    change = Change(pk, partial(customer.client.change, pk, **wanted), total)
    if way == "bank":
        assert change.send().code == "Processing"
        confirm_at_bank(service, pk)
    return change


def confirm_at_bank(service: Service, pk: int) -> None:
    with service.database.open():
        payment = Payment.objects.waiting().get(reservation=pk)
        confirm_payment(SandboxPayment.objects.get(key=payment.key).secret)


def crash(service: Service, point: str, send: Callable[[], Answer]) -> None:
    service.crash(point)
    answer = send()
    assert (service.has_crashed, answer.status) == (True, BROKEN_CONNECTION), point


def crash_all(service: Service, way: str, points: list[str]) -> dict[str, Change]:
    """Crash one change at each of the points."""
    with service.database.open():
        world = World(service)
        staff = world.staff_client()
    changes = {point: make_change(service, world, staff, way) for point in points}
    for point, change in changes.items():
        crash(service, point, change.send)
    return changes


def get_booking(service: Service, pk: int) -> tuple[int, dt.timedelta]:
    """The price of the booking, and its duration."""
    with service.database.open():
        booking = Reservation.objects.get(pk=pk)
        return booking.total_cost, booking.end - booking.start


def describe(total: int) -> tuple[int, dt.timedelta]:
    return total, total // 25 * HOUR


@pytest.mark.parametrize(
    ("way", "resolver"),
    [
        *((way, "client retries") for way in RETRIED),
        *((way, "reconcile_payments") for way in STEPS),
    ],
)
def test_change_that_crashed_is_applied_and_paid_once_or_neither(
    way, resolver, short_lease_service, check_everything
):
    service, case = short_lease_service, f"change crashes ({way}), {resolver}"
    is_retried = resolver == "client retries"
    points = RETRIED[way] if is_retried and not LONG else list(STEPS[way])
    row = figures.get_row(case)
    changes = crash_all(service, way, points)
    row.runs += len(changes)
    if is_retried:
        for change in changes.values():
            received: list[Answer] = []
            assert retry_until_resolved(change.send, received=received).status == 200
            row.count_answers(received)
    else:
        time.sleep(LEASE)

    # This also checks that what was captured, less refunds, is the price of each booking.
    check_everything(service, case)

    for point, change in changes.items():
        is_applied = is_retried or STEPS[way][point]
        assert get_booking(service, change.pk) == describe(change.new_total if is_applied else 50)
        row.confirmed += is_applied
    if is_retried:
        return
    # All can be repeated, and nothing is charged twice.
    for point, change in changes.items():
        if way != "cash" or not STEPS[way][point]:  # staff cannot extend it to the same end
            assert change.send().status in {200, 302}
        assert get_booking(service, change.pk) == describe(change.new_total)
    check_everything(service, case)


def crash_twice(service: Service) -> Change:
    """A worker dies after the authorization, and the next one while it applies the change."""
    [change] = crash_all(service, "card", ["after authorize"]).values()
    time.sleep(LEASE)
    crash(service, "in a change", change.send)
    return change


def test_change_whose_recovery_crashes_is_applied_and_paid_once(
    short_lease_service, check_everything
):
    change = crash_twice(short_lease_service)

    check_everything(short_lease_service, "recovery of a change crashes")

    assert get_booking(short_lease_service, change.pk) == describe(change.new_total)


@pytest.mark.skipif(not LONG, reason="the control is not for each commit: make faults")
def test_change_without_one_transaction_is_not_paid(start):
    """Negative control: the booking is changed in one transaction, and the change marked as applied
    in another one. So the recovery voids the payment of a change that was applied.
    """
    service = start(FAULTS_UNGUARDED="split changes", FAULTS_LEASE_SECONDS=str(LEASE))
    change = crash_twice(service)

    with service.database.open():
        consistency.run_reconcile_payments()
        assert BookingChange.objects.get().state == "started"
        problems = consistency.find_problems()

    assert get_booking(service, change.pk) == describe(change.new_total)
    assert any("costs 75" in each and "50" in each for each in problems), problems
