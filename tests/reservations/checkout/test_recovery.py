"""Checkout survives a crash at any step: it charges at most once, and only for a booking."""

import pytest

from payments import lifecycle
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment
from reservations.booking import authorization, payment_recovery
from reservations.booking.cancellation import cancel
from reservations.models.status import Status
from roombook.errors import ReservationNotOpen, SlotUnavailable
from tests.factories_reservations import DECLINED_NUMBER, HOUR, MINUTE, NOW, make_draft
from tests.reservations.checkout.helpers import (
    LEASE_OVER,
    count_charges,
    fault,
    get_benefits,
    has_no_problems,
    pay,
)

pytestmark = pytest.mark.django_db


# --- Gateway timeouts ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["timeout_before", "error", "timeout_after", "reset"])
def test_unresolved_payment_is_processing_until_retry_after_lease(drafted, plan, promo, kind):
    fault("authorize", kind)
    reservation = pay(drafted)
    assert (reservation.status, reservation.holds_slot) == (Status.PROCESSING, True)
    assert get_benefits(plan, promo) == (1, 1)

    # The payment is not resolved while its lease is active.
    for number in ("4242424242424242", DECLINED_NUMBER):
        assert pay(drafted, number, now=NOW + MINUTE / 2).status == Status.PROCESSING
    assert SandboxPayment.objects.count() == (kind in {"timeout_after", "reset"})
    with pytest.raises(SlotUnavailable):
        make_draft(room=drafted.room, now=NOW + HOUR)

    assert pay(drafted, now=LEASE_OVER).status == Status.CONFIRMED

    assert count_charges() == 1
    assert get_benefits(plan, promo) == (1, 1)
    states = [each.state for each in drafted.payments.order_by("pk")]
    is_done_at_gateway = kind in {"timeout_after", "reset"}
    assert states == (["captured"] if is_done_at_gateway else ["voided", "captured"])
    assert has_no_problems(LEASE_OVER)


def test_resolve_payment_confirms_an_authorized_payment(drafted):
    fault("authorize", "timeout_after")
    payment = pay(drafted).payments.get()

    for _ in range(2):
        payment_recovery.resolve_payment(payment, now=LEASE_OVER)
        payment.refresh_from_db()
        assert payment.state == "captured"
        assert count_charges() == 1
    drafted.refresh_from_db()
    assert drafted.status == Status.CONFIRMED


def test_resolve_payment_without_authorization_returns_benefits(drafted, plan, promo):
    fault("authorize", "timeout_before")
    payment = pay(drafted).payments.get()

    for _ in range(2):
        assert payment_recovery.resolve_payment(payment, now=LEASE_OVER).state == "voided"
    drafted.refresh_from_db()
    assert (drafted.status, drafted.hold_until) == (Status.NEW, LEASE_OVER + 10 * MINUTE)
    assert get_benefits(plan, promo) == (0, 0)
    assert count_charges() == 0
    assert has_no_problems(LEASE_OVER)


def test_declined_card_after_timeout_does_not_book(drafted, plan, promo):
    fault("authorize", "timeout_after")
    assert pay(drafted, DECLINED_NUMBER).status == Status.PROCESSING

    assert pay(drafted, "5555555555554444", now=LEASE_OVER).status == Status.CONFIRMED
    assert [each.state for each in drafted.payments.order_by("pk")] == ["declined", "captured"]
    assert get_benefits(plan, promo) == (1, 1)


def test_gateway_still_timing_out_stays_processing(drafted):
    fault("*", "timeout_before", times=3)
    pay(drafted)
    assert pay(drafted, now=LEASE_OVER).status == Status.PROCESSING
    assert pay(drafted, now=LEASE_OVER).status == Status.PROCESSING
    assert pay(drafted, now=LEASE_OVER).status == Status.CONFIRMED
    assert count_charges() == 1


