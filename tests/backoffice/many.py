"""Creates many reservations at once."""

import datetime as dt
from decimal import Decimal

from reservations.models import Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from tests.factories_reservations import DEFAULT_TERMS

MINUTE = dt.timedelta(minutes=1)


def many(room, user, count, *, start, status=Status.COMPLETED, **fields):
    """Insert consecutive reservations of one minute each, without checking any rule."""
    rows = []
    for number in range(count):
        begins = start + number * MINUTE
        ends = begins + MINUTE
        rows.append(
            Reservation(
                room=room,
                user=user,
                start=begins,
                end=ends,
                occupied_from=begins,
                occupied_until=ends,
                status=status,
                holds_slot=status in HOLDING_STATUSES,
                currency="USD",
                total_cost=Decimal("10.00"),
                cancellation_terms=DEFAULT_TERMS,
                created_at=start,
                **{
                    "booked_at": None if status in {Status.NEW, Status.PROCESSING} else start,
                    "cancelled_at": start if status == Status.CANCELLED else None,
                    **fields,
                },
            )
        )
    return Reservation.objects.bulk_create(rows)
