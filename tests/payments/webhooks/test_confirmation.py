"""Events about payments that wait until the customer confirms them at the bank (B21.3)."""

import pytest

from payments import gateways
from payments.models import Payment
from reservations.booking import checkout
from reservations.models.status import Status
from roombook.errors import CardDeclined
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import NOW, make_draft
from tests.payments.gateway_helpers import card
from tests.payments.webhooks.helpers import find_problems

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(stripe_server):
    ada = UserFactory()
    reference = gateways.get_current_gateway().store_card(
        card("4000002760003184"), customer=str(ada.pk)
    )
    SavedCardFactory(user=ada, gateway="stripe", reference=reference, saved_by_setup=True)
    return ada


@pytest.fixture
def pay(ada):
    draft = make_draft(ada)

    def pay():
        method = checkout.PaymentMethod(use_saved_card=True)
        return checkout.check_out(draft.pk, user=ada, payment_method=method, now=NOW)

    return pay


@pytest.fixture
def waiting(pay):
    reservation = pay()
    assert reservation.waiting_payment
    return reservation


def test_event_of_a_confirmation_books_at_once(send, stripe_server, waiting):
    intent = stripe_server.act_at_bank(confirms=True)

    for _ in range(2):
        event = stripe_server.event("payment_intent.amount_capturable_updated", intent)
        assert send(event).status_code == 200

    waiting.refresh_from_db()
    assert waiting.status == Status.CONFIRMED
    assert stripe_server.count_captures() == 1
    send(stripe_server.event("payment_intent.succeeded", intent))
    assert (Payment.objects.get().state, find_problems()) == ("captured", [])


def test_event_before_the_customer_acted_changes_nothing(send, stripe_server, waiting):
    lease = Payment.objects.get().lease_until
    event = stripe_server.event("payment_intent.payment_failed", stripe_server.intents[-1])

    assert send(event).status_code == 200

    waiting.refresh_from_db()
    assert (waiting.status, Payment.objects.get().lease_until) == (Status.PROCESSING, lease)


def test_event_of_a_refusal_is_reported_by_the_next_checkout(send, stripe_server, waiting, pay):
    intent = stripe_server.act_at_bank(confirms=False)

    assert send(stripe_server.event("payment_intent.payment_failed", intent)).status_code == 200

    waiting.refresh_from_db()
    assert (waiting.status, intent["status"]) == (Status.NEW, "canceled")
    with pytest.raises(CardDeclined):
        pay()
    # Then another payment begins.
    assert pay().waiting_payment.key != Payment.objects.earliest("pk").key


def test_event_is_repeated_while_stripe_does_not_answer(send, stripe_server, waiting):
    intent = stripe_server.act_at_bank(confirms=True)
    event = stripe_server.event("payment_intent.amount_capturable_updated", intent)
    stripe_server.fail("error", "GET /v1/payment_intents/")

    assert send(event).status_code == 503
    assert send(event).status_code == 200

    waiting.refresh_from_db()
    assert waiting.status == Status.CONFIRMED
