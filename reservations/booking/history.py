"""The history of reservations: who changed what, when, from what to what.

One row a change, written by the function that changes it, in its transaction: one INSERT and no
question. Nothing is registered with auditlog for reservations, since that would read each row again
before each save. How a reservation came to be is told by its own `created_at` and `created_by`.
"""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from auditlog.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet

from roombook.backoffice.audit_log import build_entry

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
    told = {name: [_word(old), _word(new)] for name, (old, new) in changes.items() if old != new}
    if not told:
        return
    line = build_entry(
        reservation,
        LogEntry.Action.UPDATE,
        changes=told,
        by=by,
        # Of customers no address is kept beside their account: they may wish it forgotten.
        actor_email=by.email if by and by.is_staff else None,
        timestamp=now,
    )
    line.save(force_insert=True)


def get_changes(reservation: "Reservation") -> QuerySet[LogEntry]:
    """Its changes, the latest first."""
    kind = ContentType.objects.get_for_model(type(reservation))
    rows = LogEntry.objects.filter(content_type=kind, object_id=reservation.pk)
    return rows.select_related("actor").order_by("-timestamp", "-pk")


def _word(value: object) -> str | None:
    """A value as the history keeps it: money exactly, moments in UTC."""
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    return str(value)
