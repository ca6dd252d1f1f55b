"""The sandbox. test_gateways.py tests what all gateways have in common."""

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from payments import gateways
from payments.cards import parse_card
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.gateways.sandbox_cards import DECLINE_MESSAGES, OUTCOMES, SUCCEEDS
from payments.gateways.sandbox_models import (
    FaultKind,
    SandboxCard,
    SandboxFault,
    SandboxPayment,
)
from roombook.errors import CardDeclined, ServiceUnavailable
from tests.concurrency import run_concurrently

pytestmark = pytest.mark.django_db

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
TEN = Decimal("10.00")


@pytest.fixture
def gateway():
    return gateways.get_current_gateway()


def card(number="4242424242424242"):
    return parse_card(
        {
            "first_name": "Ada",
            "last_name": "Lovelace",
            "credit_card_number": number,
            "expiration_date": NOW,
        },
        now=NOW,
    )


def authorize(gateway, key, source=None, amount=TEN):
    return gateway.authorize(
        key=key,
        amount=amount,
        currency="USD",
        source=source or card(),
        description="Reservation 1",
    )


# --- Test cards ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [n for n, outcome in OUTCOMES.items() if outcome == SUCCEEDS])
def test_test_cards_succeed(gateway, number):
    gateway.check_card(card(number))
    reference = gateway.store_card(card(number), customer="1")
    gateway.check_card(reference)

    assert authorize(gateway, uuid4(), card(number)).state == "authorized"
    assert authorize(gateway, uuid4(), reference).state == "authorized"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("4000000000000002", "was declined"),
        ("4000000000009995", "insufficient funds"),
        ("4000000000000069", "has expired"),
        ("4000000000000127", "security code is incorrect"),
        ("4000000000000119", "error occurred while processing"),
        ("4000000000009987", "was declined"),
        ("4000000000009979", "was declined"),
        ("4111111111111111", "takes only test cards"),
    ],
)
def test_test_cards_for_declines_are_declined(gateway, number, words):
    outcome = authorize(gateway, uuid4(), card(number))
    assert outcome.state == "declined"
    assert words in outcome.message
    assert "not charged" in outcome.message
    assert outcome.last4 == number[-4:]

    with pytest.raises(CardDeclined, match=words):
        gateway.check_card(card(number))
    with pytest.raises(CardDeclined, match=words):
        gateway.store_card(card(number), customer="1")
    assert not SandboxCard.objects.exists()


def test_every_outcome_has_a_message():
    assert set(OUTCOMES.values()) - {SUCCEEDS} <= set(DECLINE_MESSAGES)


def test_sandbox_stores_no_number_and_no_code(gateway):
    reference = gateway.store_card(replace(card(), security_code="987"), customer="1")
    authorize(gateway, uuid4(), card())

    kept = SandboxCard.objects.get(reference=reference)
    rows = str(vars(kept)) + str(vars(SandboxPayment.objects.get()))
    assert "424242" not in rows
    assert "987" not in str([kept.outcome, kept.brand, kept.last4])


# --- Faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "was_done"),
    [
        (FaultKind.TIMEOUT_BEFORE, False),
        (FaultKind.ERROR, False),
        (FaultKind.TIMEOUT_AFTER, True),
        (FaultKind.RESET, True),
    ],
)
def test_timeout_hides_whether_the_operation_was_done(gateway, kind, was_done):
    key = uuid4()
    SandboxFault.objects.create(operation="authorize", kind=kind, times=1)

    with pytest.raises(GatewayUnavailable) as error:
        authorize(gateway, key)
    assert isinstance(error.value, ServiceUnavailable)

    assert (gateway.find_payment(key) is not None) is was_done
    # It affects one call; a retry succeeds.
    assert authorize(gateway, key).state == "authorized"


def test_slow_fault_delays_the_answer(gateway):
    SandboxFault.objects.create(operation="*", kind=FaultKind.SLOW, seconds=0.05)

    start = time.monotonic()
    assert authorize(gateway, uuid4()).state == "authorized"
    assert time.monotonic() - start >= 0.05


def test_fault_affects_only_its_operation(gateway):
    key = uuid4()
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_AFTER)

    authorize(gateway, key)
    for _ in range(2):
        with pytest.raises(GatewayUnavailable):
            gateway.capture(key)
    SandboxFault.objects.all().delete()
    assert gateway.capture(key).state == "captured"
    assert SandboxPayment.objects.get().captures == 1


# --- Many at once --------------------------------------------------------------------------------


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
class TestParallelCalls:
    def test_parallel_refunds_never_exceed_the_captured_amount(self, gateway):
        key = uuid4()
        authorize(gateway, key)
        gateway.capture(key)

        def refund():
            gateway.refund(key=key, refund_key=uuid4(), amount=Decimal("3.00"))
            return "refunded"

        answers = Counter(run_concurrently([refund] * 12, losers=(GatewayRefused,)))
        assert answers == {"refunded": 3, "GatewayRefused": 9}
        assert SandboxPayment.objects.get().refunded == Decimal("9.00")

    def test_fault_affects_as_many_calls_as_its_times(self, gateway):
        SandboxFault.objects.create(operation="lookup", kind=FaultKind.ERROR, times=3)

        def look():
            gateway.find_payment(uuid4())
            return "answer"

        answers = Counter(run_concurrently([look] * 12, losers=(GatewayUnavailable,)))
        assert answers == {"GatewayUnavailable": 3, "answer": 9}
