"""After a restore, no number is used again that the lost changes had (docs/backup.md)."""

import pytest

from reservations.integrations.events import publish_events
from reservations.models import Reservation, WebhookEvent
from roombook.backoffice.models import AuditEntry
from tests.factories_reservations import NOW, make_booking
from tests.webhooks.helpers import make_endpoint

pytestmark = pytest.mark.django_db
MILLION = 1_000_000


def test_skip_ids_after_a_restore_uses_no_lost_id_again(run):
    """Reservations and versions were given before the restored state, and no event yet."""
    restored = make_booking(now=NOW)
    version = AuditEntry.objects.latest("pk").pk

    output = run("skip_ids")

    assert output.startswith(f"Skipped {MILLION} ids in each of ")
    make_endpoint()
    assert Reservation.objects.get() == restored
    booked = make_booking(now=NOW)
    publish_events(now=NOW)
    versions = WebhookEvent.objects.filter(data__ReservationId=booked.pk)
    assert booked.pk >= restored.pk + MILLION
    assert booked.payments.get().pk >= restored.payments.get().pk + MILLION
    assert min(versions.values_list("version", flat=True)) >= version + MILLION
    assert WebhookEvent.objects.earliest("pk").pk >= MILLION
    run("skip_ids")
    assert make_booking(now=NOW).pk >= booked.pk + MILLION
