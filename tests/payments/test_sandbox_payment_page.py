"""The page on which the sandbox plays the customer's bank (B21.3)."""

from uuid import uuid4

import pytest

from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from tests.factories_people import SandboxCardFactory
from tests.payments.gateway_helpers import TEN

pytestmark = pytest.mark.django_db


@pytest.fixture
def make_page():
    """Authorize an amount, and return the address of the bank's page."""

    def make(outcome="requires_action"):
        payment = SandboxGateway().authorize(
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


def test_page_says_what_is_to_be_confirmed(client, make_page):
    page = make_page()

    response = client.get(page)

    assert "$10.00</strong> with the card Visa ending 4242" in response.content.decode()
    assert (response["Referrer-Policy"], "no-store" in response["Cache-Control"]) == (
        "no-referrer",
        True,
    )
    # Neither closing the page nor an unknown button is an answer.
    assert client.post(page, {"action": "other"}).status_code == 200
    assert get_state() == "action_required"
    assert client.get(f"{page}x").status_code == 404
    assert client.get(client.get("/payments/return").request["PATH_INFO"]).status_code == 200


@pytest.mark.parametrize(
    ("action", "state", "heading"),
    [
        ("confirm", "authorized", "Thank you"),
        ("refuse", "declined", "The payment was not confirmed"),
    ],
)
def test_answer_is_final(client, make_page, action, state, heading):
    page = make_page()

    answer = client.post(page, {"action": action}, follow=True)

    assert (get_state(), f"<h1>{heading}</h1>" in answer.content.decode()) == (state, True)
    client.post(page, {"action": "refuse" if action == "confirm" else "confirm"})
    assert get_state() == state


def test_bank_that_never_answers_leaves_the_payment_waiting(client, make_page):
    page = make_page("never_confirmed")

    assert b"The bank does not answer" in client.post(page, {"action": "confirm"}).content
    assert get_state() == "action_required"


def test_voided_payment_is_too_late(client, make_page):
    page = make_page()
    SandboxGateway().void(SandboxPayment.objects.get().key)

    assert b"<h1>Too late</h1>" in client.post(page, {"action": "confirm"}).content


def test_page_exists_only_with_the_sandbox(client, make_page, settings):
    page = make_page()
    settings.PAYMENT_GATEWAY = "stripe"

    assert client.get(page).status_code == 404
