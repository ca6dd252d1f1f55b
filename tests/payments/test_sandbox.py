"""The page on which the sandbox plays the customer's bank (B21).

test_gateways.py tests what all gateways have in common, tests/operations/test_payment_setups.py the
page on which the sandbox takes a card.
"""

from uuid import uuid4

import pytest

from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from tests.factories_people import SandboxCardFactory
from tests.payments.gateway_helpers import TEN

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway():
    return SandboxGateway()


@pytest.fixture
def make_page(gateway):
    """Authorize an amount, and return the address of the bank's page."""

    def make(outcome="requires_action"):
        payment = gateway.authorize(
            key=uuid4(),
            amount=TEN,
            currency="USD",
            source=SandboxCardFactory.create(outcome=outcome).reference,
            description="Reservation 1",
            on_session=True,
        )
        return payment.action.url

    return make


def get_state():
    return SandboxPayment.objects.get().state


def test_page_says_what_is_to_be_confirmed(client, make_page, settings):
    page = make_page()

    response = client.get(page)

    assert "$10.00</strong> with the card Visa ending 4242" in response.content.decode()
    assert response["Referrer-Policy"] == "no-referrer"
    assert "no-store" in response["Cache-Control"]
    # Neither closing the page nor an unknown button is an answer.
    assert client.post(page, {"action": "other"}).status_code == 200
    assert get_state() == "action_required"
    assert client.get(f"{page}x").status_code == 404
    assert client.get("/payments/return").status_code == 200
    # It exists only with the sandbox.
    settings.PAYMENT_GATEWAY = "stripe"
    assert client.get(page).status_code == 404


@pytest.mark.parametrize(
    ("outcome", "action", "state", "heading"),
    [
        ("requires_action", "confirm", "authorized", "Thank you"),
        ("requires_action", "refuse", "declined", "The payment was not confirmed"),
        ("never_confirmed", "confirm", "action_required", "The bank does not answer"),
        ("voided", "confirm", "voided", "Too late"),
    ],
)
def test_answer_is_final(client, gateway, make_page, outcome, action, state, heading):
    page = make_page("requires_action" if outcome == "voided" else outcome)
    if outcome == "voided":
        gateway.void(SandboxPayment.objects.get().key)

    answer = client.post(page, {"action": action}, follow=True)

    assert heading in answer.content.decode()
    assert get_state() == state
    if outcome == "requires_action":
        client.post(page, {"action": "refuse" if action == "confirm" else "confirm"})
        assert get_state() == state
