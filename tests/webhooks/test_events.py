"""One event for each entry of a reservation's history, in the order of commits (B25.1, B25.2)."""

import datetime as dt
import json
from io import StringIO
from threading import Event, Thread

import pytest
import time_machine
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection, transaction

from accounts.act import Act
from reservations.booking import amendments, approval, cancellation, price_adjustments
from reservations.booking.amendments import ChangeRequest
from reservations.integrations.events import create_test_event, prune_events, publish_events
from reservations.integrations.sending import render_payload
from reservations.models import Reservation, WebhookDelivery, WebhookEvent
from reservations.models.history import get_unpublished, record_changes
from roombook.backoffice.models import AuditEntry
from tests.factories_people import StaffFactory
from tests.factories_reservations import NOW, make_booking, make_draft, make_pending_booking
from tests.webhooks.helpers import make_endpoint

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def test_each_history_entry_is_one_event_whatever_made_it():
    make_endpoint(created_at=NOW - HOUR)
    staff = StaffFactory()
    booking = make_booking(now=NOW)
    price_adjustments.adjust_price(
        Act(staff, NOW, is_staff=True), booking.pk, amount=-1, reason="Sorry"
    )
    cancellation.cancel(Act(booking.user, NOW), booking.pk)
    approval.decline(Act(staff, NOW, is_staff=True), make_pending_booking(now=NOW).pk)
    expiring = make_draft(now=NOW)
    with time_machine.travel(expiring.end + HOUR, tick=False):
        call_command("expire_reservations", stdout=StringIO())

    publish_events(now=NOW)

    events = list(WebhookEvent.objects.order_by("pk"))
    content_type = ContentType.objects.get_for_model(Reservation)
    entries = AuditEntry.objects.filter(content_type=content_type).order_by("pk")
    assert [event.version for event in events] == [entry.pk for entry in entries]
    assert [event.type.partition(".")[2] for event in events] == [
        *("processing", "confirmed", "updated", "cancelled"),
        *("processing", "pending", "declined", "expired"),
    ]
    assert not get_unpublished().exists()
    assert WebhookDelivery.objects.count() == len(events)


def test_event_says_what_was_true_after_its_change_and_nothing_private():
    endpoint = make_endpoint()
    booking = make_booking(now=NOW)
    cancellation.cancel(Act(booking.user, NOW), booking.pk)
    publish_events(now=NOW + HOUR)

    confirmed = WebhookEvent.objects.get(type="reservation.confirmed")
    payload = json.loads(render_payload(confirmed))

    assert payload == {
        "type": "reservation.confirmed",
        "timestamp": NOW.isoformat(),
        "data": {
            "ReservationId": booking.pk,
            "CenterId": booking.room.center_id,
            "RoomId": booking.room_id,
            "Status": "Confirmed",
            "Start": booking.start.astimezone(dt.UTC).isoformat(),
            "End": booking.end.astimezone(dt.UTC).isoformat(),
            "Changed": ["Status"],
            "Version": confirmed.version,
        },
    }
    assert endpoint.deliveries.count() == 3


def test_moved_reservation_is_reported_as_rescheduled_and_a_draft_only_by_its_history(
    django_assert_num_queries,
):
    make_endpoint()
    draft = make_draft(now=NOW)
    assert not get_unpublished().exists()
    start, end = draft.start + HOUR, draft.end + HOUR
    act = Act(StaffFactory(), NOW, is_staff=True)
    amendments.amend(act, draft.pk, ChangeRequest(draft.room_id, start, end))

    publish_events(now=NOW)

    [event] = WebhookEvent.objects.all()
    assert (event.type, event.data["Changed"]) == ("reservation.rescheduled", ["Start", "End"])
    assert event.data["Start"] == start.astimezone(dt.UTC).isoformat()
    # An entry and its event are one statement.
    with django_assert_num_queries(1):
        record_changes(draft, {"total_cost": (1, 2)}, Act(None, NOW), former_center_id=1)


def test_only_wanted_events_are_delivered():
    booking = make_booking(now=NOW)
    center = booking.room.center
    wanted = make_endpoint(center=center, event_types=["reservation.confirmed"])
    make_endpoint(event_types=["reservation.noshow"])
    make_endpoint(center=make_booking(now=NOW).room.center, event_types=["reservation.expired"])
    make_endpoint(is_active=False)
    make_endpoint(created_at=NOW + HOUR)

    publish_events(now=NOW)

    [delivery] = WebhookDelivery.objects.all()
    assert (delivery.endpoint, delivery.event.type) == (wanted, "reservation.confirmed")


def test_events_are_not_kept_without_any_webhook_and_for_31_days_with_one():
    make_booking(now=NOW)
    assert publish_events(now=NOW) == 2
    assert not WebhookEvent.objects.exists()

    create_test_event(make_endpoint(), now=NOW)
    assert prune_events(now=NOW + dt.timedelta(days=31)) == 0
    assert prune_events(now=NOW + dt.timedelta(days=31, seconds=1)) == 1
    assert not WebhookDelivery.objects.exists()


def test_change_that_is_rolled_back_has_no_event():
    make_endpoint()
    draft = make_draft(now=NOW)
    with transaction.atomic():
        record_changes(draft, {"total_cost": (1, 2)}, Act(None, NOW))
        transaction.set_rollback(True)

    assert publish_events(now=NOW) == 0


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_change_that_is_committed_late_is_published_after_the_later_one():
    """The entry has the smaller id, so a stored position in the log would miss it."""
    make_endpoint()
    late, early = make_draft(now=NOW), make_draft(now=NOW)
    written, committed_other = Event(), Event()

    def commit_late():
        try:
            with transaction.atomic():
                record_changes(late, {"total_cost": (1, 2)}, Act(None, NOW))
                written.set()
                assert committed_other.wait(60)
        finally:
            connection.close()

    thread = Thread(target=commit_late)
    thread.start()
    assert written.wait(60)
    record_changes(early, {"total_cost": (1, 2)}, Act(None, NOW))
    publish_events(now=NOW)
    committed_other.set()
    thread.join(60)
    publish_events(now=NOW)

    events = WebhookEvent.objects.order_by("pk")
    assert [event.data["ReservationId"] for event in events] == [early.pk, late.pk]
    assert events[0].version > events[1].version
