"""The Gateway protocol of gateways/base.py, for every gateway."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from payments.gateways import declines
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from roombook.errors import CardDeclined, ServiceUnavailable
from tests.concurrency import run_concurrently
from tests.payments.gateway_helpers import TEN, authorize, card

DECLINED = "4000000000000002"


def test_authorize_capture_and_refund_report_amounts(gateway, probe):
    key, refund = uuid4(), uuid4()

    authorized = authorize(gateway, key)
    assert (authorized.state, authorized.amount) == ("authorized", TEN)
    assert (authorized.brand, authorized.last4, authorized.message) == ("Visa", "4242", "")
    assert authorized.reference
    assert probe.count_captures(key) == 0

    captured = gateway.capture(key)
    assert (captured.state, captured.amount, captured.refunded) == ("captured", TEN, 0)
    assert probe.count_captures(key) == 1

    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    part = gateway.find_payment(key)
    assert (part.state, part.refunded) == ("captured", 4)
    gateway.refund(key=key, refund_key=uuid4(), amount=Decimal("6.00"))
    rest = gateway.find_payment(key)
    assert (rest.state, rest.refunded) == ("refunded", TEN)
    assert probe.refunded_amount(key) == TEN


def test_repeated_calls_with_one_key_act_once(gateway, probe):
    key, refund = uuid4(), uuid4()

    assert authorize(gateway, key) == authorize(gateway, key)
    # With another card too: the first answer counts.
    again = authorize(gateway, key, card("5555555555554444"))
    assert (again.state, again.brand, again.last4) == ("authorized", "Visa", "4242")
    assert gateway.capture(key) == gateway.capture(key)
    assert authorize(gateway, key).state == "captured"
    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))

    assert probe.count_captures(key) == 1
    assert probe.refunded_amount(key) == Decimal("4.00")


def test_list_refunds_returns_amounts_and_keys(gateway):
    key, first, second = uuid4(), uuid4(), uuid4()
    authorize(gateway, key)
    gateway.capture(key)
    assert gateway.list_refunds(key) == []

    gateway.refund(key=key, refund_key=first, amount=Decimal("4.00"))
    gateway.refund(key=key, refund_key=second, amount=Decimal("6.00"))

    listed = {refund.key: refund for refund in gateway.list_refunds(key)}
    assert {key: refund.amount for key, refund in listed.items()} == {first: 4, second: 6}
    assert all(refund.reference and not refund.failed for refund in listed.values())
    # Of all payments: the latest ones, with the keys of their payments.
    now = datetime.now(UTC)
    recent = gateway.list_recent_refunds(now - timedelta(seconds=5))
    assert sorted((each, refund.key) for each, refund in recent) == sorted(
        [(key, first), (key, second)]
    )
    assert gateway.list_recent_refunds(now + timedelta(minutes=1)) == []


def test_fees_are_known_after_the_capture(gateway):
    key, refund = uuid4(), uuid4()
    authorize(gateway, key)
    assert gateway.fetch_fees(key).payment is None

    gateway.capture(key)
    fees = gateway.fetch_fees(key)
    assert (fees.payment, list(fees.refunds)) == (Decimal("0.59"), [])

    gateway.refund(key=key, refund_key=refund, amount=TEN)
    fees = gateway.fetch_fees(key)
    assert fees.payment == Decimal("0.59")
    assert [(each.key, fee) for each, fee in fees.refunds] == [(refund, 0)]


def test_list_payments_returns_those_that_hold_or_held_money(gateway):
    authorized, captured, refunded, voided, declined = keys = [uuid4() for _ in range(5)]
    since = datetime.now(UTC) - timedelta(seconds=5)
    for key in keys:
        authorize(gateway, key, card(DECLINED) if key == declined else None)
    for key in (captured, refunded):
        gateway.capture(key)
    gateway.refund(key=refunded, refund_key=uuid4(), amount=TEN)
    gateway.void(voided)
    gateway.void(uuid4())
    waiting = uuid4()
    source = gateway.store_card(card("4000002760003184"), customer="7")
    gateway.authorize(
        key=waiting, amount=TEN, currency="USD", source=source, description="", on_session=True
    )

    listed = dict(gateway.list_payments(since))

    assert {key: (each.state, each.held) for key, each in listed.items()} == {
        authorized: ("authorized", TEN),
        captured: ("captured", TEN),
        refunded: ("refunded", 0),
        waiting: ("action_required", 0),
    }
    assert (listed[captured].currency, listed[captured].description) == ("USD", "Reservation 1")
    assert listed[captured].created_at >= since
    assert dict(gateway.list_payments(since + timedelta(minutes=1))) == {}


def test_key_used_with_another_amount_is_refused(gateway, probe):
    key, refund = uuid4(), uuid4()
    authorize(gateway, key)
    with pytest.raises(GatewayRefused):
        authorize(gateway, key, amount=Decimal("11.00"))

    gateway.capture(key)
    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    with pytest.raises(GatewayRefused):
        gateway.refund(key=key, refund_key=refund, amount=Decimal("5.00"))
    assert probe.refunded_amount(key) == Decimal("4.00")


def test_voided_unknown_key_can_never_be_authorized(gateway, probe):
    key = uuid4()
    assert gateway.find_payment(key) is None

    assert gateway.void(key).state == "voided"
    assert gateway.find_payment(key).state == "voided"

    late = authorize(gateway, key)
    assert (late.state, late.amount) == ("voided", 0)
    assert gateway.capture(key).state == "voided"
    assert probe.count_captures(key) == 0
    with pytest.raises(GatewayRefused):
        gateway.refund(key=key, refund_key=uuid4(), amount=TEN)


def test_void_of_captured_or_declined_payment_changes_nothing(gateway):
    captured, declined = uuid4(), uuid4()
    authorize(gateway, captured)
    gateway.capture(captured)
    authorize(gateway, declined, card(DECLINED))

    assert gateway.void(captured).state == "captured"
    assert gateway.void(declined).state == "declined"
    assert gateway.capture(declined).state in {"declined", "voided"}


@pytest.mark.parametrize("amount", ["10.01", "0", "-1"])
def test_refund_beyond_the_captured_amount_is_refused(gateway, probe, amount):
    key = uuid4()
    authorize(gateway, key)
    with pytest.raises(GatewayRefused):
        gateway.refund(key=key, refund_key=uuid4(), amount=TEN)
    gateway.capture(key)

    with pytest.raises(GatewayRefused):
        gateway.refund(key=key, refund_key=uuid4(), amount=Decimal(amount))
    gateway.refund(key=key, refund_key=uuid4(), amount=TEN)
    with pytest.raises(GatewayRefused):
        gateway.refund(key=key, refund_key=uuid4(), amount=Decimal("0.01"))
    assert probe.refunded_amount(key) == TEN


def test_capture_and_refund_of_unknown_key_are_refused(gateway):
    with pytest.raises(GatewayRefused):
        gateway.capture(uuid4())
    with pytest.raises(GatewayRefused):
        gateway.refund(key=uuid4(), refund_key=uuid4(), amount=TEN)


@pytest.mark.parametrize(
    ("number", "brand"),
    [
        ("4242424242424242", "Visa"),
        ("5555555555554444", "MasterCard"),
        ("378282246310005", "AmericanExpress"),
        ("6011111111111117", "Discover"),
        ("3056930009020004", "DinersClub"),
        ("3566002020360505", "JCB"),
        ("6200000000000005", "UnionPay"),
    ],
)
def test_valid_cards_are_checked_stored_and_authorized(gateway, number, brand):
    gateway.check_card(card(number))
    reference = gateway.store_card(card(number), customer="1")
    gateway.check_card(reference)

    for source in (card(number), reference):
        outcome = authorize(gateway, uuid4(), source)
        assert (outcome.state, outcome.brand, outcome.last4) == ("authorized", brand, number[-4:])


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("4000000000000002", declines.DECLINED),
        ("4000000000009995", declines.INSUFFICIENT_FUNDS),
        ("4000000000000069", declines.EXPIRED),
        ("4000000000000127", declines.WRONG_SECURITY_CODE),
        ("4000000000000119", declines.PROCESSING_ERROR),
        ("4000000000006975", declines.OVER_LIMIT),
        # The person who holds one of these must not learn the reason.
        ("4000000000009987", declines.DECLINED),
        ("4000000000009979", declines.DECLINED),
        ("4100000000000019", declines.DECLINED),
    ],
)
def test_declined_cards_have_their_message(gateway, number, message):
    key = uuid4()
    outcome = authorize(gateway, key, card(number))
    assert (outcome.state, outcome.message) == ("declined", message)
    assert outcome.last4 == number[-4:]
    assert gateway.find_payment(key) == outcome
    # Another card does not change it.
    assert authorize(gateway, key).state == "declined"

    with pytest.raises(CardDeclined, match=message):
        gateway.check_card(card(number))
    with pytest.raises(CardDeclined, match=message):
        gateway.store_card(card(number), customer="1")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("4000000000000341", declines.DECLINED),
        ("4000002500003155", declines.REQUIRES_ACTION),
        ("4000002760003184", declines.REQUIRES_ACTION),
    ],
)
def test_cards_that_can_be_stored_but_not_charged_are_declined(gateway, probe, number, message):
    reference = gateway.store_card(card(number), customer="1")

    for source in (card(number), reference):
        key = uuid4()
        outcome = authorize(gateway, key, source)
        assert (outcome.state, outcome.message) == ("declined", message)
        again = gateway.find_payment(key)
        assert (again.state, again.message) == ("declined", message)
        assert gateway.void(key).state == "declined"
        with pytest.raises(CardDeclined, match=message):
            gateway.check_card(source)
        assert probe.count_captures(key) == 0


def test_deleted_card_is_declined(gateway):
    reference = gateway.store_card(card(), customer="1")
    gateway.delete_card(reference)
    gateway.delete_card(reference)
    gateway.delete_card("unknown")

    for gone in (reference, "unknown"):
        outcome = authorize(gateway, uuid4(), gone)
        assert (outcome.state, outcome.message) == ("declined", declines.UNKNOWN_CARD)
        with pytest.raises(CardDeclined, match="no longer known"):
            gateway.check_card(gone)


def test_card_check_leaves_no_intent_and_no_customer(gateway, probe):
    gateway.check_card(card())

    if gateway.name == "stripe":
        assert [each["status"] for each in probe.server.intents] == ["canceled"]
        assert not probe.server.test.get_all("customer")


# --- Faults ---------------------------------------------------------------------------------------


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
    for _ in range(2):
        assert gateway.void(key).state == "voided"
    assert gateway.capture(key).state == authorize(gateway, key).state == "voided"
    assert probe.count_captures(key) == 0


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
    @pytest.mark.parametrize("key", [UUID(int=n) for n in range(1, 4)], ids=int)
    def test_void_of_a_key_wins_over_a_parallel_authorize(self, gateway, probe, key):
        run_concurrently(
            [lambda: authorize(gateway, key).state, lambda: gateway.void(key).state],
            losers=EXPECTED_ERRORS,
        )

        # Whichever came first: nothing is authorized, and nothing can be.
        assert gateway.find_payment(key).state == "voided"
        assert gateway.capture(key).state == "voided"
        assert probe.count_captures(key) == 0

    @pytest.mark.parametrize("key", [UUID(int=n) for n in range(1, 4)], ids=int)
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
