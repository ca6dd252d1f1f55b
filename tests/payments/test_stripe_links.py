"""Payment links that are paid on Stripe's page, through the real SDK, with a fake Stripe server."""

import re

import pytest
from django.core.management import call_command

from accounts.models import OutboxMessage
from payments.models import Payment, SavedCard
from reservations.booking import integrity, payment_links
from reservations.models.status import Status
from tests.backoffice.reading import words
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import NOW, get_current_status, make_draft

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW),
    pytest.mark.usefixtures("stripe_server"),
]


@pytest.fixture
def draft():
    return make_draft(UserFactory())


@pytest.fixture
def link(draft):
    staff = AdministratorFactory()
    payment_links.send_link(draft, base_url="https://rooms.example.com", by=staff, now=NOW)
    return re.search(r"/pay/[\w:-]+", OutboxMessage.objects.get(kind="payment link").text)[0]


def enter_card(client, stripe_server, link, number):
    """Press the button, enter a card on Stripe's page, and open the page it leads back to."""
    page = client.post(link, {"total": "75.00"}).content.decode()
    sessions = stripe_server.test.get_all("checkout.session")
    [session] = [each for each in sessions if each["status"] == "open"]
    assert session["url"] in page
    stripe_server.finish_session(session, number)
    return words(client.get(session["success_url"], follow=True))


def test_link_paid_on_the_page_of_stripe_books_and_charges_once(client, stripe_server, draft, link):
    shown = enter_card(client, stripe_server, link, "4242424242424242")

    assert "You have booked" in shown
    assert "You have booked" in words(client.get(link))
    assert get_current_status(draft) == Status.CONFIRMED
    [charge] = stripe_server.charges
    assert (charge["amount_captured"], Payment.objects.get().gateway) == (7500, "stripe")
    # The card is not saved for the customer.
    assert not SavedCard.objects.exists()
    call_command("reconcile_payments")
    assert [each["status"] for each in stripe_server.intents] == ["succeeded"]
    assert not list(integrity.find_problems(now=NOW))


def test_link_is_paid_with_another_card_after_stripe_declined_one(
    client, stripe_server, draft, link
):
    declined = enter_card(client, stripe_server, link, "4000000000000341")

    assert "You were not charged" in declined
    assert get_current_status(draft) == Status.NEW
    assert "You have booked" in enter_card(client, stripe_server, link, "4242424242424242")
    assert sum(each["amount_captured"] for each in stripe_server.charges) == 7500
    assert not list(integrity.find_problems(now=NOW))
