"""What e-mails (accounts/outbox.py) and events for webhooks (reservations/webhooks) share.

A process leases a row with one conditional UPDATE, delivers it, and records the result. No
transaction is open and no lock is held meanwhile, so several processes may run at once. A process
that dies leaves the row to be delivered again once the lease has ended: at least once.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Model, QuerySet


def lease(row: Any, rows: QuerySet[Any], *, period: timedelta, now: datetime) -> bool:
    """Lease a waiting row to this process; False if it is not among `rows` any more.

    That is so if another process was faster. The attempt counts from now on.
    """
    unchanged = rows.filter(pk=row.pk, attempts=row.attempts, next_attempt_at=row.next_attempt_at)
    leased = unchanged.update(attempts=F("attempts") + 1, next_attempt_at=now + period)
    row.attempts += 1
    return bool(leased)


def record(row: Model, rows: QuerySet[Any], **columns: object) -> None:
    """Store the result of an attempt if the row is among `rows`, and in the instance anyway."""
    rows.filter(pk=row.pk).update(**columns)
    for name, value in columns.items():
        setattr(row, name, value)
