"""Cancellation: its refund, and that it is refunded only once."""

from datetime import timedelta

import pytest

from payments.gateways.sandbox_models import SandboxFault, SandboxPayment
from payments.models import Refund
from reservations.booking import checkout, payment_recovery
from reservations.booking.cancellation import cancel, preview
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.errors import NotFound, ReservationNotOpen, ServiceUnavailable
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
)

pytestmark = pytest.mark.django_db

ALL_BACK = "$75.00 is refunded to Visa ending 4242."
NOTHING_BACK = "it is less than 24 hours before its start, so nothing is refunded."
NOT_CHARGED = "nothing was charged."


@pytest.fixture
def ada():
    return UserFactory()


def get_terms_shown(cancellation):
    return cancellation.refund, cancellation.message.partition(": ")[2]


def cancelled(reservation, *, now=NOW):
    """Preview, cancel and cancel again: all three agree, and the refund happens once."""
    user = reservation.user
    before = get_terms_shown(preview(Reservation.objects.get(pk=reservation.pk), now=now))

    outcome = cancel(reservation.pk, user=user, now=now)
    refunds = list(Refund.objects.values_list("key", "amount", "state"))
    again = cancel(reservation.pk, user=user, now=now + 30 * HOUR)
    reservation.refresh_from_db()

    assert get_terms_shown(outcome) == before
    assert (again.refund, again.message) == (outcome.refund, outcome.message)
    assert get_terms_shown(preview(reservation, now=now)) == before
    assert list(Refund.objects.values_list("key", "amount", "state")) == refunds
    assert (reservation.status, reservation.holds_slot) == (Status.CANCELLED, False)
    assert reservation.cancelled_at == now
    return before


@pytest.mark.parametrize(
    ("before_start", "terms"),
    [
        (48 * HOUR, ALL_BACK),
        (24 * HOUR, ALL_BACK),
        (24 * HOUR - timedelta(seconds=1), NOTHING_BACK),
        (MINUTE, NOTHING_BACK),
    ],
)
def test_cancellation_24_hours_before_start_is_refunded_in_full(ada, before_start, terms):
    reservation = make_booking(ada, now=START - 72 * HOUR)
    refund = 75 if terms == ALL_BACK else 0
    assert cancelled(reservation, now=START - before_start) == (refund, terms)
    assert SandboxPayment.objects.get().refunded == (75 if terms == ALL_BACK else 0)


@pytest.mark.parametrize(("after", "refund"), [(15 * MINUTE, 75), (16 * MINUTE, 0)])
def test_cancellation_within_15_minutes_of_booking_is_refunded_in_full(ada, after, refund):
    reservation = make_booking(ada, now=START - 2 * HOUR)
    assert cancelled(reservation, now=START - 2 * HOUR + after)[0] == refund


def test_cancellation_uses_the_policy_of_the_time_of_booking(ada, settings):
    reservation = make_booking(ada, now=START - 72 * HOUR)
    settings.CANCELLATION_NOTICE_HOURS = 48
    other = make_booking(now=START - 72 * HOUR)

    assert cancelled(reservation, now=START - 30 * HOUR)[0] == 75
    assert cancelled(other, now=START - 30 * HOUR)[1] == (
        "it is less than 48 hours before its start, so nothing is refunded."
    )


def test_cancelled_draft_has_no_fee(ada):
    assert cancelled(make_draft(ada)) == (0, NOT_CHARGED)


def test_draft_whose_start_has_passed_can_be_cancelled(ada):
    assert cancelled(make_draft(ada), now=START + HOUR) == (0, NOT_CHARGED)


def test_cancelled_pending_request_is_voided(ada):
    reservation = make_pending_booking(ada)
    assert cancelled(reservation, now=START - HOUR) == (0, NOT_CHARGED)
    assert reservation.payments.get().state == "voided"
    assert SandboxPayment.objects.get().state == "voided"


def test_cancelled_free_booking_has_no_fee(ada):
    AllowanceFactory(user=ada)
    assert cancelled(make_booking(ada)) == (0, NOT_CHARGED)


