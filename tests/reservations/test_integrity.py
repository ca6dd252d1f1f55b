"""Integrity checks find inconsistent data and name the rows."""

from decimal import Decimal

import pytest
from django.db import connection

from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.booking import cancellation, checkout, drafts, integrity
from reservations.models import (
    Allowance,
    AllowanceEntry,
    PromoCode,
    PromoRedemption,
    Reservation,
)
from reservations.models.status import Status
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    AllowanceFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
)

pytestmark = pytest.mark.django_db

LATER = NOW + 2 * HOUR


def get_problems(now=LATER):
    return [str(each) for each in integrity.find_problems(now=now)]


def set_status(reservation, status):
    """Change the status directly in the database."""
    holds = status in {Status.PROCESSING, Status.PENDING, Status.CONFIRMED}
    Reservation.objects.filter(pk=reservation.pk).update(
        status=status, holds_slot=holds, hold_until=None
    )


def set_payment_state(state):
    Payment.objects.update(state=state, authorized_at=NOW)
    return Payment.objects.get()


def make_cancelled():
    reservation = make_booking()
    cancellation.cancel(reservation.pk, now=NOW)
    return reservation


def test_consistent_data_has_no_problems():
    make_draft(), make_booking(), make_pending_booking(), make_cancelled()

    assert get_problems() == []


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.CONFIRMED, PaymentState.AUTHORIZED),
        (Status.COMPLETED, PaymentState.AUTHORIZED),
        (Status.NO_SHOW, PaymentState.STARTED),
        (Status.PENDING, PaymentState.CAPTURED),
        (Status.PROCESSING, PaymentState.AUTHORIZED),
        (Status.CANCELLED, PaymentState.AUTHORIZED),
        (Status.EXPIRED, PaymentState.AUTHORIZED),
        (Status.DECLINED, PaymentState.CAPTURED),
        (Status.NEW, PaymentState.AUTHORIZED),
        (Status.NEW, PaymentState.STARTED),
    ],
)
def test_payment_state_not_matching_reservation_is_reported(status, state):
    reservation = make_booking()
    set_status(reservation, status)
    payment = set_payment_state(state)

    assert (
        f"payments off their reservation: payment {payment.pk} is {state},"
        f" and its reservation {reservation.pk} is {status}"
    ) in get_problems()


def test_recent_due_capture_is_not_reported():
    make_booking()
    set_payment_state(PaymentState.AUTHORIZED)

    assert get_problems(now=NOW + HOUR / 2) == []


def test_goodwill_refund_is_not_reported():
    make_booking()
    payment = set_payment_state(PaymentState.REFUNDED)
    refund(payment, 75, RefundState.DONE)

    assert get_problems() == []


def refund(payment, amount, state):
    return Refund.objects.create(
        payment=payment, amount=Decimal(amount), state=state, created_at=NOW, done_at=NOW
    )


def test_refunded_payment_without_refunds_is_reported():
    make_booking()
    payment = set_payment_state(PaymentState.REFUNDED)

    assert [f"payment {payment.pk} of 75.00 is refunded" in line for line in get_problems()] == [
        True
    ]


def test_refund_due_for_over_an_hour_is_reported():
    make_booking()
    owed = refund(Payment.objects.get(), 5, RefundState.STARTED)

    assert get_problems(now=NOW + HOUR / 2) == []
    assert get_problems() == [
        f"refunds forgotten: refund {owed.pk} of payment {owed.payment_id} is due for over an hour"
    ]


@pytest.mark.parametrize("how", ["refused", "less", "never written down", "a favour before"])
def test_promised_refund_not_paid_is_reported(how):
    reservation = make_cancelled()
    Payment.objects.update(state=PaymentState.CAPTURED)
    match how:
        case "refused":
            Refund.objects.update(state=RefundState.REFUSED)
        case "less":
            Refund.objects.update(amount=Decimal(50))
        case "never written down":
            Refund.objects.all().delete()
        case "a favour before":
            Reservation.objects.update(refund_promised=Decimal(25))
            Refund.objects.update(amount=50, created_at=NOW - HOUR)

    (line,) = get_problems()
    assert line.startswith(f"refunds off their promise: reservation {reservation.pk} is Cancelled")


def test_refund_above_the_promise_is_not_reported():
    make_cancelled()
    Reservation.objects.update(refund_promised=Decimal(50))

    assert get_problems() == []


def test_payment_in_another_currency_is_reported():
    make_booking()
    Payment.objects.update(currency="EUR")
    payment = Payment.objects.get()

    assert get_problems() == [
        f"payments in another currency: payment {payment.pk} is in EUR,"
        f" its reservation {payment.reservation_id} in USD"
    ]


def test_draft_held_too_long_is_reported():
    reservation = make_draft()
    Reservation.objects.update(hold_until=NOW + 30 * HOUR)

    (line,) = get_problems(now=NOW)
    assert f"reservation {reservation.pk} is New and held until" in line


def test_hold_of_completed_reservation_is_reported():
    reservation = make_booking()
    set_status(reservation, Status.COMPLETED)
    with connection.cursor() as cursor:
        disable_constraint(cursor)
        cursor.execute(
            "UPDATE reservations_reservation SET holds_slot = %s WHERE id = %s",
            [True, reservation.pk],
        )
        lines = get_problems()
        cursor.execute(
            "UPDATE reservations_reservation SET holds_slot = %s WHERE id = %s",
            [False, reservation.pk],
        )
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = OFF")

    assert lines == [
        f"holds off their status: reservation {reservation.pk} is Completed and holds its room"
    ]


def disable_constraint(cursor):
    """Disable the check constraint that forbids the inconsistency."""
    if connection.vendor == "sqlite":
        cursor.execute("PRAGMA ignore_check_constraints = ON")
    else:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            "ALTER TABLE reservations_reservation"
            " DROP CONSTRAINT reservation_holds_as_its_status_says"
        )


def test_allowance_entry_of_wrong_account_or_period_is_reported():
    user = UserFactory()
    allowance = AllowanceFactory(user=user, hours=3)
    reservation = make_booking(user)
    entry = AllowanceEntry.objects.get()

    Allowance.objects.update(user=UserFactory())
    assert get_problems() == [
        f"hours of another account: entry {entry.pk}: allowance {allowance.pk} is of another"
        f" account than reservation {reservation.pk}"
    ]
    Allowance.objects.update(user=user, kind=Allowance.Kind.MONTHLY)
    assert get_problems() == [
        f"hours in the wrong period: entry {entry.pk}: allowance {allowance.pk} is monthly,"
        " its period is None"
    ]


def test_promo_uses_not_matching_bill_or_limit_are_reported():
    PromoCodeFactory(code="TEN")
    user = UserFactory()
    for _ in range(2):
        reservation = make_draft(user)
        drafts.apply_promo_code(reservation.pk, "TEN", user=user, now=NOW)
        checkout.check_out(reservation.pk, user=user, payment_method=make_payment_method(), now=NOW)
    assert get_problems() == []

    PromoCode.objects.update(max_uses_per_account=1)
    assert get_problems() == [f"promo uses above the limit: promo code TEN: user {user.pk}: 2 of 1"]

    PromoCode.objects.update(max_uses_per_account=None, spent=2)
    PromoRedemption.objects.update(amount=1)
    uses = PromoRedemption.objects.order_by("pk")
    assert [line.partition(" is ")[0] for line in get_problems()] == [
        f"promo uses off their bill: promo use {use.pk} of reservation {use.reservation_id}"
        for use in uses
    ]
