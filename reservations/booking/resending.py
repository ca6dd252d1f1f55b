"""Sends the last e-mail about a reservation again."""

from accounts.act import Act
from accounts.models import OutboxMessage
from reservations.booking.commands import Obstacle, command
from reservations.booking.locks import lock_reservation
from reservations.booking.time_zones import announce
from reservations.models import history
from reservations.notifications import emails
from roombook.deliveries import DeliveryState
from roombook.errors import ReservationNotOpen


@command
def resend_last_email(act: Act, reservation_id: int) -> tuple[OutboxMessage, Obstacle]:
    """Send the last message about a reservation again, to its customer's current address.

    The calendar file is the same, so calendars that have it already do not change. But if the
    center has another address since, the customer gets the new details. Raises
    ReservationNotOpen if there is no message, or if it has not been sent yet.
    """
    reservation = lock_reservation(reservation_id)
    reservation.user.require_email()
    is_announced = reservation.has_former_address
    if is_announced:
        changes = {"e-mail": (None, "new address")}
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
    changes = {"e-mail": (None, f"{message.kind}, sent again")}
    history.record_changes(reservation, changes, act)
    return message, None
