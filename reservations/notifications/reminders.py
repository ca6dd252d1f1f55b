"""Customers whom a draft was made for are reminded before its room is let go."""

import datetime as dt
from collections.abc import Iterator

from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.notifications import emails
from roombook.db.transactions import in_transaction

# So long before the hold lapses.
REMINDER_LEAD_TIME = dt.timedelta(hours=2)


def send_hold_reminders(*, now: dt.datetime) -> Iterator[Reservation]:
    """Tell each customer once that a draft made by staff is about to lose its room; yield it."""
    for pk in list(
        Reservation.objects.hold_expiring(now, REMINDER_LEAD_TIME).values_list("pk", flat=True)
    ):
        yield from _remind(pk, now)


@in_transaction
def _remind(reservation_id: int, now: dt.datetime) -> list[Reservation]:
    reservation = lock_reservation(reservation_id)
    # Checked out or reminded meanwhile.
    if (
        not Reservation.objects.hold_expiring(now, REMINDER_LEAD_TIME)
        .filter(pk=reservation.pk)
        .exists()
    ):
        return []
    reservation.reminded_at = now
    reservation.save(update_fields=["reminded_at"])
    emails.send_hold_expiring(reservation, now=now)
    return [reservation]
