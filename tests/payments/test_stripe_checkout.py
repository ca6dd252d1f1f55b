"""Bookings paid with Stripe: through the API and the real SDK, with a fake Stripe server."""

import io
import re
from contextlib import suppress
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from accounts.act import Act
from accounts.models import OutboxMessage
from payments.gateways.stripe import client as stripe_client
from payments.gateways.stripe_models import StripePayment
from payments.models import Payment, PaymentState, SavedCard
from reservations.booking import integrity, payment_links
from reservations.models import Reservation
from reservations.models.status import Status
from tests.backoffice.reading import words
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import CARD, NOW, get_current_status, make_draft
from tests.http import post

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "stripe_server")]


LATER = NOW + timedelta(minutes=2)


@pytest.fixture
def pay(client, token):
    """A checkout through the API with a card of that number, or with other fields."""

    def pay(reservation, number="4242424242424242", **options):
        means = {"PaymentInfo": CARD | {"CreditCardNumber": number}} if number else {}
        body = {"Token": token, "ReservationId": reservation.pk, **means, **options}
        return post(client, "/api/reservations/checkout", body)

    return pay


def state():
    return Payment.objects.get().state


def assert_consistent(stripe_server):
    """Our data is consistent, with itself and with Stripe's."""
    assert [str(each) for each in integrity.find_problems(now=LATER)] == []
    taken = sum(charge["amount_captured"] for charge in stripe_server.charges)
    ours = sum(p.amount for p in Payment.objects.filter(state__in=["captured", "refunded"]))
    assert taken == ours * 100
    # No authorization is left over.
    reserved = {i["id"] for i in stripe_server.intents if i["status"] == "requires_capture"}
    assert reserved == {p.reference for p in Payment.objects.authorized()}


def test_checkout_charges_once(pay, ada, stripe_server):
    reservation = make_draft(ada)

    answer = pay(reservation).json()

    assert (answer["Status"], answer["IsLive"]) == ("Confirmed", False)
    assert "$75.00 was charged to Visa ending 4242" in answer["ConfirmationMessage"]
    assert pay(reservation).json() == answer
    payment = Payment.objects.get()
    assert (payment.state, payment.gateway, payment.is_live) == ("captured", "stripe", False)
    assert payment.reference == StripePayment.objects.get().intent
    (charge,) = stripe_server.charges
    assert (charge["amount"], charge["currency"], charge["captured"]) == (7500, "usd", True)
    assert_consistent(stripe_server)


def test_checkout_refused_by_stripe_releases_everything(pay, ada, stripe_server):
    stripe_server.accepts_card_numbers = False

    response = pay(make_draft(ada))

    assert response.status_code == 409
    assert "You were not charged" in response.json()["Error"]["Message"]
    assert Reservation.objects.get().status == Status.NEW
    assert state() == "voided"


# --- Whatever dies or hangs, wherever -------------------------------------------------------------

CALLS = ["/v1/payment_methods", "/v1/payment_intents", "/confirm", "/capture"]


class WorkerKilled(BaseException):
    """The worker is killed: no code catches this."""


def reconcile():
    with suppress(CommandError):
        call_command("reconcile_payments", stdout=io.StringIO())


def assert_resolved(reservation, pay, stripe_server):
    """Charged at most once; booked if charged, and bookable if not."""
    reservation.refresh_from_db()
    assert reservation.status in {Status.NEW, Status.CONFIRMED}
    assert_consistent(stripe_server)
    assert stripe_server.count_captures() == (reservation.status == Status.CONFIRMED)
    assert pay(reservation).json()["Status"] == "Confirmed"
    assert stripe_server.count_captures() == 1
    assert_consistent(stripe_server)


@pytest.mark.parametrize("how", ["retry", "reconcile"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("ending", CALLS)
def test_crash_at_any_call_is_resolved(
    pay, ada, stripe_server, clock, monkeypatch, ending, when, how
):
    reservation = make_draft(ada)
    true = stripe_client.TimeLimitedHttpClient.request
    with monkeypatch.context() as patch:

        def request(self, method, url, headers, post_data=None):
            if url.endswith(ending) and when == "before":
                raise WorkerKilled
            answer = true(self, method, url, headers, post_data)
            if url.endswith(ending):
                raise WorkerKilled
            return answer

        patch.setattr(stripe_client.TimeLimitedHttpClient, "request", request)
        with pytest.raises(WorkerKilled):
            pay(reservation)
    # During the lease, no other request interferes.
    if ending != "/capture":
        assert pay(reservation).json()["Status"] == "Processing"

    clock.move_to(LATER)
    # Either the client's retry resolves it, or reconcile_payments, which also does due captures.
    if how == "retry" and ending != "/capture":
        pay(reservation)
    else:
        reconcile()
    assert Payment.objects.order_by("pk").first().state != PaymentState.STARTED
    assert_resolved(reservation, pay, stripe_server)


@pytest.mark.parametrize("is_lost", [False, True])
def test_checkout_whose_intent_a_restore_lost_becomes_a_booking(
    pay, ada, stripe_server, clock, is_lost
):
    """The backup is from the middle of the checkout; without the comparison it would be voided."""
    reservation = make_draft(ada)
    stripe_server.fail("reset_after", "confirm$", times=2)
    assert pay(reservation).json()["Status"] == "Processing"
    stripe_server.faults.clear()
    if is_lost:
        StripePayment.objects.all().delete()

    clock.move_to(LATER)
    call_command("reconcile_payments", stdout=io.StringIO())

    reservation.refresh_from_db()
    assert (reservation.status, state()) == (Status.CONFIRMED, "captured")
    assert stripe_server.count_captures() == 1
    assert_consistent(stripe_server)


# --- Payment links that are paid on Stripe's page -------------------------------------------------


@pytest.fixture
def draft(ada):
    return make_draft(ada)


@pytest.fixture
def link(draft):
    staff = AdministratorFactory()
    payment_links.send_link(
        Act(staff, NOW, is_staff=True), draft.pk, base_url="https://rooms.example.com"
    )
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
