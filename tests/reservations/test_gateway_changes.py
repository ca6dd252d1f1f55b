"""Payments that changed at the gateway or the bank, without a request of the application."""

from datetime import timedelta
from decimal import Decimal

import pytest

from accounts.models import OutboxMessage
from payments import lifecycle, refunds
from payments.gateway_results import record_gateway_result
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import FaultKind, SandboxFault, SandboxPayment
from payments.models import Payment, PaymentState, Refund
from reservations.booking import (
    approval,
    cancellation,
    checkout,
    integrity,
    payment_recovery,
    price_adjustments,
)
from reservations.booking.cancellation import cancel, preview
from reservations.booking.payment_recovery import CaptureRefused
from reservations.models import PromoCode, Reservation
from reservations.models.status import Status
from roombook.errors import InvalidRequest, ReservationNotOpen
from tests.factories_people import AdministratorFactory, StaffFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
)
from tests.reservations.rescheduling_helpers import (
    get_stored_values,
    make_room_at_rate,
    reschedule,
)

pytestmark = pytest.mark.django_db


def get_states():
    """Return the states of the reservation, the payment and the payment at the gateway."""
    gateway_payment = SandboxPayment.objects.get()
    return Reservation.objects.get().status, Payment.objects.get().state, gateway_payment.state


def capture_at_gateway():
    SandboxGateway().capture(Payment.objects.get().key)


def test_approve_request_with_voided_payment_is_refused():
    reservation = make_pending_booking()
    lifecycle.void_payment(Payment.objects.get(), now=NOW)

    with pytest.raises(ReservationNotOpen, match="no longer reserved"):
        approval.approve(reservation.pk, now=NOW)

    assert get_states() == (Status.EXPIRED, PaymentState.VOIDED, "voided")
    assert OutboxMessage.objects.last().subject.startswith("Ended")


def test_approve_request_with_payment_voided_at_gateway_is_refused():
    reservation = make_pending_booking()
    SandboxGateway().void(Payment.objects.get().key)

    with pytest.raises(ReservationNotOpen, match="no longer reserved"):
        approval.approve(reservation.pk, now=NOW)

    assert get_states() == (Status.EXPIRED, PaymentState.VOIDED, "voided")


def test_cancelled_request_captured_at_gateway_is_refunded():
    reservation = make_pending_booking()
    capture_at_gateway()
    record_gateway_result(
        Payment.objects.get(), SandboxGateway().find_payment(Payment.objects.get().key), now=NOW
    )

    terms = preview(Reservation.objects.get(), now=NOW)
    first = cancel(reservation.pk, now=NOW)
    again = cancel(reservation.pk, now=NOW)

    assert terms.refund == first.refund == again.refund == 75
    assert (
        first.message
        == again.message
        == ("The reservation is cancelled: $75.00 is refunded to Visa ending 4242.")
    )
    assert get_states() == (Status.CANCELLED, PaymentState.REFUNDED, "refunded")
    assert not list(integrity.find_problems(now=NOW))


@pytest.mark.parametrize("end", [cancel, approval.decline])
def test_closed_request_with_unknown_capture_is_refunded(end):
    reservation = make_pending_booking()
    capture_at_gateway()

    end(reservation.pk, now=NOW)

    assert get_states()[1:] == (PaymentState.REFUNDED, "refunded")


def test_payment_captured_for_declined_request_is_refunded():
    reservation = make_pending_booking()
    approval.decline(reservation.pk, now=NOW)
    Payment.objects.update(state=PaymentState.CAPTURED, captured_at=NOW, settled_at=None)
    SandboxPayment.objects.update(state="captured", captures=1)

    for _ in range(2):
        payment_recovery.fulfil_obligations(Payment.objects.get(), now=NOW)

    assert get_states()[1:] == (PaymentState.REFUNDED, "refunded")
    assert Refund.objects.count() == 1


def refuse_to(monkeypatch, *operations):
    """Let the gateway refuse these operations."""

    def refuse(self, key):
        raise GatewayRefused("no")

    for operation in operations:
        monkeypatch.setattr(SandboxGateway, operation, refuse)


@pytest.fixture
def uncaptured():
    """A booking whose payment is authorized and not captured."""
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reservation = make_booking()
    assert get_states()[:2] == (Status.CONFIRMED, PaymentState.AUTHORIZED)
    return reservation


def test_booking_with_refused_capture_can_be_cancelled(uncaptured, monkeypatch):
    refuse_to(monkeypatch, "capture")

    outcome = cancel(uncaptured.pk, now=NOW)

    assert outcome.refund == 0
    assert get_states() == (Status.CANCELLED, PaymentState.VOIDED, "voided")


def test_cancellation_with_expected_refund_and_refused_capture_voids_the_payment(
    uncaptured, monkeypatch
):
    refuse_to(monkeypatch, "capture")

    assert cancel(uncaptured.pk, expected_refund=Decimal(75), now=NOW).refund == 0
    assert get_states() == (Status.CANCELLED, PaymentState.VOIDED, "voided")


