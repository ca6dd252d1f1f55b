"""Checks customers in when they arrive, and undoes it (B18.1)."""

import datetime as dt

from accounts.act import Act
from reservations.booking.commands import Obstacle, command
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation, history
from reservations.models.reservation import CHECK_IN_OPENS_BEFORE
from roombook.errors import ReservationNotOpen


def can_check_in(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether the customer can be checked in; after the end, too, if it was forgotten."""
    return (
        reservation.is_confirmed_or_completed
        and not reservation.is_checked_in
        and now >= reservation.start - CHECK_IN_OPENS_BEFORE
    )


@command
def check_in(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that the customer has arrived. Checking in twice keeps the first time.

    Raises ReservationNotOpen if `can_check_in` does not allow it.
    """
    reservation = lock_reservation(reservation_id)
    if reservation.is_checked_in:
        return reservation, None
    if not can_check_in(reservation, now=act.now):
        raise ReservationNotOpen(
            "Only a confirmed meeting can be checked in, from 12 hours before its start on."
        )
    return _set_time(reservation, act.now, act)


@command
def undo_check_in(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that the customer has not arrived after all. Without a check-in, nothing changes."""
    reservation = lock_reservation(reservation_id)
    return _set_time(reservation, None, act)


def _set_time(
    reservation: Reservation, at: dt.datetime | None, act: Act
) -> tuple[Reservation, Obstacle]:
    changes = {"checked_in_at": (reservation.checked_in_at, at)}
    reservation.checked_in_at = at
    reservation.save(update_fields=["checked_in_at"])
    history.record_changes(reservation, changes, act)
    return reservation, None
