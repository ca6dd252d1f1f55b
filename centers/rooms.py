"""Booking a room: finding it by its id, and the limits on its bookings."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from django.conf import settings
from django.db.models import QuerySet

from centers.models import MeetingRoom
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.errors import NotFound


class BookingRules(NamedTuple):
    """The limits on the bookings of a room (B11.2)."""

    slot_minutes: int
    minimum_minutes: int
    maximum_minutes: int
    window_days: int

    @property
    def usual_duration(self) -> dt.timedelta:
        """What the back office proposes: an hour or, if the room refuses that, the nearest length.

        It is a multiple of the slots.
        """
        slot = self.slot_minutes
        shortest, longest = -(-max(60, self.minimum_minutes) // slot), self.maximum_minutes // slot
        return dt.timedelta(minutes=max(min(shortest, longest), 1) * slot)

    def get_last_day(self, now: dt.datetime, tz: dt.tzinfo) -> dt.date:
        """The last local day on which a booking may start."""
        return now.astimezone(tz).date() + dt.timedelta(days=self.window_days)


def get_default_booking_rules() -> BookingRules:
    """The limits that the deployment sets for rooms without their own."""
    return BookingRules(
        slot_minutes=settings.BOOKING_GRID_MINUTES,
        minimum_minutes=settings.BOOKING_MINIMUM_MINUTES,
        maximum_minutes=settings.BOOKING_MAXIMUM_DAYS * 24 * 60,
        window_days=settings.BOOKING_WINDOW_DAYS,
    )


def get_booking_rules(room: MeetingRoom) -> BookingRules:
    """The room's own limits; where it has none, the default."""
    own = (
        *(room.grid_minutes, room.minimum_minutes, room.maximum_minutes),
        room.booking_window_days,
    )
    pairs = zip(own, get_default_booking_rules(), strict=True)
    return BookingRules._make(default if value is None else value for value, default in pairs)


def get_room(
    room_id: int, *, center_id: int | None = None, related: Sequence[str] = ("center", "rate")
) -> MeetingRoom:
    """The room with these related rows. Raises NotFound if it is not in the given center."""
    room = load_room.first(*related, room=room_id)
    if room is None or center_id not in {None, room.center_id}:
        raise NotFound
    return room


@compiled_query(keep_plan=True)
def load_room(*related: str) -> QuerySet[MeetingRoom]:
    return MeetingRoom.objects.select_related(*related).filter(pk=int_param("room"))
