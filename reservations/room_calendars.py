"""When rooms are open and when they are taken, for any number of rooms with three queries."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from centers.models import Closure, MeetingRoom
from centers.records import query_opening_hours
from centers.span import Span
from reservations.models import Reservation
from reservations.models.querysets import get_conflict_bounds

if TYPE_CHECKING:
    from accounts.models import User


NO_ID = 0  # No row has this id, so excluding it excludes nothing.


class OpenInterval(NamedTuple):
    """Opening hours of a center on a weekday."""

    weekday: int
    opens: dt.time
    closes: dt.time


class RoomCalendar(NamedTuple):
    """The opening hours of a room's center, and the times in which it cannot be booked.

    A booking conflicts with a closure or another reservation if it overlaps one of the taken times,
    which include the larger turnaround of the reservation and the room.
    """

    opening_hours: list[OpenInterval]
    taken: list[Span]


def load_calendars(
    rooms: Collection[MeetingRoom], within: Span, *, user: "User | None", now: dt.datetime
) -> Mapping[int, RoomCalendar]:
    """Return the calendar of each room by its id. It is complete for bookings within `within`.

    The account's own drafts, if it is known, do not take time (B11.3).
    """
    centers = {room.center_id for room in rooms}
    weeks: dict[int, list[OpenInterval]] = defaultdict(list)
    for center, *interval in query_opening_hours(ids=list(centers)):
        weeks[center].append(OpenInterval._make(interval))
    calendars = {room.pk: RoomCalendar(weeks[room.center_id], []) for room in rooms}
    closures = Closure.objects.filter(center__in=centers).overlapping(within.start, within.end)
    for closure in closures:
        for room in rooms:
            if room.center_id == closure.center_id and closure.room_id in {None, room.pk}:
                calendars[room.pk].taken.append(closure.span)
    turnarounds = {room.pk: dt.timedelta(minutes=room.turnaround_minutes) for room in rooms}
    longest = max((room.turnaround_minutes for room in rooms), default=0)
    conflicts = Reservation.slots.filter(room__in=turnarounds).conflicting(
        get_conflict_bounds(within, longest), now=now, user=user.pk if user else NO_ID
    )
    times = ("start", "end", "occupied_from", "occupied_until")
    for room_id, start, end, occupied_from, occupied_until in conflicts.values_list(
        "room_id", *times
    ):
        turnaround = turnarounds[room_id]
        first = min(occupied_from, start - turnaround)
        last = max(occupied_until, end + turnaround)
        calendars[room_id].taken.append(Span(first, last))
    return calendars
