"""Saving a card without its number: create-payment-setup, complete-payment-setup, and the sandbox's
page that plays a gateway's card form (B21.1, B21.2)
"""

from datetime import timedelta

import pytest
from django.test import Client

from accounts.models import AttemptWindow
from payments import setups
from payments.gateways.sandbox import confirm_setup, refuse_setup
from payments.gateways.sandbox_models import SandboxCard, SandboxSetup
from payments.models import PaymentSetup, SavedCard
from tests.concurrency import run_concurrently
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import CARD, NOW
from tests.gateway_faults import FaultKind, add_fault
from tests.http import post
from tests.payments.gateway_helpers import card

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

CREATE = "/api/account/create-payment-setup"
COMPLETE = "/api/account/complete-payment-setup"


@pytest.fixture
def create(client, token):
    """Create a setup and return its fields."""

    def create(**fields):
        response = post(client, CREATE, {"Token": token, **fields})
        assert response.status_code == 200, response.content
        return response.json()["PaymentSetup"]

    return create


@pytest.fixture
def complete(token):
    def complete(setup, *, as_token=token):
        body = {"Token": as_token, "PaymentSetupId": setup["Id"]}
        # Its own client, so that threads can share the fixture.
        return post(Client(), COMPLETE, body)

    return complete


def enter(setup, number="4242424242424242"):
    """Enter a test card for a setup, as its customer does at the gateway."""
    return confirm_setup(setup["ClientSecret"], card(number))


# --- Create payment setup -------------------------------------------------------------------------


def test_page_of_the_service_is_at_the_end_if_there_is_no_other(client, create, settings):
    settings.PAYMENT_RETURN_URLS = ["roombook-test"]
    silent, app = create(), create(ReturnUrl="roombook-test://cards?a=1&b=2")
    links = []

    for setup, row in zip((silent, app), SandboxSetup.objects.order_by("pk"), strict=True):
        # Gateways lead to pages only.
        assert row.return_url == f"http://testserver/payments/return/{setup['Id']}"
        links.append(client.get(row.return_url).content.decode())

    assert "You can close this page and go back to the app." in links[0]
    assert '<a href="roombook-test://cards?a=1&amp;b=2">Go back to the app</a>' in links[1]
    page = client.get("/payments/return")
    assert "refresh" not in page.content.decode()
    # Stripe adds a secret to its address.
    assert (page["Referrer-Policy"], "no-store" in page["Cache-Control"]) == ("no-referrer", True)


def test_return_url_is_that_of_a_page_or_a_known_app(client, token, create, settings):
    settings.PAYMENT_RETURN_URLS = ["roombook-test"]

    for url in (
        *("http://app.example.com/", "//app.example.com/", "/payments/return"),
        *("javascript:alert(1)", "JavaScript://app.example.com/%0aalert(1)"),
        *("data:text/html,hello", "otherapp://cards", "https:app.example.com"),
        *("https:///app.example.com", "https://", "https://ada:secret@app.example.com/"),
        *("https://app.example.com@evil.example/", "https://app.example.com\\@evil.example/"),
        *("https:\\\\evil.example", "https://app.exa\tmple.com/", "https://app.example.com/a b"),
        *('https://app.example.com/"><script>', "https://app.example.com:port/"),
        *("https://app.example.com:99999/", "https://[::1/", "https://ex\u00e4mple.com/"),
    ):
        response = post(client, CREATE, {"Token": token, "ReturnUrl": url})
        assert response.status_code == 400, url
        assert response.json()["Error"]["Details"].startswith("ReturnUrl: Must begin with https://")
    assert not PaymentSetup.objects.exists()
    for url in (
        *("https://app.example.com", "https://app.example.com:8443/a/b?c=d&e=%20#f"),
        *("HTTPS://app.example.com/", "roombook-test://cards/done"),
    ):
        create(ReturnUrl=url)
        assert PaymentSetup.objects.latest("pk").return_url == url


def test_too_many_setups_are_refused_for_the_rest_of_the_hour(client, token, create, clock):
    for _ in range(30):
        create()

    refused = post(client, CREATE, {"Token": token})

    assert (refused.status_code, refused["Retry-After"]) == (429, "3600")
    clock.move_to(NOW + timedelta(hours=1))
    create()


# --- Complete payment setup -----------------------------------------------------------------------


def test_entered_card_replaces_the_saved_one(ada, create, complete):
    former = SavedCardFactory(user=ada)
    setup = create()
    enter(setup, "5555555555554444")

    response = complete(setup)

    shown = response.json()["SavedPaymentInfo"]
    assert (shown["CardType"], shown["Last4DigitsOfCreditCardNumber"]) == ("MasterCard", "4444")
    assert shown["ExpirationDate"] == "2031-01-31T00:00:00+00:00"
    saved = SavedCard.objects.get()
    assert saved.saved_by_setup
    assert not SandboxCard.objects.filter(reference=former.reference).exists()
    # Repeating it changes nothing, also after another card was saved.
    assert complete(setup).content == response.content
    SavedCard.objects.all().delete()
    SavedCardFactory(user=ada, last4="0077")
    again = complete(setup).json()["SavedPaymentInfo"]
    assert again["Last4DigitsOfCreditCardNumber"] == "0077"
    SavedCard.objects.all().delete()
    assert complete(setup).json() == {"Success": True}


