"""When rooms are open and when they are taken, for any number of rooms with two queries."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import BigIntegerField, Value

from centers.models import Closure, MeetingRoom
from centers.records import query_opening_hours
from centers.span import Span
from reservations.models import Reservation
from reservations.models.querysets import ConflictBounds, get_conflict_bounds
from roombook.db.compiled_queries import (
    RowQuerySet,
    compiled_query,
    datetime_param,
    int_list_param,
    int_param,
)

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
    hours_of_centers: dict[int, list[OpenInterval]] = defaultdict(list)
    centers = list({room.center_id for room in rooms})
    for center, *interval in query_opening_hours(ids=centers):
        hours_of_centers[center].append(OpenInterval._make(interval))
    taken = {room.pk: list[Span]() for room in rooms}
    _add_taken_times(taken, rooms, within, user=user, now=now)
    return {
        room.pk: RoomCalendar(hours_of_centers[room.center_id], taken[room.pk]) for room in rooms
    }


def _add_taken_times(
    taken: Mapping[int, list[Span]],
    rooms: Collection[MeetingRoom],
    within: Span,
    *,
    user: "User | None",
    now: dt.datetime,
) -> None:
    turnarounds = {room.pk: dt.timedelta(minutes=room.turnaround_minutes) for room in rooms}
    rooms_of_centers: dict[int, list[int]] = defaultdict(list)
    for room in rooms:
        rooms_of_centers[room.center_id].append(room.pk)
    longest = max((room.turnaround_minutes for room in rooms), default=0)
    for center, room_id, start, end, occupied_from, occupied_until in _closures_and_conflicts(
        centers=list(rooms_of_centers),
        rooms=list(turnarounds),
        user=user.pk if user else NO_ID,
        now=now,
        **get_conflict_bounds(within, longest),
    ):
        if center == NO_ID:
            turnaround = turnarounds[room_id]
            first = min(occupied_from, start - turnaround)
            taken[room_id].append(Span(first, max(occupied_until, end + turnaround)))
        elif room_id is None:
            for each in rooms_of_centers[center]:
                taken[each].append(Span(start, end))
        elif room_id in taken:
            taken[room_id].append(Span(start, end))


@compiled_query(keep_plan=True)
def _closures_and_conflicts() -> RowQuerySet:
    """Select closures, with their centers, and conflicts, with NO_ID, by one query."""
    bounds = ConflictBounds(
        start=datetime_param("start"),
        end=datetime_param("end"),
        wide_start=datetime_param("wide_start"),
        wide_end=datetime_param("wide_end"),
    )
    closures = Closure.objects.filter(center__any_of=int_list_param("centers"))
    closures = closures.overlapping(bounds["start"], bounds["end"])
    conflicts = Reservation.slots.filter(room__any_of=int_list_param("rooms")).conflicting(
        bounds, now=datetime_param("now"), user=int_param("user")
    )
    times = ("starts_at", "ends_at")
    return closures.values_list("center_id", "room_id", *times, *times).union(
        conflicts.values_list(
            *(Value(NO_ID, BigIntegerField()), "room_id", "start", "end"),
            *("occupied_from", "occupied_until"),
        ),
        all=True,
    )
