"""What gateways/base.py promises, kept by every gateway."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from payments import gateways
from payments.cards import parse_card
from payments.gateways import declines
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from roombook.errors import CardDeclined, ServiceUnavailable
from tests.concurrency import run_concurrently

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
TEN = Decimal("10.00")
DECLINED = "4000000000000002"


@pytest.fixture
def gateway(books):
    return gateways.get_current_gateway()


def card(number="4242424242424242"):
    return parse_card(
        {
            "first_name": "Ada",
            "last_name": "Lovelace",
            "credit_card_number": number,
            "security_code": "1234" if number.startswith("37") else "123",
            "expiration_date": datetime(2031, 1, 1, tzinfo=UTC),
            "billing_address": {"street1": "1 Main Street", "city": "Denver", "country": "US"},
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


def test_get_gateway_returns_the_gateway_which_is_not_live(gateway):
    assert type(gateways.get_gateway(gateway.name)) is type(gateway)
    assert not gateway.is_live


def test_authorize_capture_and_refund_report_amounts(gateway, books):
    key, refund = uuid4(), uuid4()

    held = authorize(gateway, key)
    assert (held.state, held.amount, held.captured) == ("authorized", TEN, 0)
    assert (held.brand, held.last4, held.message) == ("Visa", "4242", "")
    assert held.reference
    assert books.captures(key) == 0

    taken = gateway.capture(key)
    assert (taken.state, taken.captured, taken.refunded) == ("captured", TEN, 0)
    assert books.captures(key) == 1

    part = gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    assert (part.state, part.refunded, part.refunds) == ("captured", 4, {refund: Decimal("4.00")})
    rest = gateway.refund(key=key, refund_key=uuid4(), amount=Decimal("6.00"))
    assert (rest.state, rest.refunded) == ("refunded", TEN)
    assert gateway.find_payment(key) == rest
    assert books.given_back(key) == TEN


def test_repeated_calls_with_one_key_act_once(gateway, books):
    key, refund = uuid4(), uuid4()

    assert authorize(gateway, key) == authorize(gateway, key)
    # Also with another card: the first answer counts.
    again = authorize(gateway, key, card("5555555555554444"))
    assert (again.state, again.brand, again.last4) == ("authorized", "Visa", "4242")
    assert gateway.capture(key) == gateway.capture(key)
    assert authorize(gateway, key).state == "captured"
    once = gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    assert gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00")) == once

    assert books.captures(key) == 1
    assert books.given_back(key) == Decimal("4.00")


def test_declined_key_stays_declined_for_another_card(gateway):
    key = uuid4()
    assert authorize(gateway, key, card(DECLINED)).state == "declined"

    assert authorize(gateway, key).state == "declined"
    assert gateway.find_payment(key).message == declines.DECLINED


def test_key_used_with_another_amount_is_refused(gateway, books):
    key, refund = uuid4(), uuid4()
    authorize(gateway, key)
    with pytest.raises(GatewayRefused):
        authorize(gateway, key, amount=Decimal("11.00"))

    gateway.capture(key)
    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    with pytest.raises(GatewayRefused):
        gateway.refund(key=key, refund_key=refund, amount=Decimal("5.00"))
    assert books.given_back(key) == Decimal("4.00")


def test_voided_payment_cannot_be_captured_or_authorized(gateway, books):
    key = uuid4()
    authorize(gateway, key)

    assert gateway.void(key).state == "voided"
    assert gateway.void(key).state == "voided"
    assert gateway.capture(key).state == "voided"
    assert authorize(gateway, key).state == "voided"
    assert gateway.find_payment(key).captured == 0
    assert books.captures(key) == 0


def test_voided_unknown_key_can_never_be_authorized(gateway, books):
    key = uuid4()
    assert gateway.find_payment(key) is None

    assert gateway.void(key).state == "voided"
    assert gateway.find_payment(key).state == "voided"

    late = authorize(gateway, key)
    assert (late.state, late.amount) == ("voided", 0)
    assert gateway.capture(key).captured == 0
    assert books.captures(key) == 0
    with pytest.raises(GatewayRefused):
        gateway.refund(key=key, refund_key=uuid4(), amount=TEN)


def test_void_of_captured_or_declined_payment_changes_nothing(gateway):
    taken, refused = uuid4(), uuid4()
    authorize(gateway, taken)
    gateway.capture(taken)
    authorize(gateway, refused, card(DECLINED))

    assert gateway.void(taken).state == "captured"
    assert gateway.void(refused).state == "declined"
    assert gateway.capture(refused).state in {"declined", "voided"}


@pytest.mark.parametrize("amount", ["10.01", "0", "-1"])
def test_refund_beyond_the_captured_amount_is_refused(gateway, books, amount):
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
    assert books.given_back(key) == TEN


def test_capture_and_refund_of_unknown_key_are_refused(gateway):
    with pytest.raises(GatewayRefused):
        gateway.capture(uuid4())
    with pytest.raises(GatewayRefused):
        gateway.refund(key=uuid4(), refund_key=uuid4(), amount=TEN)


# --- Cards ---------------------------------------------------------------------------------------


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
    ("number", "words"),
    [
        ("4000000000000002", declines.DECLINED),
        ("4000000000009995", declines.INSUFFICIENT_FUNDS),
        ("4000000000000069", declines.EXPIRED),
        ("4000000000000127", declines.WRONG_SECURITY_CODE),
        ("4000000000000119", declines.PROCESSING_ERROR),
        ("4000000000006975", declines.OVER_LIMIT),
        # Whoever holds one of these must not learn what is known of it.
        ("4000000000009987", declines.DECLINED),
        ("4000000000009979", declines.DECLINED),
        ("4100000000000019", declines.DECLINED),
    ],
)
def test_declined_cards_have_their_message(gateway, number, words):
    key = uuid4()
    outcome = authorize(gateway, key, card(number))
    assert (outcome.state, outcome.message) == ("declined", words)
    assert outcome.last4 == number[-4:]
    assert gateway.find_payment(key) == outcome

    with pytest.raises(CardDeclined, match=words):
        gateway.check_card(card(number))
    with pytest.raises(CardDeclined, match=words):
        gateway.store_card(card(number), customer="1")


def test_real_card_is_declined_in_test_mode_with_an_explanation(gateway):
    outcome = authorize(gateway, uuid4(), card("4111111111111111"))

    assert outcome.state == "declined"
    assert "takes only test cards" in outcome.message
    with pytest.raises(CardDeclined, match="takes only test cards"):
        gateway.check_card(card("4111111111111111"))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("4000000000000341", declines.DECLINED),
        ("4000002500003155", declines.REQUIRES_ACTION),
        ("4000002760003184", declines.REQUIRES_ACTION),
    ],
)
def test_cards_that_can_be_stored_but_not_charged_are_declined(gateway, books, number, words):
    reference = gateway.store_card(card(number), customer="1")

    for source in (card(number), reference):
        key = uuid4()
        outcome = authorize(gateway, key, source)
        assert (outcome.state, outcome.message) == ("declined", words)
        again = gateway.find_payment(key)
        assert (again.state, again.message) == ("declined", words)
        assert gateway.void(key).state == "declined"
        with pytest.raises(CardDeclined, match=words):
            gateway.check_card(source)
        assert books.captures(key) == 0


def test_deleted_card_is_declined(gateway):
    reference = gateway.store_card(card(), customer="1")
    gateway.delete_card(reference)
    gateway.delete_card(reference)
    gateway.delete_card("never there")

    for gone in (reference, "never there"):
        outcome = authorize(gateway, uuid4(), gone)
        assert (outcome.state, outcome.message) == ("declined", declines.UNKNOWN_CARD)
        with pytest.raises(CardDeclined, match="no longer known"):
            gateway.check_card(gone)


def test_card_check_leaves_no_intent_and_no_customer(gateway, books):
    gateway.check_card(card())

    if gateway.name == "stripe":
        assert [each["status"] for each in books.server.intents] == ["canceled"]
        assert not books.server.test.get_all("customer")


def test_card_without_security_code_is_authorized(gateway):
    assert authorize(gateway, uuid4(), replace(card(), security_code="")).state == "authorized"


# --- Faults --------------------------------------------------------------------------------------


@pytest.fixture
def _hasty(settings):
    settings.GATEWAY_TIMEOUT = 0.5


FAULTS = ["timeout_before", "timeout_after", "error", "reset"]


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("kind", FAULTS)
def test_fault_of_authorize_is_resolved_by_find_payment_and_void(gateway, books, kind):
    key = uuid4()
    books.fail("authorize", kind)
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


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("operation", ["capture", "void", "refund"])
def test_fault_of_capture_void_or_refund_is_resolved_by_a_retry(gateway, books, operation, kind):
    key, refund = uuid4(), uuid4()
    authorize(gateway, key)
    if operation == "refund":
        gateway.capture(key)
    calls = {
        "capture": lambda: gateway.capture(key),
        "void": lambda: gateway.void(key),
        "refund": lambda: gateway.refund(key=key, refund_key=refund, amount=TEN),
    }
    books.fail(operation, kind)
    with pytest.raises(GatewayUnavailable):
        calls[operation]()

    if (gateway.name, operation, kind) == ("stripe", "refund", "error"):
        # Stripe repeats a crash for as long as it remembers the key: a day.
        with pytest.raises(GatewayUnavailable):
            calls[operation]()
        books.server.test.idempotent_requests.clear()
    states = {"capture": "captured", "void": "voided", "refund": "refunded"}
    assert calls[operation]().state == states[operation]
    assert books.captures(key) == (0 if operation == "void" else 1)
    if operation == "refund":
        assert books.given_back(key) == TEN


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("kind", ["timeout_before", "error"])
@pytest.mark.parametrize("operation", ["store", "check", "forget", "lookup"])
def test_fault_of_other_operations_raises_and_a_retry_succeeds(gateway, books, operation, kind):
    key = uuid4()
    authorize(gateway, key)
    reference = gateway.store_card(card(), customer="1")
    calls = {
        "store": lambda: gateway.store_card(card(), customer="1"),
        "check": lambda: gateway.check_card(card()),
        "forget": lambda: gateway.delete_card(reference),
        "lookup": lambda: gateway.find_payment(key),
    }
    books.fail(operation, kind)
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


# --- Many at once --------------------------------------------------------------------------------


# Errors by which a rival may lose.
LOSERS = (GatewayRefused, GatewayUnavailable)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
class TestManyAtOnce:
    def test_parallel_calls_with_one_key_capture_once(self, gateway, books):
        key = uuid4()
        run_concurrently([lambda: authorize(gateway, key).state] * 8, losers=LOSERS)
        state = gateway.find_payment(key).state
        # Rivals with the same key exist in no checkout; if they did, money is reserved once or not.
        assert state in {"authorized", "voided"}
        if state == "authorized":
            states = run_concurrently([lambda: gateway.capture(key).state] * 8, losers=LOSERS)
            assert set(states) == {"captured"}
            assert books.captures(key) == 1

    @pytest.mark.parametrize("key", [UUID(int=n) for n in range(1, 6)], ids=int)
    def test_void_of_a_key_wins_over_a_parallel_authorize(self, gateway, books, key):
        run_concurrently(
            [lambda: authorize(gateway, key).state, lambda: gateway.void(key).state], losers=LOSERS
        )

        # Whoever came first: nothing is held any more, and nothing can be.
        assert gateway.find_payment(key).state == "voided"
        assert gateway.capture(key).state == "voided"
        assert books.captures(key) == 0

    @pytest.mark.parametrize("key", [UUID(int=n) for n in range(1, 6)], ids=int)
    def test_only_one_of_parallel_void_and_capture_succeeds(self, gateway, books, key):
        authorize(gateway, key)

        states = run_concurrently(
            [lambda: gateway.capture(key).state, lambda: gateway.void(key).state], losers=LOSERS
        )

        assert len(set(states)) == 1
        assert books.captures(key) == (1 if states[0] == "captured" else 0)

    def test_parallel_refunds_with_one_key_refund_once(self, gateway, books):
        key, refund_key = uuid4(), uuid4()
        authorize(gateway, key)
        gateway.capture(key)

        def refund():
            return gateway.refund(key=key, refund_key=refund_key, amount=Decimal("3.00")).refunded

        answers = set(run_concurrently([refund] * 8, losers=LOSERS))
        assert answers <= {Decimal("3.00"), "GatewayUnavailable"}
        assert books.given_back(key) == Decimal("3.00")
