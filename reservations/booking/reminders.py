"""Reminds customers of a hold that ends, and of a meeting that begins (B24.5)."""

import datetime as dt
from collections.abc import Callable, Iterator

from django.conf import settings

from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.querysets import ReservationQuerySet
from reservations.notifications import emails
from roombook.db.transactions import in_transaction

# The customer gets the reminder this long before the hold expires.
HOLD_REMINDER_LEAD_TIME = dt.timedelta(hours=2)


def send_hold_reminders(*, now: dt.datetime) -> Iterator[Reservation]:
    """Remind customers once that the hold of a draft created by staff is about to expire."""

    def send(reservation: Reservation) -> None:
        assert reservation.hold_until is not None  # because it is about to expire
        reservation.reminded_at = now
        reservation.save(update_fields=["reminded_at"])
        emails.send_hold_expiring(reservation, hold_until=reservation.hold_until, now=now)

    yield from _send_each(Reservation.objects.hold_expiring(now, HOLD_REMINDER_LEAD_TIME), send)


def send_meeting_reminders(*, now: dt.datetime) -> Iterator[Reservation]:
    """Remind customers once of each start of a confirmed meeting, REMINDER_HOURS before (B24.5)."""

    def send(reservation: Reservation) -> None:
        reservation.reminded_of_start = reservation.start
        reservation.save(update_fields=["reminded_of_start"])
        emails.send_meeting_reminder(reservation, now=now)

    lead_time = dt.timedelta(hours=settings.REMINDER_HOURS)
    yield from _send_each(Reservation.objects.meeting_reminder_due(now, lead_time), send)


def _send_each(
    due: ReservationQuerySet, send: Callable[[Reservation], None]
) -> Iterator[Reservation]:
    for pk in list(due.values_list("pk", flat=True)):
        yield from _send_once(pk, due, send)


@in_transaction
def _send_once(
    reservation_id: int, due: ReservationQuerySet, send: Callable[[Reservation], None]
) -> list[Reservation]:
    reservation = lock_reservation(reservation_id)
    if not due.filter(pk=reservation.pk).exists():
        # Another process has changed it or sent the reminder meanwhile.
        return []
    send(reservation)
    return [reservation]
