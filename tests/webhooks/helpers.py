"""Endpoints, events and runs of the sender."""

from reservations.integrations.events import publish_events
from reservations.integrations.sending import send_due_deliveries
from reservations.models import WebhookEndpoint
from tests.factories_reservations import NOW

URL = "https://hooks.example.com/roombook"


def make_endpoint(url=URL, **fields):
    fields = {"description": "Door locks", "created_at": NOW, **fields}
    return WebhookEndpoint.objects.create(url=url, **fields)


def publish_and_send(now):
    publish_events(now=now)
    return list(send_due_deliveries(clock=lambda: now))