def test_cancellation_with_refused_capture_and_refused_void_succeeds(uncaptured, monkeypatch):
    refuse_to(monkeypatch, "capture", "void")

    assert cancel(uncaptured.pk, now=NOW).refund == 0
    assert get_states() == (Status.CANCELLED, PaymentState.AUTHORIZED, "authorized")


def test_cancellation_that_is_too_late_leaves_the_payment_unchanged(uncaptured, monkeypatch):
    refuse_to(monkeypatch, "capture")

    with pytest.raises(ReservationNotOpen, match="has begun"):
        cancel(uncaptured.pk, now=START)
    assert get_states() == (Status.CONFIRMED, PaymentState.AUTHORIZED, "authorized")


def adjust(reservation, amount, **options):
    options = {"by": reservation.user, "now": NOW, **options}
    return price_adjustments.adjust_price(
        reservation.pk, amount=Decimal(amount), reason="Noise", **options
    )


def test_refused_price_adjustment_leaves_the_payment_unchanged(uncaptured, monkeypatch):
    refuse_to(monkeypatch, "capture")

    with pytest.raises(ReservationNotOpen, match="only be lowered"):
        adjust(uncaptured, 5)
    with pytest.raises(ReservationNotOpen, match="price has changed"):
        adjust(uncaptured, -5, expected_total=Decimal(60))
    assert get_states() == (Status.CONFIRMED, PaymentState.AUTHORIZED, "authorized")


def test_refused_reschedule_leaves_the_payment_unchanged(uncaptured, monkeypatch):
    refuse_to(monkeypatch, "capture")
    expensive = make_room_at_rate(uncaptured.room, 40)

    with pytest.raises(ReservationNotOpen, match="more"):
        reschedule(uncaptured, StaffFactory(), room=expensive)
    with pytest.raises(InvalidRequest):
        reschedule(uncaptured, StaffFactory())
    assert get_states() == (Status.CONFIRMED, PaymentState.AUTHORIZED, "authorized")


@pytest.mark.parametrize("operations", [["capture"], ["capture", "void"]])
def test_price_reduction_with_refused_capture_changes_nothing(uncaptured, monkeypatch, operations):
    refuse_to(monkeypatch, *operations)
    before = get_stored_values(uncaptured)
    cheap = make_room_at_rate(uncaptured.room, 15)

    for attempt in (
        lambda: adjust(uncaptured, -5),
        lambda: reschedule(uncaptured, StaffFactory(), room=cheap),
    ):
        with pytest.raises(CaptureRefused, match="Nothing was changed"):
            attempt()

    assert get_stored_values(uncaptured) == before
    assert get_states() == (Status.CONFIRMED, PaymentState.AUTHORIZED, "authorized")


def test_reschedule_at_the_same_price_needs_no_capture(uncaptured, monkeypatch):
    refuse_to(monkeypatch, "capture")

    reschedule(uncaptured, StaffFactory(), start=START + 24 * HOUR)

    assert get_states() == (Status.CONFIRMED, PaymentState.AUTHORIZED, "authorized")


def test_cancellation_after_full_refund_says_already_refunded():
    reservation = make_booking()
    payment = Payment.objects.get()
    refund = refunds.create_refund(payment, amount=payment.amount, reason="Goodwill", now=NOW)
    refunds.execute_refund(refund, now=NOW)

    for _ in range(2):
        outcome = cancel(reservation.pk, now=NOW + MINUTE)
        assert (outcome.refund, outcome.message) == (
            0,
            cancellation.CANCELLED + cancellation.ALREADY_REFUNDED,
        )


def test_payment_resolved_after_start_is_voided():
    SandboxFault.objects.create(operation="authorize", kind=FaultKind.TIMEOUT_AFTER, times=1)
    reservation = make_draft(start=NOW + HOUR)
    checkout.check_out(
        reservation.pk, user=reservation.user, payment_method=make_payment_method(), now=NOW
    )
    assert get_states() == (Status.PROCESSING, PaymentState.STARTED, "authorized")

    payment_recovery.resolve_payment(Payment.objects.get(), now=NOW + timedelta(hours=2))

    assert get_states() == (Status.NEW, PaymentState.VOIDED, "voided")


def test_promo_code_page_saved_after_checkout_keeps_the_counters(rf):
    from django.contrib import admin

    promo = PromoCodeFactory(code="TEN")
    stale = PromoCode.objects.get()
    PromoCode.objects.update(uses=3, spent=30)
    page = admin.site._registry[PromoCode]
    request = rf.post("/")
    request.user = AdministratorFactory()
    stale.description = "Ten off"
    form = page.get_form(request, stale, change=True)(instance=stale)
    form.changed_data = ["description"]

    page.save_model(request, stale, form, change=True)

    promo.refresh_from_db()
    assert (promo.description, promo.uses, promo.spent) == ("Ten off", 3, 30)
