"""Payments at a fake Stripe server, and events about them."""

import json
import time

import pytest
import stripe
import time_machine

from payments.models import Payment
from reservations.booking import checkout
from tests.factories_people import UserFactory
from tests.factories_reservations import NOW, make_draft, make_payment_method, make_room
from tests.payments.webhooks.helpers import PATH, SECRET


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def reservation(stripe_server):
    ada = UserFactory()
    return checkout.check_out(
        make_draft(ada).pk, user=ada, payment_method=make_payment_method(), now=NOW
    )


@pytest.fixture
def payment(reservation):
    return Payment.objects.get()


@pytest.fixture
def pending_booking(stripe_server):
    """A Pending reservation: authorized, not captured."""
    ada = UserFactory()
    room = make_room(is_live_inventory=False)
    return checkout.check_out(
        make_draft(ada, room).pk, user=ada, payment_method=make_payment_method(), now=NOW
    )


@pytest.fixture
def send(client):
    """Send an event as Stripe does, with a valid signature by default."""

    def send(event, *, secret=SECRET, at=None, payload=None, signature=None):
        body = json.dumps(event)
        signature = signature or stripe.WebhookSignature.generate_signature_header(
            body, secret, int(at or time.time())
        )
        return client.post(
            PATH,
            data=payload or body,
            content_type="application/json",
            headers={"Stripe-Signature": signature},
        )

    return send
