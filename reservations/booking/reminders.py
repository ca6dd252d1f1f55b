"""Sends e-mails without a change of status: reminders, and resent e-mails."""

import datetime as dt
from collections.abc import Callable, Iterator

from django.conf import settings

from accounts.act import Act
from accounts.models import OutboxMessage
from reservations.booking.commands import Obstacle, command
from reservations.booking.locks import lock_reservation
from reservations.booking.setting_changes import announce
from reservations.models import Reservation, history
from reservations.models.querysets import ReservationQuerySet
from reservations.notifications import emails
from roombook.db.transactions import in_transaction
from roombook.deliveries import DeliveryState
from roombook.errors import ReservationNotOpen

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


@command
def resend_last_email(act: Act, reservation_id: int) -> tuple[OutboxMessage, Obstacle]:
    """Send the last message about a reservation again, to its customer's current address.

    The calendar file is the same, so calendars that have it already do not change. But if the
    center has another address since, the customer gets the new details. Raises
    ReservationNotOpen if there is no message, or if it has not been sent yet.
    """
    reservation = lock_reservation(reservation_id)
    is_announced = reservation.has_former_address
    if is_announced:
        changes = {"mail": (None, "new address")}
        announce(reservation, changes, act, former=reservation)
    message = emails.get_last_email(reservation.pk)
    if message is None:
        raise ReservationNotOpen("No e-mail has been sent about this reservation yet.")
    if is_announced:
        return message, None
    message.to = reservation.user.email
    if message.state == DeliveryState.FAILED:
        message.save(update_fields=["to"])
    if not message.send_again(now=act.now):
        raise ReservationNotOpen("The e-mail is already waiting to be sent.")
    changes = {"mail": (None, f"{message.kind}, sent again")}
    history.record_changes(reservation, changes, act)
    return message, None
