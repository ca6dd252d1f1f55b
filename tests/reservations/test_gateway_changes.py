"""Payments that changed at the gateway or the bank, without a request of the application."""

from datetime import timedelta

import pytest

from accounts.models import OutboxMessage
from payments import lifecycle, refunds
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import FaultKind, SandboxFault, SandboxPayment
from payments.models import Payment, PaymentState, Refund
from reservations.booking import approval, cancellation, checkout, integrity, payment_recovery
from reservations.booking.cancellation import cancel, preview
from reservations.models import PromoCode, Reservation
from reservations.models.status import Status
from roombook.errors import ReservationNotOpen
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
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
    lifecycle.record_gateway_result(
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


def test_booking_with_refused_capture_can_be_cancelled(monkeypatch):
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reservation = make_booking()
    assert get_states()[:2] == (Status.CONFIRMED, PaymentState.AUTHORIZED)

    def refuse(self, key):
        raise GatewayRefused("no")

    monkeypatch.setattr(SandboxGateway, "capture", refuse)
    outcome = cancel(reservation.pk, now=NOW)

    assert outcome.refund == 0
    assert get_states() == (Status.CANCELLED, PaymentState.VOIDED, "voided")


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
