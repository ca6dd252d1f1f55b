"""Workers and senders of webhooks are killed: no event is missed, and none has two ids (B25.4)."""

import json
import random
import subprocess
import sys
import time
from collections import defaultdict

import pytest
from django.contrib.contenttypes.models import ContentType
from django.test import override_settings
from django.utils import timezone

from reservations.integrations.events import publish_events
from reservations.integrations.sending import SENDING_LEASE, send_due_deliveries
from reservations.models import Reservation, WebhookDelivery
from roombook.backoffice.models import AuditEntry
from tests.faults.load import Load
from tests.faults.service import ROOT
from tests.faults.size import LONG, SIZE
from tests.webhooks.helpers import make_endpoint
from tests.webhooks.receiver import receive

pytestmark = pytest.mark.postgres
# Enough for an overloaded machine; nothing waits for so long unless it fails.
SECONDS = 60.0
# The storm ends after so many killed senders and confirmed bookings.
KILLS, BOOKINGS = 8, 40


def start_sender(service):
    """Start the command in a process of its own; with DEBUG it may call this machine."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "send_webhooks"],
        cwd=ROOT,
        env={**service.environment, "DEBUG": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def send_the_rest():
    """Publish and send in this process, when the leases of killed senders are over."""
    now = timezone.now() + SENDING_LEASE
    with override_settings(DEBUG=True):
        publish_events(now=now)
        while WebhookDelivery.objects.due(now).exists():
            list(send_due_deliveries(clock=lambda: now))


@pytest.mark.skipif(not LONG, reason="only the long form")
def test_no_event_is_missed_while_workers_and_senders_are_killed(short_lease_service):
    service, rng = short_lease_service, random.Random(25)
    with receive(delay=0.05) as receiver:
        with service.database.open():
            make_endpoint(receiver.url, created_at=timezone.now())
            first = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        load = Load(service, SIZE.clients, 4 * SECONDS)
        senders, kills = [start_sender(service) for _ in range(2)], 0
        seen = 0
        while time.monotonic() < load.until:
            for number, sender in enumerate(senders):
                # Kill a sender while the receiver prepares its answer.
                if sender.poll() is None and len(receiver.requests) > seen + rng.randrange(8):
                    sender.kill()
                    sender.wait()
                    seen, kills = len(receiver.requests), kills + 1
                if sender.poll() is not None:
                    senders[number] = start_sender(service)
            if rng.random() < 0.1 and (workers := service.workers()):
                service.kill(rng.choice(workers))
            if kills >= KILLS and load.count_acknowledged() >= BOOKINGS:
                load.stop()
            time.sleep(0.05)
        load.wait()
        for sender in senders:
            sender.kill()
            sender.wait()
        with service.database.open():
            send_the_rest()
            content_type = ContentType.objects.get_for_model(Reservation)
            entries = AuditEntry.objects.filter(content_type=content_type, pk__gt=first)
            expected = set(entries.values_list("pk", flat=True))

    ids = defaultdict(set)
    for headers, body in receiver.requests:
        ids[json.loads(body)["data"]["Version"]].add(headers["webhook-id"])
    duplicates = len(receiver.requests) - len(ids)
    assert set(ids) == expected
    assert all(len(each) == 1 for each in ids.values())
    assert kills >= KILLS
    assert len(expected) >= 2 * BOOKINGS
    assert duplicates  # Else no sender was killed at the right time.
