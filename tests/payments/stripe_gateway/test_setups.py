"""Payment setups at Stripe: a SetupIntent and a Checkout Session, through the real SDK."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from payments.gateways.base import GatewayUnavailable
from payments.gateways.stripe_models import StripeCustomer
from tests.payments.gateway_helpers import authorize

pytestmark = pytest.mark.django_db

RETURN_URL = "https://app.example.com/cards"
EXPIRES_AT = datetime(2027, 3, 15, 13, 0, tzinfo=UTC)


@pytest.fixture
def create(gateway):
    def create(key=None):
        return gateway.create_setup(
            key=key or uuid4(), customer="7", return_url=RETURN_URL, expires_at=EXPIRES_AT
        )

    return create


@pytest.fixture
def enter(stripe_server):
    """Enter a card with the SDK."""

    def enter(setup, number="4242424242424242", **details):
        intent = stripe_server.test.objects[setup.reference.partition("/")[0]]
        return stripe_server.confirm_setup(intent, number, **details)

    return enter


@pytest.fixture
def enter_on_page(stripe_server):
    def enter_on_page(setup, number="5555555555554444"):
        session = stripe_server.test.objects[setup.reference.partition("/")[2]]
        return stripe_server.finish_session(session, number)

    return enter_on_page


def get_stored_cards(server):
    return {m["id"] for m in server.test.get_all("payment_method") if m["customer"]}


def test_setup_consists_of_a_setup_intent_and_a_page(stripe_server, create, gateway):
    key = uuid4()

    setup = create(key)

    made, page = stripe_server.calls("setup_intents$|sessions$")
    customer = StripeCustomer.objects.get(account="7").reference
    assert (made.params["customer"], made.params["usage"]) == (customer, "off_session")
    assert (page.params["customer"], page.params["mode"]) == (customer, "setup")
    assert page.params["success_url"] == page.params["cancel_url"] == RETURN_URL
    assert page.params["expires_at"] == str(int(EXPIRES_AT.timestamp()))
    # No other way of paying: the money of some comes days later, or not at all.
    for params in (made.params, page.params):
        assert params["allowed_payment_method_types"] == {"0": "card"}
    # Webhooks find the setup by its key.
    for params in (made.params, page.params, page.params["setup_intent_data"]):
        assert params["metadata"] == {"roombook_setup": str(key)}
    assert setup.state == "open"
    assert setup.customer == customer
    assert setup.client_secret.startswith(f"{setup.reference.partition('/')[0]}_secret_")
    assert setup.url.startswith("https://checkout.stripe.com/c/pay/cs_test_")
    # The same key gives the same objects, and so does a look at them.
    assert create(key) == setup == gateway.find_setup(setup.reference)
    assert gateway.publishable_key == "pk_test_roombook"


def test_card_of_the_sdk_is_found_and_can_be_charged(create, enter, gateway):
    setup = create()
    enter(setup, name="Dana Moreno", address={"line1": "1 Main Street", "country": "US"})

    found = gateway.find_setup(setup.reference)

    assert (found.state, found.client_secret, found.url) == ("succeeded", "", "")
    card = found.card
    assert (card.brand, card.last4, card.exp_year, card.exp_month) == ("Visa", "4242", 2031, 2)
    assert (card.name, card.has_cvv) == ("Dana Moreno", True)
    assert card.billing_address["street1"] == "1 Main Street"
    assert authorize(gateway, uuid4(), source=card.reference).state == "authorized"


def test_card_of_the_page_is_found_and_the_other_way_is_closed(create, enter_on_page, gateway):
    setup = create()
    enter_on_page(setup)

    ended = gateway.cancel_setup(setup.reference)

    assert (ended.state, ended.card.brand) == ("succeeded", "MasterCard")
    assert ended == gateway.find_setup(setup.reference)


def test_of_two_cards_for_one_setup_one_is_detached(
    stripe_server, create, enter, enter_on_page, gateway
):
    setup = create()
    enter_on_page(setup)
    enter(setup)

    card = gateway.cancel_setup(setup.reference).card

    assert get_stored_cards(stripe_server) == {card.reference.partition("/")[2]}


def test_refused_card_leaves_the_setup_open(create, enter, gateway):
    setup = create()
    enter(setup, "4000000000000002")

    refused = gateway.find_setup(setup.reference)

    assert (refused.state, refused.card) == ("failed", None)
    assert refused.message == "The card was declined. You were not charged."
    assert refused.client_secret == setup.client_secret
    enter(setup)
    assert gateway.find_setup(setup.reference).state == "succeeded"


def test_canceled_setup_is_closed_in_both_ways(stripe_server, create, gateway):
    setup = create()

    ended = gateway.cancel_setup(setup.reference)

    assert (ended.state, ended.client_secret, ended.url) == ("expired", "", "")
    objects = [stripe_server.test.objects[each] for each in setup.reference.split("/")]
    assert [each["status"] for each in objects] == ["canceled", "expired"]
    assert gateway.cancel_setup(setup.reference) == ended
    # As after a change of the account's keys.
    assert gateway.find_setup("seti_1/cs_1").state == "expired"


def test_setup_of_which_a_half_was_made_for_a_lost_customer_is_made_again(stripe_server, create):
    key = uuid4()
    for _ in range(2):
        stripe_server.fail("conflict", "POST /v1/checkout/sessions$")
    with pytest.raises(GatewayUnavailable):
        create(key)
    lost = StripeCustomer.objects.get(account="7").reference
    del stripe_server.test.objects[lost]

    setup = create(key)

    assert setup.customer != lost
    intent, session = (stripe_server.test.objects[each] for each in setup.reference.split("/"))
    assert intent["customer"] == session["customer"] == setup.customer


@pytest.mark.parametrize("path", ["setup_intents$", "sessions$"])
@pytest.mark.parametrize("kind", ["reset_before", "reset_after"])
def test_setup_without_an_answer_can_be_repeated(stripe_server, create, path, kind):
    key = uuid4()
    stripe_server.fail(kind, path, times=2)

    with pytest.raises(GatewayUnavailable):
        create(key)
    create(key)

    assert len(stripe_server.test.get_all("setup_intent")) == 1
    assert len(stripe_server.test.get_all("checkout.session")) == 1
