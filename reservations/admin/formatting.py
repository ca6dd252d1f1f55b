"""Where and when a reservation is, as staff read it: by the clock of its center."""

import datetime as dt

from reservations.models import Reservation
from roombook import dates


def what(reservation: Reservation) -> str:
    """Room, center and time: `Boardroom at Union Station, Mon 2027-03-01 09:00 - 17:00`."""
    room = reservation.room
    return f"{room.name} at {room.center.name}, {when(reservation)}"


def when(reservation: Reservation) -> str:
    return dates.span(reservation.start, reservation.end, reservation.room.center.zone)


def moment(reservation: Reservation, at: dt.datetime) -> str:
    return dates.moment(at, reservation.room.center.zone)