def test_cancellation_releases_the_room(ada):
    room = make_room()
    cancel(make_booking(ada, room).pk, user=ada, now=NOW)
    assert make_booking(room=room).status == Status.CONFIRMED


@pytest.mark.parametrize("make", [make_booking, make_pending_booking])
def test_cancellation_after_start_is_refused(ada, make):
    reservation = make(ada)
    for call in (
        lambda: preview(reservation, now=START),
        lambda: cancel(reservation.pk, user=ada, now=START),
    ):
        with pytest.raises(ReservationNotOpen, match="has begun"):
            call()


@pytest.mark.parametrize(
    "status", [Status.PROCESSING, Status.DECLINED, Status.EXPIRED, Status.COMPLETED, Status.NO_SHOW]
)
def test_cancellation_of_closed_reservation_is_refused(status):
    reservation = ReservationFactory(status=status)
    for call in (
        lambda: preview(reservation, now=NOW),
        lambda: cancel(reservation.pk, user=reservation.user, now=NOW),
    ):
        with pytest.raises(ReservationNotOpen):
            call()
    reservation.refresh_from_db()
    assert reservation.status == status


def test_customers_cancel_their_own_and_staff_any_reservation(ada):
    reservation = make_booking(ada)
    with pytest.raises(NotFound):
        cancel(reservation.pk, user=UserFactory(), now=NOW)
    with pytest.raises(NotFound):
        cancel(999, user=ada, now=NOW)
    assert cancel(reservation.pk, now=NOW).refund == 75


def test_cancellation_preview_changes_nothing(ada):
    reservation = make_booking(ada)
    preview(reservation, now=NOW)
    reservation.refresh_from_db()
    assert reservation.status == Status.CONFIRMED
    assert not Refund.objects.exists()


# --- Gateway timeouts ----------------------------------------------------------------------------


def fault(operation, kind="timeout_before", times=1):
    return SandboxFault.objects.create(operation=operation, kind=kind, times=times)


@pytest.mark.parametrize("kind", ["timeout_before", "timeout_after", "error", "reset"])
def test_failed_refund_stays_due_and_is_paid_once(ada, kind):
    reservation = make_booking(ada)
    fault("refund", kind)

    assert cancel(reservation.pk, user=ada, now=NOW).refund == 75
    assert Refund.objects.get().state == "started"

    for _ in range(2):
        payment_recovery.fulfil_obligations(reservation.payments.get(), now=NOW)
        assert Refund.objects.get().state == "done"
        assert SandboxPayment.objects.get().refunded == 75
    assert reservation.payments.get().state == "refunded"


@pytest.mark.parametrize("kind", ["timeout_before", "timeout_after"])
def test_failed_void_stays_due(ada, kind):
    reservation = make_pending_booking(ada)
    fault("void", kind)

    cancel(reservation.pk, user=ada, now=NOW)
    assert reservation.payments.get().state == "authorized"

    payment_recovery.fulfil_obligations(reservation.payments.get(), now=NOW)
    assert reservation.payments.get().state == "voided"


def test_late_cancellation_captures_an_authorized_payment_first(ada):
    fault("capture")
    reservation = make_booking(ada)
    assert reservation.payments.get().state == "authorized"

    assert cancel(reservation.pk, user=ada, now=NOW).refund == 75
    assert SandboxPayment.objects.get().captures == 1
    assert SandboxPayment.objects.get().refunded == 75


def test_cancellation_is_refused_while_capture_fails(ada):
    fault("capture", times=2)
    reservation = make_booking(ada)

    with pytest.raises(ServiceUnavailable, match="Nothing was changed"):
        cancel(reservation.pk, user=ada, now=NOW)

    reservation.refresh_from_db()
    assert reservation.status == Status.CONFIRMED
    assert cancel(reservation.pk, user=ada, now=NOW).refund == 75


def test_cancelled_draft_after_decline_has_no_fee(ada):
    reservation = make_draft(ada)
    with pytest.raises(Exception, match="declined"):
        checkout.check_out(
            reservation.pk,
            user=ada,
            payment_method=make_payment_method("4000000000000002"),
            now=NOW,
        )
    assert cancelled(reservation) == (0, NOT_CHARGED)
