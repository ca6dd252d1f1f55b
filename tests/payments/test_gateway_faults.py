"""Faults of a gateway and parallel calls, for every gateway."""

from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from payments.gateways.base import GatewayRefused, GatewayUnavailable
from roombook.errors import ServiceUnavailable
from tests.concurrency import run_concurrently
from tests.payments.gateway_helpers import TEN, authorize, card

# --- Faults -------------------------------------------------------------------------------------


FAULTS = ["timeout_before", "timeout_after", "error", "reset"]


@pytest.mark.usefixtures("_short_timeout")
@pytest.mark.parametrize("kind", FAULTS)
def test_fault_of_authorize_is_resolved_by_find_payment_and_void(gateway, probe, kind):
    key = uuid4()
    probe.fail("authorize", kind)
    with pytest.raises(GatewayUnavailable) as error:
        authorize(gateway, key)
    assert isinstance(error.value, ServiceUnavailable)

    was_done = kind in {"timeout_after", "reset"}
    found = gateway.find_payment(key)
    assert (found is not None) is was_done
    if found:
        assert found.state == "authorized"
    assert gateway.void(key).state == "voided"
    assert authorize(gateway, key).state == "voided"


@pytest.mark.usefixtures("_short_timeout")
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("operation", ["capture", "void", "refund"])
def test_fault_of_capture_void_or_refund_is_resolved_by_a_retry(gateway, probe, operation, kind):
    key, refund = uuid4(), uuid4()
    authorize(gateway, key)
    if operation == "refund":
        gateway.capture(key)
    calls = {
        "capture": lambda: gateway.capture(key),
        "void": lambda: gateway.void(key),
        "refund": lambda: gateway.refund(key=key, refund_key=refund, amount=TEN),
    }
    probe.fail(operation, kind)
    with pytest.raises(GatewayUnavailable):
        calls[operation]()

    if (gateway.name, operation, kind) == ("stripe", "refund", "error"):
        # Stripe repeats a server error for as long as it stores the key: a day.
        with pytest.raises(GatewayUnavailable):
            calls[operation]()
        probe.server.test.idempotent_requests.clear()
    states = {"capture": "captured", "void": "voided", "refund": "refunded"}
    calls[operation]()
    assert gateway.find_payment(key).state == states[operation]
    assert probe.count_captures(key) == (0 if operation == "void" else 1)
    if operation == "refund":
        assert probe.refunded_amount(key) == TEN


@pytest.mark.usefixtures("_short_timeout")
@pytest.mark.parametrize("kind", ["timeout_before", "error"])
@pytest.mark.parametrize("operation", ["store", "check", "forget", "lookup"])
def test_fault_of_other_operations_raises_and_a_retry_succeeds(gateway, probe, operation, kind):
    key = uuid4()
    authorize(gateway, key)
    reference = gateway.store_card(card(), customer="1")
    calls = {
        "store": lambda: gateway.store_card(card(), customer="1"),
        "check": lambda: gateway.check_card(card()),
        "forget": lambda: gateway.delete_card(reference),
        "lookup": lambda: gateway.find_payment(key),
    }
    probe.fail(operation, kind)
    with pytest.raises(GatewayUnavailable):
        calls[operation]()
    calls[operation]()


def test_gateway_call_inside_a_transaction_raises(gateway):
    calls = [
        lambda: gateway.find_payment(uuid4()),
        lambda: gateway.void(uuid4()),
        lambda: gateway.capture(uuid4()),
        lambda: gateway.refund(key=uuid4(), refund_key=uuid4(), amount=TEN),
        lambda: authorize(gateway, uuid4()),
        lambda: gateway.store_card(card(), customer="1"),
        lambda: gateway.delete_card("x"),
        lambda: gateway.check_card(card()),
    ]
    for call in calls:
        with transaction.atomic(), pytest.raises(RuntimeError):
            call()


# --- Parallel calls -------------------------------------------------------------------------------

# Errors that one of several parallel calls may get.
EXPECTED_ERRORS = (GatewayRefused, GatewayUnavailable)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
class TestParallelCalls:
    def test_parallel_calls_with_one_key_capture_once(self, gateway, probe):
        key = uuid4()
        run_concurrently([lambda: authorize(gateway, key).state] * 8, losers=EXPECTED_ERRORS)
        state = gateway.find_payment(key).state
        # No checkout sends one key in parallel. If it did, the payment is authorized once or not.
        assert state in {"authorized", "voided"}
        if state == "authorized":
            states = run_concurrently(
                [lambda: gateway.capture(key).state] * 8, losers=EXPECTED_ERRORS
            )
            assert set(states) == {"captured"}
            assert probe.count_captures(key) == 1

    @pytest.mark.parametrize("key", [UUID(int=n) for n in range(1, 6)], ids=int)
    def test_void_of_a_key_wins_over_a_parallel_authorize(self, gateway, probe, key):
        run_concurrently(
            [lambda: authorize(gateway, key).state, lambda: gateway.void(key).state],
            losers=EXPECTED_ERRORS,
        )

        # Whichever came first: nothing is authorized, and nothing can be.
        assert gateway.find_payment(key).state == "voided"
        assert gateway.capture(key).state == "voided"
        assert probe.count_captures(key) == 0

    @pytest.mark.parametrize("key", [UUID(int=n) for n in range(1, 6)], ids=int)
    def test_only_one_of_parallel_void_and_capture_succeeds(self, gateway, probe, key):
        authorize(gateway, key)

        states = run_concurrently(
            [lambda: gateway.capture(key).state, lambda: gateway.void(key).state],
            losers=EXPECTED_ERRORS,
        )

        assert len(set(states)) == 1
        assert probe.count_captures(key) == (1 if states[0] == "captured" else 0)

    def test_parallel_refunds_with_one_key_refund_once(self, gateway, probe):
        key, refund_key = uuid4(), uuid4()
        authorize(gateway, key)
        gateway.capture(key)

        def refund():
            gateway.refund(key=key, refund_key=refund_key, amount=Decimal("3.00"))

        answers = set(run_concurrently([refund] * 8, losers=EXPECTED_ERRORS))
        assert answers <= {None, "GatewayUnavailable"}
        assert probe.refunded_amount(key) == Decimal("3.00")
