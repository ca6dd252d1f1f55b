"""Records changes of reservations in the audit log: the user, and the old and new values.

The function that makes a change records it, in the same transaction and with a single INSERT.
Reservations are not registered with the audit log's signals, which would read each row again before
each save. Who created a reservation, and when, is in its own `created_at` and `created_by`.

Each entry carries the event that webhooks report (B25), without another statement.
"""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, QuerySet

from reservations.models.booking_fields import BOOKING_FIELDS, PERSONAL_NAMES
from reservations.models.webhooks import EventType
from roombook.backoffice.audit_log import build_entry
from roombook.backoffice.models import AuditAction, AuditEntry

if TYPE_CHECKING:
    from accounts.act import Act
    from reservations.models.reservation import Reservation

# Field of a change -> its name in events. Others, which may hold texts about people, are left out.
EVENT_FIELDS = {
    "status": "Status",
    "room": "RoomId",
    "start": "Start",
    "end": "End",
    # The local time is another one, even if the instant is not.
    "time_zone": "Start",
    "total_cost": "TotalCost",
    "refund": "Refund",
    "refund_promised": "Refund",
    "hold_until": "HoldUntil",
    **{each.name: each.contract_name for each in BOOKING_FIELDS if each.is_in_events},
}


def record_changes(
    row: "Reservation",
    changes: Mapping[str, tuple[object, object]],
    act: "Act",
    *,
    former_center_id: int | None = None,
) -> None:
    """Record the fields whose old and new values differ. Without any, nothing is recorded.

    The row has its new values already. Of a personal field, it is only recorded that it changed.
    `former_center_id` is the center that the reservation has left, if any.
    """
    serialized = {
        name: [None, "changed"] if name in PERSONAL_NAMES else [_serialize(old), _serialize(new)]
        for name, (old, new) in changes.items()
        if old != new
    }
    if not serialized:
        return
    entry = build_entry(row, AuditAction.UPDATE, serialized, by=act.user, timestamp=act.now)
    entry.unpublished_event = _build_event(row, serialized, former_center_id)
    entry.save(force_insert=True)


def get_unpublished() -> QuerySet[AuditEntry]:
    """Return the entries whose event webhooks have not published yet; a small index has them."""
    return AuditEntry.objects.filter(unpublished_event__isnull=False)


def _build_event(
    row: "Reservation", changes: Mapping[str, object], former_center_id: int | None
) -> dict[str, object]:
    """Return what an event says, as far as this row knows it without another query."""
    if "status" in changes:
        event_type = EventType(f"reservation.{row.status.lower()}")
    elif changes.keys() & {"room", "start", "end", "time_zone"}:
        event_type = EventType.RESCHEDULED
    else:
        event_type = EventType.UPDATED
    names = (EVENT_FIELDS[name] for name in changes if name in EVENT_FIELDS)
    former_center = {"FormerCenterId": former_center_id} if former_center_id is not None else {}
    return {
        "Type": event_type,
        "ReservationId": row.pk,
        "RoomId": row.room_id,
        "Status": row.status,
        "Start": _serialize(row.start),
        "End": _serialize(row.end),
        "Changed": list(dict.fromkeys(names)),
        **former_center,
    }


def get_changes(row: Model) -> QuerySet[AuditEntry]:
    """Return the changes of a reservation, latest first."""
    content_type = ContentType.objects.get_for_model(type(row))
    entries = AuditEntry.objects.filter(content_type=content_type, object_id=row.pk)
    return entries.select_related("actor", "content_type").order_by("-timestamp", "-pk")


def _serialize(value: object) -> str | None:
    """Serialize a value: money with all its decimal places, times in UTC."""
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    return str(value)