def test_missing_or_refused_card_is_named_until_another_is_entered(create, complete):
    setup = create()
    assert complete(setup).json()["Error"]["Summary"] == "PaymentSetupNotComplete"
    enter(setup, "4000000000009995")

    for _ in range(2):
        declined = complete(setup)
        assert declined.status_code == 402
        assert "insufficient funds" in declined.json()["Error"]["Message"]

    # The same refusal counts once towards the limit of declined cards.
    assert AttemptWindow.objects.get(scope="card-declined").count == 1
    refuse_setup(setup["ClientSecret"])
    assert "not confirmed" in complete(setup).json()["Error"]["Message"]
    enter(setup)
    assert complete(setup).status_code == 200


def test_repeated_refusals_end_the_setup_and_refuse_new_ones(client, token, create, complete):
    waiting = create()
    for _ in range(6):
        setup = create()
        enter(setup, "4000000000000002")
        assert complete(setup).status_code == 402
    assert post(client, CREATE, {"Token": token}).status_code == 429

    enter(waiting, "4000000000000002")
    assert complete(waiting).status_code == 402
    # No further card can be tried with it.
    assert enter(waiting).state == "expired"


def test_expired_setup_is_ended_at_the_gateway(create, complete, clock):
    setup = create()
    clock.move_to(NOW + timedelta(hours=1))

    response = complete(setup)

    assert response.status_code == 402
    assert response.json()["Error"]["Message"].startswith("The time to enter the card is over.")
    assert enter(setup).state == "expired"
    assert complete(setup).content == response.content


def test_card_of_a_disabled_account_is_deleted(ada, create):
    setup = create()
    enter(setup)
    ada.is_active = False
    ada.save()

    setups.resolve_setup(PaymentSetup.objects.get(), now=NOW)

    assert not SavedCard.objects.exists()
    assert not SandboxCard.objects.exists()
    assert PaymentSetup.objects.get().state == "failed"


def test_customer_without_a_name_and_card_number_as_name_are_replaced(ada):
    gateway_card = setups.GatewayCard(
        reference="card_1",
        brand=None,
        last4="4242",
        exp_year=2031,
        exp_month=1,
        name="4242 4242 4242 4242",
        billing_address={"street1": "5555555555554444", "city": "Denver"},
    )

    saved = setups.build_saved_card(ada, "sandbox", gateway_card, now=NOW)

    assert (saved.first_name, saved.last_name) == ("Ada", "Lovelace")
    assert (saved.street1, saved.city) == ("", "Denver")


# --- The page of the sandbox ----------------------------------------------------------------------


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
    refresh = f'<meta http-equiv="refresh" content="0; url={RETURN_URL}">'
    assert refresh in page.get(setup["Url"]).text
    # A second card is not taken.
    page.post(setup["Url"], {**ENTERED, "number": "5555555555554444"})
    assert complete(setup).json()["SavedPaymentInfo"]["Last4DigitsOfCreditCardNumber"] == "4242"


def test_invalid_card_is_refused_and_not_shown(setup, page):
    for field, value, message in (
        ("number", "4242424242424241", "This is not a valid card number."),
        ("number", "4111111111111111", "This is a sandbox: it takes only test cards"),
        ("expiry", "13/35", "Enter a month and a year"),
        ("expiry", "02/27", "This card has expired."),
        ("code", "12", "The security code has 3 digits."),
    ):
        html = page.post(setup["Url"], {**ENTERED, field: value}).text
        assert message in html
        # The page names one test card itself, as an example.
        assert not [each for each in ("4111", "4242424242424241", 'value="123"') if each in html]
    assert not SandboxCard.objects.exists()


def test_page_of_an_expired_setup_takes_no_card(setup, page, clock):
    clock.move_to(NOW + timedelta(hours=1))

    assert "Too late" in page.post(setup["Url"], ENTERED).text
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
    assert setup["ClientSecret"] not in caplog.text + str(PaymentSetup.objects.values())
    assert "/sandbox/setups/..." in caplog.text


# --- Races ----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_concurrent_completions_and_other_saves_leave_one_card(token, create, complete):
    entered = [create(), create()]
    for setup in entered:
        enter(setup)
    add_fault(operation="*", kind=FaultKind.SLOW, seconds=0.05, times=None)
    body = {"Token": token, "PaymentInfo": CARD}
    webhook, _ = PaymentSetup.objects.order_by("pk")

    run_concurrently(
        [
            *[lambda setup=setup: complete(setup).json()["Success"] for setup in entered * 2],
            lambda: setups.resolve_setup(webhook, now=NOW),
            lambda: post(Client(), "/api/account/update-payment-info", body).json()["Success"],
        ]
    )

    assert SavedCard.objects.get().reference == SandboxCard.objects.get().reference
    assert {each.state for each in PaymentSetup.objects.all()} == {"succeeded"}


@pytest.mark.django_db(transaction=True)
def test_completion_during_the_end_of_the_setup_leaves_no_card_at_the_gateway(create, complete):
    setup = create()
    enter(setup)
    stored = PaymentSetup.objects.get()

    run_concurrently([lambda: complete(setup).status_code, lambda: setups.cancel_setup(stored)])

    saved = {each.reference for each in SavedCard.objects.all()}
    assert saved == {each.reference for each in SandboxCard.objects.all()}
