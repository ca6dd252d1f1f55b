"""Payments at a fake Stripe server, and events about them."""

import json
import time

import pytest
import stripe

from payments.models import Payment
from tests.factories_reservations import make_draft, make_pending_booking, pay
from tests.payments.webhooks.helpers import PATH, SECRET


@pytest.fixture(autouse=True)
def _clock(clock):
    """The events are sent at NOW."""


@pytest.fixture
def reservation(stripe_server):
    return pay(make_draft())


@pytest.fixture
def payment(reservation):
    return Payment.objects.get()


@pytest.fixture
def pending_booking(stripe_server):
    """A Pending reservation: authorized, not captured."""
    return make_pending_booking()


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
