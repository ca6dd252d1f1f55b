"""The page of the sandbox that plays a gateway's card form (B21.2)."""

from datetime import timedelta

import pytest
from django.test import Client

from payments.gateways.sandbox_models import SandboxCard
from payments.models import PaymentSetup
from tests.operations.payment_setups.helpers import NOW

pytestmark = pytest.mark.django_db

RETURN_URL = "https://app.example.com/cards"
ENTERED = {"action": "confirm", "number": "4242 4242 4242 4242", "expiry": "12/35", "code": "123"}


@pytest.fixture
def setup(create):
    return create(ReturnUrl=RETURN_URL)


@pytest.fixture
def page():
    """A browser that checks forms for forgery and has no cookie."""
    return Client(enforce_csrf_checks=True)


def test_confirmed_card_is_saved_and_the_page_returns_to_the_app(setup, page, complete):
    response = page.post(setup["Url"], ENTERED)

    assert (response.status_code, response["Location"]) == (302, setup["Url"][17:])
    ended = page.get(setup["Url"]).content.decode()
    assert f'<meta http-equiv="refresh" content="0; url={RETURN_URL}">' in ended
    assert complete(setup).json()["SavedPaymentInfo"]["Last4DigitsOfCreditCardNumber"] == "4242"
    # A second card is not taken.
    page.post(setup["Url"], {**ENTERED, "number": "5555555555554444"})
    assert SandboxCard.objects.get().last4 == "4242"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("number", "4242424242424241", "This is not a valid card number."),
        ("number", "4111111111111111", "This is a sandbox: it takes only test cards"),
        ("number", "", "This field is required."),
        ("expiry", "13/35", "Enter a month and a year"),
        ("expiry", "02/27", "This card has expired."),
        ("code", "12", "The security code has 3 digits."),
    ],
)
def test_invalid_card_is_refused_and_not_shown(setup, page, field, value, message):
    response = page.post(setup["Url"], {**ENTERED, field: value})

    html = response.content.decode()
    assert message in html
    assert "<title>Error: Save a card</title>" in html
    # The page names one test card itself, as an example.
    assert "4111" not in html
    assert "4242424242424241" not in html
    assert 'value="123"' not in html
    assert not SandboxCard.objects.exists()


def test_refusal_is_shown_and_another_card_can_be_entered(setup, page, complete):
    assert page.post(setup["Url"], {"action": "refuse"}).status_code == 302
    html = page.get(setup["Url"]).content.decode()
    assert "The card was not confirmed at its bank." in html
    assert f'<a href="{RETURN_URL}">Close</a>' in html
    assert complete(setup).status_code == 402

    page.post(setup["Url"], {**ENTERED, "number": "4000000000000002"})
    assert "The card was declined." in page.get(setup["Url"]).content.decode()

    page.post(setup["Url"], ENTERED)
    assert complete(setup).status_code == 200


def test_page_of_an_expired_setup_takes_no_card(setup, page, clock):
    clock.move_to(NOW + timedelta(hours=1))

    response = page.post(setup["Url"], ENTERED)

    assert "Too late" in response.content.decode()
    assert not SandboxCard.objects.exists()


def test_page_with_another_gateway_or_secret_is_not_found(setup, page, settings):
    # Neither the Id nor a part of the secret opens it.
    for secret in (setup["Id"], setup["ClientSecret"][:-1], "x"):
        assert page.get(f"/sandbox/setups/{secret}").status_code == 404

    settings.PAYMENT_GATEWAY = "stripe"

    assert page.get(setup["Url"]).status_code == 404
    assert page.post(setup["Url"], ENTERED).status_code == 404
    assert PaymentSetup.objects.get().state == "open"


def test_secret_of_the_page_is_not_logged_cached_or_sent_on(setup, page, caplog):
    with caplog.at_level("DEBUG"):
        response = page.get(setup["Url"], headers={"accept-encoding": "gzip"})

    assert response["Referrer-Policy"] == "no-referrer"
    assert "no-store" in response["Cache-Control"]
    assert "Content-Encoding" not in response.headers
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert not response.cookies
    assert setup["ClientSecret"] not in caplog.text
    assert "/sandbox/setups/..." in caplog.text
