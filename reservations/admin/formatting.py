"""Where and when a reservation is, as staff read it: by the clock of its center."""

import datetime as dt

from reservations.models import Reservation
from roombook import dates


def format_place_and_time(reservation: Reservation) -> str:
    """Room, center and time: `Boardroom at Union Station, Mon 2027-03-01 09:00 - 17:00`."""
    room = reservation.room
    return f"{room.name} at {room.center.name}, {format_time_span(reservation)}"


def format_time_span(reservation: Reservation) -> str:
    return dates.format_span(reservation.start, reservation.end, reservation.room.center.zone)


def format_datetime(reservation: Reservation, at: dt.datetime) -> str:
    return dates.format_datetime(at, reservation.room.center.zone)
