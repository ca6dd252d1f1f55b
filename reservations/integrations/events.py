"""Publishes the events of history entries: gives each its place in the order, and its deliveries.

An entry and its event are one row, so a change and its event are committed together. Processes
take turns here, so the ids of published events increase in the order of commits, and a client that
reads on after the last one misses nothing.
"""

import datetime as dt
from typing import Any

from centers.models import MeetingRoom
from reservations.models.history import get_unpublished
from reservations.models.webhooks import (
    RETENTION,
    RETRY_PERIOD,
    TEST_EVENT_TYPE,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEvent,
)
from roombook.backoffice.models import AuditEntry
from roombook.db.transactions import in_transaction, lock_by_name

BATCH_SIZE = 500
# Kept a little longer, so that a cursor of the last page still leads on.
PRUNING_MARGIN = dt.timedelta(days=1)


def publish_events(*, now: dt.datetime) -> int:
    """Publish all events that are committed, in the order of their entries; return how many."""
    total = 0
    while count := _publish_batch(now=now):
        total += count
    return total


@in_transaction
def _publish_batch(*, now: dt.datetime) -> int:
    lock_by_name("publish events")
    entries = list(get_unpublished().order_by("pk")[:BATCH_SIZE])
    if not entries:
        return 0
    endpoints = list(WebhookEndpoint.objects.all())
    if endpoints:
        _store_events(entries, endpoints, now)
    published = AuditEntry.objects.filter(pk__in=[entry.pk for entry in entries])
    published.update(unpublished_event=None)
    return len(entries)


def _store_events(
    entries: list[AuditEntry], endpoints: list[WebhookEndpoint], now: dt.datetime
) -> None:
    contents = {entry: dict(entry.unpublished_event or {}) for entry in entries}
    rooms = MeetingRoom.objects.filter(pk__in={each["RoomId"] for each in contents.values()})
    center_ids = dict(rooms.values_list("pk", "center_id"))
    events = WebhookEvent.objects.bulk_create(
        build_event(entry, content, center_ids.get(content["RoomId"]), now)
        for entry, content in contents.items()
    )
    WebhookDelivery.objects.bulk_create(
        build_delivery(event, endpoint, now)
        for event in events
        for endpoint in endpoints
        if endpoint.wants(event)
    )


def build_event(
    entry: AuditEntry, content: dict[str, Any], center_id: int | None, now: dt.datetime
) -> WebhookEvent:
    event_type = content.pop("Type")
    data = {**content, "CenterId": center_id, "Version": entry.pk}
    return WebhookEvent(
        type=event_type,
        occurred_at=entry.timestamp,
        published_at=now,
        center_id=center_id,
        former_center_id=content.get("FormerCenterId"),
        version=entry.pk,
        data=data,
    )


def build_delivery(
    event: WebhookEvent, endpoint: WebhookEndpoint, now: dt.datetime
) -> WebhookDelivery:
    return WebhookDelivery(
        endpoint=endpoint,
        event=event,
        created_at=now,
        next_attempt_at=now,
        retry_until=now + RETRY_PERIOD,
    )


@in_transaction
def create_test_event(endpoint: WebhookEndpoint, *, now: dt.datetime) -> WebhookDelivery:
    """Create an event that only this endpoint gets, whatever events it has selected."""
    event = WebhookEvent.objects.create(
        type=TEST_EVENT_TYPE, occurred_at=now, published_at=now, data={"Message": "It works."}
    )
    delivery = build_delivery(event, endpoint, now)
    delivery.save(force_insert=True)
    return delivery


def prune_events(*, now: dt.datetime) -> int:
    """Delete events and their deliveries after 31 days; return the number of events."""
    old = WebhookEvent.objects.filter(published_at__lt=now - RETENTION - PRUNING_MARGIN)
    ids = list(old.order_by("published_at").values_list("pk", flat=True)[:BATCH_SIZE])
    WebhookEvent.objects.filter(pk__in=ids).delete()
    return len(ids)
