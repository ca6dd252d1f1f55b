"""Payments of cards that a setup saved: the customer confirms them at the bank (B21.3)."""

from uuid import uuid4

import pytest

from payments.gateways import declines
from tests.payments.gateway_helpers import TEN, card

pytestmark = pytest.mark.django_db

ALWAYS_CONFIRMED = "4000002760003184"


@pytest.fixture
def authorize(gateway, settings):
    """Authorize an amount with a stored card. The same key gives the same payment."""
    settings.PUBLIC_URL = "https://rooms.example.com"
    reference = gateway.store_card(card(ALWAYS_CONFIRMED), customer="1")

    def authorize(key, *, on_session=True):
        return gateway.authorize(
            key=key,
            amount=TEN,
            currency="USD",
            source=reference,
            description="Reservation 1",
            on_session=on_session,
        )

    return authorize


def test_payment_waits_for_the_bank_and_is_authorized(gateway, authorize, stripe_server):
    key = uuid4()

    payment = authorize(key)

    assert payment == authorize(key) == gateway.find_payment(key)
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
def test_declined_intent_takes_no_other_card(gateway, authorize, stripe_server, act, message):
    """The customer has the client secret, with which another card could be tried."""
    key = uuid4()
    authorize(key)
    stripe_server.act_at_bank(**act)

    payment = gateway.find_payment(key)

    assert (payment.state, payment.message) == (
        "declined",
        message or declines.INSUFFICIENT_FUNDS,
    )
    assert stripe_server.intent(key)["status"] == "canceled"
    assert (gateway.find_payment(key).state, gateway.void(key).state) == ("declined", "declined")
