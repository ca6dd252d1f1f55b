"""When rooms are open and when they are taken, for any number of rooms with three queries."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

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
    rooms: Collection[MeetingRoom], within: Span, *, user: "User", now: dt.datetime
) -> Mapping[int, RoomCalendar]:
    """Return the calendar of each room by its id. It is complete for bookings within `within`.

    The account's own drafts do not take time (B11.3).
    """
    hours_of_centers: dict[int, list[OpenInterval]] = defaultdict(list)
    centers = list({room.center_id for room in rooms})
    for center, *interval in query_opening_hours(centers=centers):
        hours_of_centers[center].append(OpenInterval._make(interval))
    taken = {room.pk: list[Span]() for room in rooms}
    _add_closures(taken, rooms, centers, within)
    _add_reservations(taken, rooms, within, user=user, now=now)
    return {
        room.pk: RoomCalendar(hours_of_centers[room.center_id], taken[room.pk]) for room in rooms
    }


def _add_closures(
    taken: Mapping[int, list[Span]],
    rooms: Collection[MeetingRoom],
    centers: list[int],
    within: Span,
) -> None:
    closures = _closures_of_centers(centers=centers, start=within.start, end=within.end)
    for center, closed_room, starts_at, ends_at in closures:
        for room in rooms:
            if room.center_id == center and closed_room in {None, room.pk}:
                taken[room.pk].append(Span(starts_at, ends_at))


def _add_reservations(
    taken: Mapping[int, list[Span]],
    rooms: Collection[MeetingRoom],
    within: Span,
    *,
    user: "User",
    now: dt.datetime,
) -> None:
    turnarounds = {room.pk: dt.timedelta(minutes=room.turnaround_minutes) for room in rooms}
    longest = max((room.turnaround_minutes for room in rooms), default=0)
    bounds = get_conflict_bounds(within, longest)
    for room, start, end, occupied_from, occupied_until in _conflicts_of_rooms(
        rooms=list(turnarounds), user=user.pk, now=now, **bounds
    ):
        first = min(occupied_from, start - turnarounds[room])
        taken[room].append(Span(first, max(occupied_until, end + turnarounds[room])))


@compiled_query(keep_plan=True)
def _closures_of_centers() -> RowQuerySet:
    closures = Closure.objects.filter(center__any_of=int_list_param("centers"))
    found = closures.overlapping(datetime_param("start"), datetime_param("end"))
    return found.values_list("center_id", "room_id", "starts_at", "ends_at")


@compiled_query(keep_plan=True)
def _conflicts_of_rooms() -> RowQuerySet:
    bounds = ConflictBounds(
        start=datetime_param("start"),
        end=datetime_param("end"),
        wide_start=datetime_param("wide_start"),
        wide_end=datetime_param("wide_end"),
    )
    conflicts = Reservation.objects.filter(room__any_of=int_list_param("rooms")).conflicting(
        bounds, now=datetime_param("now"), user=int_param("user")
    )
    return conflicts.values_list("room_id", "start", "end", "occupied_from", "occupied_until")
