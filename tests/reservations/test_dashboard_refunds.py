"""Refunds that staff make in the gateway's dashboard, and refunds that the bank returns."""

from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

import pytest

from payments import gateway_events, refunds, unknown_payments
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import FaultKind, SandboxFault, SandboxPayment
from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.booking import alerts, checkout, integrity, payment_recovery
from reservations.booking.cancellation import cancel
from reservations.booking.price_adjustments import adjust_price
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import (
    MINUTE,
    NOW,
    make_booking,
    make_draft,
    make_payment_method,
)

pytestmark = pytest.mark.django_db


def refund_in_dashboard(amount):
    """Refund at the gateway, without us, and receive the event about it."""
    payment = Payment.objects.last()
    SandboxGateway().refund(key=payment.key, refund_key=uuid4(), amount=Decimal(amount))
    return gateway_events.refresh_with_refunds(payment, now=NOW + MINUTE)


def reduce_price(booking, amount):
    adjust_price(booking.pk, amount=-Decimal(amount), reason="Noise", by=booking.user, now=NOW)


def get_amounts():
    return list(Refund.objects.order_by("pk").values_list("amount", "state"))


def find_refused_refunds():
    return [text for _, text in alerts.find_refused_refunds(Payment.objects.all())]


@pytest.fixture
def refused(monkeypatch):
    """A booking of 75 whose price is reduced by 20. The gateway refuses to refund that."""
    booking = make_booking()
    # The bank has returned an earlier refund: the gateway has no more than 10 to refund.
    SandboxPayment.objects.update(refunded=65)
    reduce_price(booking, 20)
    SandboxPayment.objects.update(refunded=0)
    assert get_amounts() == [(20, RefundState.REFUSED)]
    return booking


def test_booking_with_more_refunds_due_than_paid_can_be_cancelled():
    """A refund of 40 is due. Meanwhile, 60 of 75 are refunded in the dashboard."""
    booking = make_booking()
    SandboxFault.objects.create(operation="refund", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reduce_price(booking, 40)
    refund_in_dashboard(60)

    cancelled = cancel(booking.pk, now=NOW + MINUTE)

    assert (cancelled.refund, Reservation.objects.get().status) == (0, Status.CANCELLED)


def test_refund_in_dashboard_instead_of_a_refused_one_is_its_retry(refused):
    assert find_refused_refunds()

    refund_in_dashboard(20)

    assert not find_refused_refunds()
    assert Refund.objects.get(state=RefundState.DONE).again.amount == 20
    assert not list(integrity.find_problems(now=NOW))
    # The customer gets the rest, and no less.
    assert cancel(refused.pk, now=NOW + MINUTE).refund == 55


def test_refund_in_dashboard_of_another_amount_is_no_retry(refused):
    refund_in_dashboard(5)

    assert find_refused_refunds()


def test_full_refund_in_dashboard_after_a_manual_refund_is_a_full_refund(refused):
    refunds.mark_refunded_manually(Refund.objects.get(), reason="In cash", now=NOW)

    payment = refund_in_dashboard(75)

    assert payment.state == PaymentState.REFUNDED
    [problem] = integrity.find_problems(now=NOW)
    assert "refunds above their payment" in str(problem)


@pytest.fixture
def returned(monkeypatch):
    """A booking whose first payment was captured and refunded at the gateway. The bank returns it.

    The worker of the first checkout died after the authorization.
    """
    draft = make_draft()
    options = {"user": draft.user, "payment_method": make_payment_method()}
    SandboxFault.objects.create(operation="authorize", kind=FaultKind.TIMEOUT_AFTER, times=1)
    checkout.check_out(draft.pk, **options, now=NOW)
    first = Payment.objects.get()
    SandboxGateway().capture(first.key)
    SandboxGateway().refund(key=first.key, refund_key=uuid4(), amount=first.amount)
    payment_recovery.resolve_payment(first, now=NOW + MINUTE)
    checkout.check_out(draft.pk, **options, now=NOW + MINUTE)
    states = list(Payment.objects.order_by("pk").values_list("state", flat=True))
    assert states == [PaymentState.REFUNDED, PaymentState.CAPTURED]
    list_refunds = SandboxGateway.list_refunds
    monkeypatch.setattr(
        SandboxGateway,
        "list_refunds",
        lambda self, key: [replace(each, failed=True) for each in list_refunds(self, key)],
    )
    return gateway_events.refresh_with_refunds(Payment.objects.get(pk=first.pk), now=NOW + MINUTE)


def test_returned_refund_of_an_earlier_payment_needs_attention_until_it_is_made(returned):
    assert returned.refunds.get().state == RefundState.REFUSED
    assert find_refused_refunds()
    assert {str(each).partition(":")[0] for each in integrity.find_problems(now=NOW)} == {
        "reservations paid twice",
        "refunded without refunds",
    }

    refunds.mark_refunded_manually(returned.refunds.get(), reason="In cash", now=NOW)

    assert not find_refused_refunds()
    assert not list(integrity.find_problems(now=NOW))


def test_returned_refund_of_an_earlier_payment_can_be_retried(returned):
    retry = refunds.create_retry_refund(returned.refunds.get(), now=NOW)

    assert (retry.amount, retry.payment) == (75, returned)
    assert not find_refused_refunds()


@pytest.fixture
def due():
    """A refund of 20 that is due: the gateway did not answer."""
    booking = make_booking()
    SandboxFault.objects.create(operation="refund", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reduce_price(booking, 20)
    return Refund.objects.get(state=RefundState.STARTED)


def test_refund_that_succeeds_after_a_parallel_call_was_refused_is_done(due, monkeypatch):
    """Otherwise staff would refund it a second time."""
    refund = SandboxGateway.refund

    def refuse(*args, **kwargs):
        raise GatewayRefused("There is a parallel call.")

    def refund_and_refuse_another(self, **kwargs):
        refund(self, **kwargs)
        monkeypatch.setattr(SandboxGateway, "refund", refuse)
        with pytest.raises(GatewayRefused):
            refunds.execute_refund(due, now=NOW)

    monkeypatch.setattr(SandboxGateway, "refund", refund_and_refuse_another)
    refunds.execute_refund(due, now=NOW)

    assert get_amounts() == [(20, RefundState.DONE)]
    assert not find_refused_refunds()


def test_refused_refund_that_the_gateway_has_made_is_found_by_reconcile(due):
    refunds.execute_refund(due, now=NOW)
    Refund.objects.update(state=RefundState.REFUSED, done_at=None)

    changed = unknown_payments.compare(SandboxGateway(), since=NOW.replace(year=2000), now=NOW)
    for payment in changed:
        gateway_events.refresh_with_refunds(payment, now=NOW)

    assert get_amounts() == [(20, RefundState.DONE)]