def test_slow_worker_after_its_lease_expired_does_not_charge(drafted, plan, promo, monkeypatch):
    """The worker continues after its lease expired and the payment was resolved."""
    authorize = lifecycle.authorize_payment

    def late(payment, source, **kwargs):
        payment_recovery.resolve_payment(payment, now=LEASE_OVER)
        return authorize(payment, source, **kwargs)

    monkeypatch.setattr(lifecycle, "authorize_payment", late)
    with pytest.raises(ReservationNotOpen, match="You were not charged"):
        pay(drafted)

    drafted.refresh_from_db()
    assert drafted.status == Status.NEW
    assert count_charges() == 0
    assert get_benefits(plan, promo) == (0, 0)


@pytest.mark.parametrize("answers", [True, False])
def test_slow_worker_after_cancellation_does_not_charge(drafted, monkeypatch, answers):
    authorize = lifecycle.authorize_payment

    def late(payment, source, **kwargs):
        payment_recovery.resolve_payment(payment, now=LEASE_OVER)
        cancel(drafted.pk, user=drafted.user, now=LEASE_OVER)
        if not answers:
            fault("authorize", "timeout_before")
        return authorize(payment, source, **kwargs)

    monkeypatch.setattr(lifecycle, "authorize_payment", late)
    with pytest.raises(ReservationNotOpen, match="You were not charged"):
        pay(drafted)
    assert count_charges() == 0


def test_slow_worker_overtaken_by_a_retry_returns_its_booking(drafted, monkeypatch):
    authorize = lifecycle.authorize_payment

    def late(payment, source, **kwargs):
        monkeypatch.setattr(lifecycle, "authorize_payment", authorize)
        assert pay(drafted, now=LEASE_OVER).status == Status.CONFIRMED
        return authorize(payment, source, **kwargs)

    monkeypatch.setattr(lifecycle, "authorize_payment", late)
    assert pay(drafted).status == Status.CONFIRMED
    assert count_charges() == 1
    assert has_no_problems(LEASE_OVER)


# --- Crashes between the steps -------------------------------------------------------------------


class Killed(BaseException):
    """Simulates a killed worker: no exception handler catches it."""


@pytest.mark.parametrize(
    ("module", "step", "when", "settled"),
    [
        (lifecycle, "authorize_payment", "before", ["voided", "captured"]),
        (lifecycle, "authorize_payment", "after", ["captured"]),
        (authorization, "apply_authorization", "before", ["captured"]),
        (authorization, "apply_authorization", "after", ["captured"]),
        (lifecycle, "capture_payment", "before", ["captured"]),
        (lifecycle, "capture_payment", "after", ["captured"]),
    ],
)
def test_crash_at_any_step_charges_once_and_books(
    drafted, plan, promo, monkeypatch, module, step, when, settled
):
    original = getattr(module, step)

    def dying(*args, **kwargs):
        if when == "after":
            original(*args, **kwargs)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(module, step, dying)
        with pytest.raises(Killed):
            pay(drafted)

    reservation = pay(drafted, now=LEASE_OVER)
    for payment in Payment.objects.filter(state="authorized"):
        payment_recovery.fulfil_obligations(payment, now=LEASE_OVER)  # as reconcile_payments does

    assert reservation.status == Status.CONFIRMED
    assert [each.state for each in drafted.payments.order_by("pk")] == settled
    assert count_charges() == 1
    assert get_benefits(plan, promo) == (1, 1)
    assert has_no_problems(LEASE_OVER)


@pytest.mark.parametrize("kind", ["timeout_before", "timeout_after", "error", "reset"])
def test_failed_capture_stays_due_and_is_captured_later(drafted, kind):
    fault("capture", kind)

    reservation = pay(drafted)
    assert reservation.status == Status.CONFIRMED
    payment = reservation.payments.get()
    assert payment.state == "authorized"

    for _ in range(2):
        assert payment_recovery.fulfil_obligations(payment, now=NOW).state == "captured"
        assert count_charges() == 1
