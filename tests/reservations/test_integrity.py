"""What integrity checks report and what they accept; test_integrity_checks.py has each check."""

import uuid
from decimal import Decimal

import pytest

from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.booking import cancellation, integrity, price_adjustments
from reservations.models import (
    Reservation,
)
from reservations.models.status import Status
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    make_booking,
    make_draft,
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


def test_booking_paid_again_after_a_refund_is_not_reported():
    reservation = make_booking()
    payment = set_payment_state(PaymentState.REFUNDED)
    refund(payment, 75, RefundState.DONE)
    payment.pk, payment.key, payment.state = None, uuid.uuid4(), PaymentState.CAPTURED
    payment.save(force_insert=True)

    assert reservation.payments.count() == 2
    assert get_problems() == []


@pytest.mark.parametrize("amount", [-75, -25])
def test_booking_with_a_reduced_price_is_not_reported(amount):
    reservation = make_booking()
    price_adjustments.adjust_price(
        reservation.pk, amount=Decimal(amount), reason="Sorry", by=UserFactory(), now=NOW
    )

    assert Reservation.objects.get().total_cost == 75 + amount
    assert get_problems() == []


def test_partly_refunded_payment_is_not_reported_as_refunded():
    make_booking()
    refund(Payment.objects.get(), 74, RefundState.DONE)

    assert get_problems() == []
