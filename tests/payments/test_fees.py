"""`reconcile_payments` fetches what the gateway charges, and no payment depends on it."""

import datetime as dt
import io
from decimal import Decimal

import pytest
import stripe
import time_machine
from django.core.management import call_command

from accounts.act import Act
from payments.gateway_events import record_dispute
from payments.gateways.base import GatewayDispute, GatewayFees, GatewayRefund
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.stripe.intents import get_fee
from payments.models import Payment, Refund
from reservations.booking import cancellation
from tests.factories_reservations import NOW, make_booking

pytestmark = pytest.mark.django_db

MINUTE = dt.timedelta(minutes=1)
# 2.9 percent of $75.00, and 30 cents.
FEE = Decimal("2.48")
NOTHING = "0 payments processed.\n"


@pytest.fixture(autouse=True)
def _clock(time_machine):
    """Stop the clock of the fake Stripe server, which refuses cards that have expired."""
    time_machine.move_to(NOW, tick=False)


def reconcile(minutes, *words):
    """Run the command that many minutes after the booking; return what it printed."""
    out = io.StringIO()
    with time_machine.travel(NOW + minutes * MINUTE, tick=False):
        call_command("reconcile_payments", *words, stdout=out)
    return out.getvalue()


def count_questions(stripe_server):
    return sum("balance_transaction" in str(each.params) for each in stripe_server.requests)


def test_fee_that_is_missing_at_the_capture_is_asked_for_ever_less_often(stripe_server):
    stripe_server.settles_at_once = False
    make_booking()
    assert count_questions(stripe_server) == 0  # A checkout does not wait for it.
    day = 24 * 60

    called_after = []
    days = [day * each for each in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 49)]
    for minute in (1, 2, 3, 4, 5, 8, 9, 60, 61, 120, *days):
        before = count_questions(stripe_server)
        assert reconcile(minute) == NOTHING
        if count_questions(stripe_server) > before:
            called_after.append(minute)

    assert called_after == [1, 2, 4, 8, 60, 120, *(day * each for each in (1, 2, 4, 8, 16, 32))]
    assert (Payment.objects.get().fee, Payment.objects.get().fees_due_at) == (None, None)


def test_fees_of_a_payment_and_its_refund_are_each_fetched_once(stripe_server):
    stripe_server.settles_at_once = False
    reservation = make_booking()
    reconcile(1)
    stripe_server.add_fee(stripe_server.test, stripe_server.charges[0])

    reconcile(2)

    assert Payment.objects.get().fee == FEE
    questions = count_questions(stripe_server)
    reconcile(10)
    assert count_questions(stripe_server) == questions

    cancellation.cancel(Act(reservation.user, NOW + 11 * MINUTE), reservation.pk)
    assert Payment.objects.get().fees_due_at is not None
    reconcile(12)
    assert (Payment.objects.get().fee, Refund.objects.get().fee) == (FEE, 0)
    assert Payment.objects.get().fees_due_at is None


def test_fee_that_the_gateway_gives_back_is_stored_as_none(monkeypatch, caplog):
    booking = make_booking()
    cancellation.cancel(Act(booking.user, NOW), booking.pk)
    refund = GatewayRefund("re_1", Decimal(75), key=Refund.objects.get().key)
    fees = GatewayFees(FEE, [(refund, -FEE)])
    monkeypatch.setattr(SandboxGateway, "fetch_fees", lambda *_: fees)

    reconcile(1)

    assert (Payment.objects.get().fee, Refund.objects.get().fee) == (FEE, 0)
    assert "gives back 2.48 of its fees" in caplog.text


def test_fee_of_a_dispute_that_the_gateway_gives_back_is_stored_as_none(caplog):
    payment = make_booking().payments.get()
    reported = GatewayDispute(
        *("dp_1", Decimal(75), "USD", "fraudulent", "won", NOW),
        is_closed=True,
        fee=Decimal("-15.00"),
    )

    dispute = record_dispute(payment, reported, now=NOW)

    assert dispute.fee == 0
    assert "gives back 15.00 of its fees" in caplog.text


def test_key_that_may_not_read_balances_captures_and_refunds(stripe_server):
    stripe_server.may_read_balance = False
    reservation = make_booking()
    for minute in range(1, 4):
        assert reconcile(minute) == NOTHING
    cancellation.cancel(Act(reservation.user, NOW + 5 * MINUTE), reservation.pk)

    payment = Payment.objects.get()
    assert (payment.state, payment.fee) == ("refunded", None)
    assert len(stripe_server.calls("/capture")) == 1
    assert len(stripe_server.calls("/v1/refunds")) == 1


def test_slow_gateway_does_not_delay_the_next_run(monkeypatch):
    make_booking()
    with monkeypatch.context() as patch:
        patch.setattr("reservations.management.commands.reconcile_payments.MAX_FEE_SECONDS", -1)
        assert reconcile(1) == NOTHING
    assert Payment.objects.get().fee is None

    reconcile(2)

    assert Payment.objects.get().fee == FEE


@pytest.mark.parametrize(
    ("currency", "rate", "fee"),
    [("usd", None, "2.48"), ("eur", 0.9, "2.76"), ("eur", None, None), ("jpy", 150, "1.65")],
)
def test_fee_in_the_currency_of_the_balance_is_converted(currency, rate, fee):
    transaction = stripe.BalanceTransaction.construct_from(
        {"object": "balance_transaction", "currency": currency, "exchange_rate": rate, "fee": 248},
        "sk_test",
    )
    assert get_fee(transaction, "usd") == (Decimal(fee) if fee else None)
