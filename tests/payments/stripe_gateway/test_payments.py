"""The Stripe gateway: intents, saved cards, modes and amounts.

test_gateways.py tests what all gateways have in common.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from payments import gateways
from payments.gateways import declines
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.gateways.stripe import gateway as stripe_module
from payments.gateways.stripe.cards import to_stripe_address
from payments.gateways.stripe.client import from_minor_units, to_minor_units
from payments.gateways.stripe.gateway import StripeGateway
from payments.gateways.stripe_models import StripeCustomer, StripePayment
from payments.models import SavedCard
from payments.saved_cards import delete_cards_of_erased_account
from roombook.errors import CardDeclined
from tests.factories_people import SavedCardFactory
from tests.payments.gateway_helpers import TEN, authorize, card

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(stripe_server, settings):
    """The account in live mode."""
    settings.STRIPE_SECRET_KEY = "sk_live_roombook"
    settings.STRIPE_TEST_SECRET_KEY = "sk_test_roombook"
    return gateways.get_current_gateway()


# --- Two steps ------------------------------------------------------------------------------------


def test_intent_is_stored_before_it_is_confirmed(gateway, stripe_server):
    key = uuid4()
    authorize(gateway, key)

    made, confirmed = stripe_server.calls("payment_intents")
    assert (made.path, made.params["capture_method"]) == ("/v1/payment_intents", "manual")
    assert "confirm" not in made.params
    assert (
        confirmed.path == f"/v1/payment_intents/{StripePayment.objects.get(key=key).intent}/confirm"
    )
    assert made.params["metadata"] == {"roombook_key": str(key)}
    assert made.params["allowed_payment_method_types"] == {"0": "card"}
    # Each step has its own idempotency key, the same for every retry.
    assert made.idempotency_key == f"roombook-{key.hex}-create"
    assert confirmed.idempotency_key == f"roombook-{key.hex}-confirm"


def test_delayed_worker_finds_the_key_voided_in_our_database(gateway, stripe_server, monkeypatch):
    """It pauses before its intent is stored; in the meantime the key is voided."""
    true = StripeGateway._create_intent

    def late(self, api, key, *rest, **options):
        gateway.void(key)
        return true(self, api, key, *rest, **options)

    monkeypatch.setattr(StripeGateway, "_create_intent", late)

    assert authorize(gateway, uuid4()).state == "voided"
    assert not stripe_server.calls("confirm$")


def test_delayed_worker_finds_the_intent_canceled_at_stripe(gateway, stripe_server, monkeypatch):
    """It pauses after its intent is stored."""
    true = stripe_module.confirm_intent

    def late(api, intent, key, *rest):
        gateway.void(key)
        return true(api, intent, key, *rest)

    monkeypatch.setattr(stripe_module, "confirm_intent", late)

    assert authorize(gateway, uuid4()).state == "voided"
    assert stripe_server.calls("confirm$")
    assert not stripe_server.charges


def test_refund_retried_after_its_idempotency_key_expired_refunds_once(gateway, stripe_server):
    key, refund = uuid4(), uuid4()
    authorize(gateway, key)
    gateway.capture(key)
    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    stripe_server.test.idempotent_requests.clear()

    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    assert gateway.find_payment(key).refunded == 4
    assert len(stripe_server.refunds) == 1


def test_authorization_has_its_capture_deadline(gateway):
    key = uuid4()
    until = authorize(gateway, key).authorized_until

    assert timedelta(days=6) < until - datetime.now(UTC) < timedelta(days=8)
    assert gateway.find_payment(key).authorized_until == until
    assert gateway.capture(key).authorized_until is None


def test_intent_canceled_in_the_dashboard_is_voided_for_any_reason(gateway, stripe_server):
    key = uuid4()
    reference = authorize(gateway, key).reference
    stripe_server.test.objects[reference] |= {
        "status": "canceled",
        "cancellation_reason": "abandoned",
    }

    assert gateway.find_payment(key).state == "voided"


# --- Saved cards ----------------------------------------------------------------------------------


def test_account_has_one_customer_whose_cards_are_charged_off_session(gateway, stripe_server):
    first = gateway.store_card(card(), customer="7")
    second = gateway.store_card(card("5555555555554444"), customer="7")

    assert first != second
    assert first.split("/")[0] == second.split("/")[0] == StripeCustomer.objects.get().reference
    assert len(stripe_server.test.get_all("customer")) == 1
    key = uuid4()
    assert authorize(gateway, key, second).last4 == "4444"
    made, confirmed = stripe_server.calls("payment_intents")
    assert made.params["customer"] == StripeCustomer.objects.get().reference
    assert confirmed.params["off_session"] == "true"


def test_deleted_customer_is_created_again(gateway, stripe_server):
    gateway.store_card(card(), customer="7")
    stripe_server.test.objects.pop(StripeCustomer.objects.get().reference)

    reference = gateway.store_card(card(), customer="7")

    assert authorize(gateway, uuid4(), reference).state == "authorized"


def test_card_of_a_deleted_customer_is_declined(gateway, stripe_server):
    reference = gateway.store_card(card(), customer="7")
    for gone in reference.split("/"):
        stripe_server.test.objects.pop(gone)

    outcome = authorize(gateway, uuid4(), reference)

    assert (outcome.state, outcome.message) == ("declined", declines.UNKNOWN_CARD)


def test_billing_address_is_sent_as_far_as_stripe_accepts_it():
    address = {
        "street1": "1 Main Street",
        "street2": "",
        "city": "Denver",
        "state": None,
        "postal_code": "80202",
        "country": "us",
        "latitude": 39.7,
    }

    assert to_stripe_address(address) == {
        "line1": "1 Main Street",
        "city": "Denver",
        "postal_code": "80202",
        "country": "US",
    }
    assert to_stripe_address({"country": "Germany"}) == {}


# --- Real money and test mode ---------------------------------------------------------------------


def test_secret_key_decides_whether_the_gateway_is_live(settings, stripe_server):
    for key, is_live in [
        ("sk_live_1a", True),
        ("rk_live_1a", True),
        ("sk_test_1a", False),
        ("rk_test_1a", False),
        ("", False),
        ("sk_live_", False),
    ]:
        settings.STRIPE_SECRET_KEY = key
        assert gateways.get_current_gateway().is_live is is_live


def test_card_is_not_charged_if_stripe_reports_another_mode(gateway, stripe_server):
    stripe_server.livemode = True

    with pytest.raises(GatewayRefused):
        authorize(gateway, uuid4())
    assert not stripe_server.charges


def test_live_gateway_checks_cards_in_test_mode_and_charges_no_test_card(live, stripe_server):
    live.check_card(card())
    with pytest.raises(CardDeclined, match="insufficient funds"):
        live.check_card(card("4000000000009995"))
    with pytest.raises(CardDeclined, match="takes only test cards"):
        live.check_card(card("4111111111111111"))

    assert stripe_server.requests
    assert not [each for each in stripe_server.requests if each.is_live]
    declined = authorize(live, uuid4())
    assert (declined.state, declined.message) == ("declined", declines.IS_A_TEST_CARD)


def test_check_of_a_stored_live_card_only_retrieves_it(live, stripe_server):
    reference = live.store_card(card("4111111111111111"), customer="7")
    sent = len(stripe_server.requests)

    live.check_card(reference)
    assert [each.method for each in stripe_server.requests[sent:]] == ["GET"]

    live.delete_card(reference)
    with pytest.raises(CardDeclined, match="no longer known"):
        live.check_card(reference)


def test_payment_of_test_mode_is_completed_in_test_mode(gateway, settings, stripe_server):
    """A deployment goes live while a payment with its test key is open."""
    key = uuid4()
    authorize(gateway, key)
    settings.STRIPE_SECRET_KEY = "sk_live_roombook"
    settings.STRIPE_TEST_SECRET_KEY = "sk_test_roombook"

    assert gateways.get_current_gateway().capture(key).state == "captured"
    settings.STRIPE_TEST_SECRET_KEY = ""
    with pytest.raises(GatewayUnavailable):
        gateways.get_current_gateway().find_payment(key)


# --- Amounts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [
        ("10.00", "USD", 1000),
        ("0.50", "eur", 50),
        ("9999999999.99", "USD", 999999999999),
        ("500.00", "JPY", 500),
        ("500", "KRW", 500),
        ("5.00", "ISK", 500),
        ("5.00", "UGX", 500),
        ("5.12", "KWD", 5120),
    ],
)
def test_amounts_are_converted_to_minor_units(amount, currency, units):
    assert to_minor_units(Decimal(amount), currency) == units
    assert from_minor_units(units, currency) == Decimal(amount)


@pytest.mark.parametrize(("amount", "currency"), [("0.005", "USD"), ("500.50", "JPY")])
def test_amount_with_a_fraction_of_a_unit_is_refused(amount, currency):
    with pytest.raises(GatewayRefused):
        to_minor_units(Decimal(amount), currency)


def test_yen_are_charged_without_decimals(gateway, stripe_server):
    key, refund = uuid4(), uuid4()
    gateway.authorize(
        key=key, amount=Decimal("5000.00"), currency="JPY", source=card(), description=""
    )
    gateway.capture(key)
    gateway.refund(key=key, refund_key=refund, amount=Decimal("1000.00"))
    part = gateway.find_payment(key)

    assert stripe_server.intent(key)["amount"] == 5000
    assert (part.amount, part.refunded) == (5000, 1000)
    assert stripe_server.refunds[0]["amount"] == 1000


@pytest.mark.parametrize("amount", ["0.30", "1000000.00"])
def test_amount_out_of_bounds_is_declined_with_its_message(gateway, amount):
    outcome = authorize(gateway, uuid4(), amount=Decimal(amount))

    assert (outcome.state, outcome.message) == ("declined", declines.AMOUNT_OUT_OF_BOUNDS)


# --- Listing payments -----------------------------------------------------------------------------


def test_payments_on_many_pages_are_all_listed(gateway, stripe_server):
    keys = [uuid4() for _ in range(5)]
    since = datetime.now(UTC) - timedelta(seconds=5)
    for key in keys:
        authorize(gateway, key)
        gateway.capture(key)
        gateway.refund(key=key, refund_key=uuid4(), amount=Decimal("1.00"))
    stripe_server.page_size = 2

    assert [key for key, _ in gateway.list_payments(since)] == keys[::-1]
    assert [key for key, _ in gateway.list_recent_refunds(since)] == keys[::-1]


def test_payment_whose_intent_was_lost_can_be_found_after_listing(gateway, stripe_server):
    lost, voided = uuid4(), uuid4()
    since = datetime.now(UTC) - timedelta(seconds=5)
    for key in (lost, voided):
        authorize(gateway, key)
    StripePayment.objects.all().delete()
    assert gateway.void(voided).state == "voided"

    assert len(list(gateway.list_payments(since))) == 2

    assert gateway.find_payment(lost).state == "authorized"
    # Before, only the key was voided, because its intent was unknown.
    assert gateway.find_payment(voided).state == "authorized"


def test_payments_of_another_deployment_are_not_listed(gateway, stripe_server, settings):
    settings.PUBLIC_URL = "https://rooms.example"
    since = datetime.now(UTC) - timedelta(seconds=5)
    authorize(gateway, uuid4())
    assert stripe_server.intents[0]["metadata"]["roombook_site"] == "https://rooms.example"
    assert len(list(gateway.list_payments(since))) == 1

    settings.PUBLIC_URL = "https://other.example"

    assert list(gateway.list_payments(since)) == []


# --- Payments that the customer confirms at the bank (B21.3) --------------------------------------


ALWAYS_CONFIRMED = "4000002760003184"


@pytest.fixture
def authorize_stored(gateway, settings):
    """Authorize an amount with a stored card. The same key gives the same payment."""
    settings.PUBLIC_URL = "https://rooms.example.com"
    reference = gateway.store_card(card(ALWAYS_CONFIRMED), customer="1")
    # It asks for no confirmation.
    gateway.check_card(reference, on_session=True)

    def authorize(key):
        return gateway.authorize(
            key=key,
            amount=TEN,
            currency="USD",
            source=reference,
            description="Reservation 1",
            on_session=True,
        )

    return authorize


def test_payment_waits_for_the_bank_and_is_authorized(gateway, authorize_stored, stripe_server):
    key = uuid4()

    payment = authorize_stored(key)

    assert payment == authorize_stored(key) == gateway.find_payment(key)
    intent = stripe_server.intent(key)
    assert (payment.state, payment.action.client_secret) == (
        "action_required",
        intent["client_secret"],
    )
    assert payment.action.url == f"https://hooks.stripe.com/3d_secure/{intent['id']}"
    (request,) = stripe_server.calls("/v1/payment_intents/.+/confirm")
    assert request.params["return_url"] == "https://rooms.example.com/payments/return"
    assert "off_session" not in request.params
    stripe_server.act_at_bank(confirms=True)
    found = gateway.find_payment(key)
    assert (found.state, found.action, found.last4) == ("authorized", None, "3184")
    assert gateway.capture(key).state == "captured"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ({"confirms": False}, declines.NOT_CONFIRMED),
        ({"confirms": True, "outcome": "card_declined/insufficient_funds"}, None),
    ],
)
def test_declined_intent_takes_no_other_card(
    gateway, authorize_stored, stripe_server, act, message
):
    """The customer has the client secret, with which another card could be tried."""
    key = uuid4()
    authorize_stored(key)
    stripe_server.act_at_bank(**act)

    payment = gateway.find_payment(key)

    assert (payment.state, payment.message) == (
        "declined",
        message or declines.INSUFFICIENT_FUNDS,
    )
    assert stripe_server.intent(key)["status"] == "canceled"
    assert (gateway.find_payment(key).state, gateway.void(key).state) == ("declined", "declined")


def test_void_ends_a_payment_that_waits(gateway, authorize_stored, stripe_server):
    key = uuid4()
    authorize_stored(key)

    assert gateway.void(key).state == authorize_stored(key).state == "voided"
    assert stripe_server.intent(key)["status"] == "canceled"


# --- Customers of accounts that are erased (B22.9) ------------------------------------------------


def test_customer_is_deleted_with_its_cards_and_no_other(gateway, stripe_server):
    user = SavedCardFactory(gateway="stripe").user
    reference = gateway.store_card(card(), customer=str(user.pk))
    SavedCard.objects.update(reference=reference)
    # Left by a card that was replaced while Stripe did not answer.
    older = gateway.store_card(card(), customer=str(user.pk)).split("/")[1]
    others = gateway.store_card(card(), customer="7000").split("/")

    delete_cards_of_erased_account(user.pk)
    delete_cards_of_erased_account(user.pk)

    customer, method = reference.split("/")
    assert customer not in stripe_server.test.objects
    assert stripe_server.test.objects[method]["customer"] is None
    assert stripe_server.test.objects[older]["customer"] is None
    assert stripe_server.test.objects[others[1]]["customer"] == others[0]
    assert StripeCustomer.objects.get().reference == others[0]
    assert not SavedCard.objects.exists()


def test_customer_that_is_gone_at_stripe_is_deleted_here(gateway, stripe_server):
    customer = gateway.store_card(card(), customer="7").split("/")[0]
    del stripe_server.test.objects[customer]

    gateway.delete_customer("7")

    assert not StripeCustomer.objects.exists()


def test_customer_stays_owed_while_stripe_does_not_answer(gateway, stripe_server):
    gateway.store_card(card(), customer="7")
    stripe_server.fail("error", "DELETE /v1/customers", times=None)

    with pytest.raises(GatewayUnavailable):
        gateway.delete_customer("7")
    assert StripeCustomer.objects.exists()

    stripe_server.faults.clear()
    gateway.delete_customer("7")
    assert not StripeCustomer.objects.exists()
