"""Events about payment setups: they save the card of an app that never calls (B21.2)."""

import pytest

from accounts.models import AttemptWindow
from payments import setups
from payments.models import GatewayEvent, PaymentSetup, SavedCard
from roombook.errors import CardDeclined
from tests.factories_people import UserFactory
from tests.factories_reservations import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return UserFactory(first_name="Ada", last_name="Lovelace")


@pytest.fixture
def setup(stripe_server, ada):
    setup = setups.create_setup(ada, return_url="https://app.example.com/", now=NOW)
    setups.open_setup(setup, own_page="https://rooms.example.com/")
    setup.refresh_from_db()
    return setup


@pytest.fixture
def intent(stripe_server, setup):
    return stripe_server.test.objects[setup.reference.split("/")[0]]


@pytest.fixture
def session(stripe_server, setup):
    return stripe_server.test.objects[setup.reference.split("/")[1]]


def test_event_about_the_sdk_saves_the_card_once(send, stripe_server, ada, setup, intent):
    stripe_server.confirm_setup(intent, "4242424242424242", name="Augusta Ada King")
    event = stripe_server.event("setup_intent.succeeded", intent)

    assert [send(event).status_code for _ in range(2)] == [200, 200]

    saved = SavedCard.objects.get(user=ada)
    assert (saved.last4, saved.first_name, saved.last_name) == ("4242", "Augusta Ada", "King")
    assert saved.saved_by_setup
    # The app calls after all, and another event about the same card comes late.
    assert setups.complete_setup(ada, str(setup.key), now=NOW) == saved
    assert send(stripe_server.event("setup_intent.succeeded", intent)).status_code == 200
    assert SavedCard.objects.get().reference == saved.reference


def test_event_about_the_page_saves_its_card(send, stripe_server, ada, session, intent):
    stripe_server.finish_session(session, "5555555555554444")

    assert send(stripe_server.event("checkout.session.completed", session)).status_code == 200

    assert SavedCard.objects.get(user=ada).brand == "MasterCard"
    # No other card can be entered for it.
    assert intent["status"] == "canceled"


def test_event_is_repeated_until_stripe_answers(send, stripe_server, intent):
    stripe_server.confirm_setup(intent, "4242424242424242")
    stripe_server.fail("error", "GET /v1/setup_intents/")
    event = stripe_server.event("setup_intent.succeeded", intent)

    assert send(event).status_code == 503
    assert not GatewayEvent.objects.exists()
    assert send(event).status_code == 200
    assert SavedCard.objects.exists()


@pytest.mark.parametrize("is_page", [False, True])
def test_refused_cards_count_once_and_end_the_setup_beyond_the_limit(
    send, stripe_server, ada, setup, intent, session, is_page
):
    def refuse():
        if is_page:
            return stripe_server.finish_session(session, "4000000000000002")
        return stripe_server.confirm_setup(intent, "4000000000000002")

    for count in range(1, 7):
        event = stripe_server.event("setup_intent.setup_failed", refuse())
        # The app and the webhook report the same attempt.
        with pytest.raises(CardDeclined, match="The card was declined"):
            setups.complete_setup(ada, str(setup.key), now=NOW)
        assert send(event).status_code == 200
        assert AttemptWindow.objects.get(scope="card-declined", key=str(ada.pk)).count == count
    assert (intent["status"], session["status"]) == ("requires_payment_method", "open")

    send(stripe_server.event("setup_intent.setup_failed", refuse()))

    assert (intent["status"], session["status"]) == ("canceled", "expired")
    setup.refresh_from_db()
    assert setup.state == "expired"


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"roombook_setup": "nonsense"},
        {"roombook_setup": "00000000-0000-4000-8000-000000000000"},
        {"roombook_site": "https://other.example.com"},
    ],
)
def test_event_about_a_setup_of_others_changes_nothing(
    send, stripe_server, intent, metadata, settings
):
    settings.PUBLIC_URL = "https://rooms.example.com"
    stripe_server.confirm_setup(intent, "4242424242424242")
    intent["metadata"] = ({**intent["metadata"], **metadata}) if len(metadata) else {}

    assert send(stripe_server.event("setup_intent.succeeded", intent)).status_code == 200

    assert not SavedCard.objects.exists()
    assert PaymentSetup.objects.get().state == "open"
