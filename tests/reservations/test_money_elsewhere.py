"""Money that moved without us: in the gateway's dashboard, at the bank, while nobody looked."""

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


def books():
    """Reservation, payment, and what the gateway has of it."""
    taken = SandboxPayment.objects.get()
    return Reservation.objects.get().status, Payment.objects.get().state, taken.state


def captured_in_the_dashboard():
    SandboxGateway().capture(Payment.objects.get().key)


def test_a_request_whose_money_is_known_to_be_gone_is_not_approved_for_nothing():
    reservation = make_pending_booking()
    lifecycle.void_payment(Payment.objects.get(), now=NOW)

    with pytest.raises(ReservationNotOpen, match="no longer reserved"):
        approval.approve(reservation.pk, now=NOW)

    assert books() == (Status.EXPIRED, PaymentState.VOIDED, "voided")
    assert OutboxMessage.objects.last().subject.startswith("Ended")


def test_a_request_whose_money_lapsed_unnoticed_is_not_approved_either():
    reservation = make_pending_booking()
    SandboxGateway().void(Payment.objects.get().key)

    with pytest.raises(ReservationNotOpen, match="no longer reserved"):
        approval.approve(reservation.pk, now=NOW)

    assert books() == (Status.EXPIRED, PaymentState.VOIDED, "voided")


def test_a_request_that_was_captured_elsewhere_is_paid_back_when_cancelled():
    reservation = make_pending_booking()
    captured_in_the_dashboard()
    lifecycle.record_gateway_result(
        Payment.objects.get(), SandboxGateway().find_payment(Payment.objects.get().key), now=NOW
    )

    told = preview(Reservation.objects.get(), now=NOW)
    first = cancel(reservation.pk, now=NOW)
    again = cancel(reservation.pk, now=NOW)

    assert told.refund == first.refund == again.refund == 75
    assert (
        first.message
        == again.message
        == ("The reservation is cancelled: $75.00 is refunded to Visa ending 4242.")
    )
    assert books() == (Status.CANCELLED, PaymentState.REFUNDED, "refunded")
    assert not list(integrity.find_problems(now=NOW))


@pytest.mark.parametrize("end", [cancel, approval.decline])
def test_a_capture_elsewhere_that_we_never_heard_of_is_paid_back_too(end):
    reservation = make_pending_booking()
    captured_in_the_dashboard()

    end(reservation.pk, now=NOW)

    assert books()[1:] == (PaymentState.REFUNDED, "refunded")


def test_money_that_was_taken_for_an_expired_request_is_paid_back():
    reservation = make_pending_booking()
    approval.decline(reservation.pk, now=NOW)
    Payment.objects.update(state=PaymentState.CAPTURED, captured_at=NOW, settled_at=None)
    SandboxPayment.objects.update(state="captured", captures=1)

    for _ in range(2):
        payment_recovery.fulfil_obligations(Payment.objects.get(), now=NOW)

    assert books()[1:] == (PaymentState.REFUNDED, "refunded")
    assert Refund.objects.count() == 1


def test_a_booking_whose_money_can_never_be_taken_can_be_cancelled(monkeypatch):
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reservation = make_booking()
    assert books()[:2] == (Status.CONFIRMED, PaymentState.AUTHORIZED)

    def refuse(self, key):
        raise GatewayRefused("no")

    monkeypatch.setattr(SandboxGateway, "capture", refuse)
    outcome = cancel(reservation.pk, now=NOW)

    assert outcome.refund == 0
    assert books() == (Status.CANCELLED, PaymentState.VOIDED, "voided")


def test_what_was_paid_back_already_is_told_so():
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


def test_nobody_is_charged_for_a_meeting_that_had_begun_before_anybody_knew():
    SandboxFault.objects.create(operation="authorize", kind=FaultKind.TIMEOUT_AFTER, times=1)
    reservation = make_draft(start=NOW + HOUR)
    checkout.check_out(
        reservation.pk, user=reservation.user, payment_method=make_payment_method(), now=NOW
    )
    assert books() == (Status.PROCESSING, PaymentState.STARTED, "authorized")

    payment_recovery.resolve_payment(Payment.objects.get(), now=NOW + timedelta(hours=2))

    assert books() == (Status.NEW, PaymentState.VOIDED, "voided")


def test_a_page_that_was_open_during_a_checkout_does_not_write_the_counters_back(rf):
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
