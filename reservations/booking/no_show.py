"""Marks bookings whose customer did not come, and undoes it (B15.1)."""

import datetime as dt

from accounts.act import Act
from reservations import availability
from reservations.booking.commands import Obstacle, command
from reservations.booking.holds import release_conflicting_holds
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.changes import NOT_PAID_IN_TIME
from reservations.models.status import Status
from roombook.errors import ReservationNotOpen, SlotUnavailable


@command
def mark_no_show(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that nobody came. This is possible once the meeting has begun."""
    reservation = lock_reservation(reservation_id)
    if not reservation.is_confirmed or reservation.start > act.now:
        raise ReservationNotOpen("Only a confirmed meeting that has begun can be a no-show.")
    if reservation.is_checked_in:
        raise ReservationNotOpen("The customer is checked in. Undo the check-in first.")
    reservation.transition_to(Status.NO_SHOW, act)
    reservation.end_waiting_change(message=NOT_PAID_IN_TIME, now=act.now)
    return reservation, None


@command
def undo_no_show(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that the customer came, although the meeting was marked as a no-show (B15.1).

    Before its end, the meeting holds its room again. Raises ReservationNotOpen, or SlotUnavailable
    if another reservation has the room.
    """
    now = act.now
    reservation = lock_reservation(reservation_id)
    if reservation.status != Status.NO_SHOW:
        raise ReservationNotOpen("Only a no-show can be undone.")
    status = Status.COMPLETED if reservation.end <= now else Status.CONFIRMED
    if status == Status.CONFIRMED:
        _require_free_room(reservation, now=now)
        release_conflicting_holds(
            reservation.room,
            reservation.span,
            user=reservation.user,
            now=now,
            turnaround_minutes=reservation.turnaround_minutes,
        )
    reservation.transition_to(status, act)
    return reservation, None


def _require_free_room(reservation: Reservation, *, now: dt.datetime) -> None:
    # The other reasons, such as that its start has passed, do not end a meeting that takes place.
    answer = availability.evaluate_reservation(reservation, now=now, for_user=reservation.user)
    for reason in answer.reasons:
        if reason.code == availability.HELD:
            raise SlotUnavailable(
                f"The room has been booked by somebody else meanwhile. {reason.detail}."
            )
