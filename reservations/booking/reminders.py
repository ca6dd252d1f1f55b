"""Sends e-mails without a change of status: reminders of expiring holds, and resent e-mails."""

import datetime as dt
from collections.abc import Iterator

from accounts.models import OutboxMessage, OutboxState, User
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation, history
from reservations.notifications import emails
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen

# The customer gets the reminder this long before the hold expires.
REMINDER_LEAD_TIME = dt.timedelta(hours=2)


def send_hold_reminders(*, now: dt.datetime) -> Iterator[Reservation]:
    """Remind customers once that the hold of a draft created by staff is about to expire."""
    expiring = Reservation.objects.hold_expiring(now, REMINDER_LEAD_TIME)
    for pk in list(expiring.values_list("pk", flat=True)):
        yield from _send_hold_reminder(pk, now)


@in_transaction
def _send_hold_reminder(reservation_id: int, now: dt.datetime) -> list[Reservation]:
    reservation = lock_reservation(reservation_id)
    expiring = Reservation.objects.hold_expiring(now, REMINDER_LEAD_TIME)
    if reservation.hold_until is None or not expiring.filter(pk=reservation.pk).exists():
        # Another process has checked it out or sent the reminder meanwhile.
        return []
    reservation.reminded_at = now
    reservation.save(update_fields=["reminded_at"])
    emails.send_hold_expiring(reservation, hold_until=reservation.hold_until, now=now)
    return [reservation]


@in_transaction
def resend_last_email(reservation_id: int, *, by: User, now: dt.datetime) -> OutboxMessage:
    """Send the last message about a reservation again, to its customer's current address.

    The calendar file is the same, so calendars that have it already do not change. Raises
    ReservationNotOpen if there is no message, or if it has not been sent yet.
    """
    reservation = lock_reservation(reservation_id)
    message = emails.get_last_email(reservation)
    if message is None:
        raise ReservationNotOpen("No e-mail has been sent about this reservation yet.")
    message.to = reservation.user.email
    if message.state == OutboxState.FAILED:
        message.save(update_fields=["to"])
    if not message.send_again(now=now):
        raise ReservationNotOpen("The e-mail is waiting to be sent already.")
    changes = {"mail": (None, f"{message.kind}, sent again")}
    history.record_changes(reservation, changes, by=by, now=now)
    return message
