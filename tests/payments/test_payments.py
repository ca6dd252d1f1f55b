"""Payments, refunds and saved cards in our database, with the sandbox as the gateway."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from payments import lifecycle, refunds, saved_cards
from payments.gateway_results import record_gateway_result
from payments.gateways.base import GatewayPayment
from payments.gateways.sandbox_models import SandboxCard
from payments.models import InvalidPaymentTransition, Payment, Refund
from roombook.errors import ReservationNotOpen
from tests.payments.gateway_helpers import MINUTE, NOW, authorized, card_of

pytestmark = pytest.mark.django_db

# --- Payments -------------------------------------------------------------------------------------


def test_second_open_payment_of_a_reservation_is_refused_by_the_database(start, ada):
    first = start()
    for _ in range(3):
        with pytest.raises(ReservationNotOpen) as refused, transaction.atomic():
            start()
        assert isinstance(refused.value.__cause__, IntegrityError)
        first.refresh_from_db()
        if first.state == "started":
            first = authorized(first, ada)
        elif first.state == "authorized":
            first = lifecycle.capture_payment(first, now=NOW)


def test_repeated_or_outdated_gateway_result_changes_nothing(start, ada):
    payment = start()
    held = lifecycle.authorize_payment(payment, card_of(ada), description="", on_session=False)
    payment = record_gateway_result(payment, held, now=NOW)
    assert record_gateway_result(payment, held, now=NOW + MINUTE).authorized_at == NOW

    payment = lifecycle.capture_payment(payment, now=NOW)
    assert record_gateway_result(payment, held, now=NOW + MINUTE).state == "captured"
    assert lifecycle.capture_payment(payment, now=NOW + MINUTE).captured_at == NOW


def test_contradicting_gateway_result_raises_invalid_transition(start, ada):
    payment = start()
    cheaper = GatewayPayment(state="authorized", reference="x", amount=Decimal("5.00"))
    with pytest.raises(InvalidPaymentTransition):
        record_gateway_result(payment, cheaper, now=NOW)

    lifecycle.void_payment(payment, now=NOW)
    charged = GatewayPayment(state="captured", reference="x", amount=Decimal("50.00"))
    with pytest.raises(InvalidPaymentTransition):
        record_gateway_result(payment, charged, now=NOW)
    payment.refresh_from_db()
    assert payment.state == "voided"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("payment_amount_is_above_zero", {"amount": 0}),
        ("payment_state_is_known", {"state": "paid"}),
        ("payment_captured_has_its_time", {"state": "captured"}),
        ("payment_authorized_has_its_time", {"state": "authorized"}),
    ],
)
def test_database_constraints_refuse_invalid_payments(start, name, fields):
    payment = start()
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Payment.objects.filter(pk=payment.pk).update(**fields)


# --- Refunds --------------------------------------------------------------------------------------


def test_create_refund_of_uncaptured_payment_raises(start, ada):
    payment = authorized(start(), ada)
    with pytest.raises(InvalidPaymentTransition):
        refunds.create_refund(payment, amount=Decimal("1.00"), reason="", now=NOW)


@pytest.mark.parametrize("amount", ["0", "-1.00", "30.01"])
def test_create_refund_beyond_the_rest_raises(captured, amount):
    refunds.create_refund(captured, amount=Decimal("20.00"), reason="", now=NOW)
    with pytest.raises(InvalidPaymentTransition):
        refunds.create_refund(captured, amount=Decimal(amount), reason="", now=NOW)
    assert Refund.objects.count() == 1


def test_refund_is_never_done_before_it_was_created(captured):
    refund = refunds.create_refund(captured, amount=Decimal("50.00"), reason="", now=NOW)

    assert refunds.execute_refund(refund, now=NOW - MINUTE).done_at == NOW
    captured.refresh_from_db()
    assert captured.state == "refunded"


# --- The card that pays ---------------------------------------------------------------------------


def test_card_is_deleted_at_the_gateway_if_its_row_cannot_be_saved(ada, monkeypatch):
    def fails(*args):
        raise RuntimeError("the database went away")

    monkeypatch.setattr(saved_cards, "replace_saved_card", fails)
    with pytest.raises(RuntimeError):
        saved_cards.save_card(ada, card_of(ada), now=NOW)
    assert not SandboxCard.objects.exists()
