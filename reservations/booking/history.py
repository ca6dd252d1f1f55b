"""Records and reads the history of reservations in the audit log.

The function that changes a reservation records the change in its transaction, with one INSERT.
Signals would read each row again before each save. The creation is known from the reservation's
``created_at`` and ``created_by``.
"""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet

from roombook.backoffice.audit_log import build_entry
from roombook.backoffice.models import AuditAction, AuditEntry

if TYPE_CHECKING:
    from accounts.models import User
    from reservations.models import Reservation


def record_changes(
    reservation: "Reservation",
    changes: Mapping[str, tuple[object, object]],
    *,
    by: "User | None",
    now: dt.datetime,
) -> None:
    """Write down what changed, each field from what to what; nothing where nothing did.

    `by` is the customer or member of staff who did it, None where time or a command did.
    """
    different = {
        name: [_serialize(old), _serialize(new)]
        for name, (old, new) in changes.items()
        if old != new
    }
    if different:
        build_entry(reservation, AuditAction.UPDATE, different, by=by, timestamp=now).save(
            force_insert=True
        )


def get_changes(reservation: "Reservation") -> QuerySet[AuditEntry]:
    """Its changes, the latest first."""
    kind = ContentType.objects.get_for_model(type(reservation))
    rows = AuditEntry.objects.filter(content_type=kind, object_id=reservation.pk)
    return rows.select_related("actor").order_by("-timestamp", "-pk")


def _serialize(value: object) -> str | None:
    """A value as the history keeps it: money exactly, moments in UTC."""
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    return str(value)
