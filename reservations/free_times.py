"""The times in which rooms can be booked (B11.5)."""

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from centers import hours
from centers.models import Center, MeetingRoom
from centers.rooms import get_booking_rules
from centers.span import Span
from reservations.availability import RoomCalendar, load_calendars
from roombook.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from accounts.models import User

MAX_ROOMS = 50
# Rooms times days: 100 rooms with four bookings a day take half a second for a month.
MAX_ROOM_DAYS = 100 * 31
DAY = dt.timedelta(days=1)
# What forms propose starts so much later than now that it can still be booked when they are sent.
TIME_TO_SUBMIT, PROPOSAL_HORIZON = dt.timedelta(minutes=5), 21 * DAY


class FreeTimeRecord(NamedTuple):
    """A free time, in the center's local time."""

    start: dt.datetime
    end: dt.datetime


class RoomFreeTimes(NamedTuple):
    room_id: int
    free_times: list[FreeTimeRecord]


def load_rooms(*, room_ids: Sequence[int] | None, center_id: int | None) -> list[MeetingRoom]:
    """Return the rooms in the order of their ids, or a center's rooms as a search lists them.

    Rooms of the center without a price, which a search leaves out, are among them. Raises
    InvalidRequest unless one of both is given, and NotFound unless all are active.
    """
    if (room_ids is None) == (center_id is None):
        raise InvalidRequest({"center_id": "Either CenterId or RoomIds is required."})
    active = MeetingRoom.objects.select_related("center").filter(
        is_active=True, center__is_active=True
    )
    if center_id is not None:
        # One more than can be answered for a day.
        rooms = list(active.filter(center=center_id).order_by("name", "pk")[: MAX_ROOM_DAYS + 1])
        if not rooms and not Center.objects.active().filter(pk=center_id).exists():
            raise NotFound
        return rooms
    if not room_ids:  # None has been refused above.
        raise InvalidRequest({"room_ids": "At least one room is required."})
    if len(set(room_ids)) < len(room_ids):
        raise InvalidRequest({"room_ids": "Each room can be listed once."})
    found = active.in_bulk(room_ids)
    if len(found) < len(room_ids):
        raise NotFound
    return [found[pk] for pk in room_ids]


def list_free_times(
    rooms: Sequence[MeetingRoom],
    get_period: Callable[[dt.tzinfo], Span],
    *,
    duration: dt.timedelta | None,
    user: "User",
    now: dt.datetime,
) -> list[RoomFreeTimes]:
    """Return the free times of each room within the period in its time zone, by a few queries.

    Raises InvalidRequest for more than MAX_ROOM_DAYS.
    """
    if not rooms:
        return []
    periods = {zone: get_period(zone) for zone in {room.center.zone for room in rooms}}
    within = Span(
        min(each.start for each in periods.values()), max(each.end for each in periods.values())
    )
    if len(rooms) * -(-within.duration // DAY) > MAX_ROOM_DAYS:
        raise InvalidRequest(
            {
                "center_id": "The center has too many rooms for so many days. Ask for fewer days,"
                " or for some of its rooms by RoomIds."
            }
        )
    calendars = load_calendars(rooms, within, user=user, now=now)
    return [
        RoomFreeTimes(
            room.pk,
            [
                FreeTimeRecord(
                    free.start.astimezone(room.center.zone), free.end.astimezone(room.center.zone)
                )
                for free in calendars[room.pk].find_free_times(
                    periods[room.center.zone], duration=duration, now=now
                )
            ],
        )
        for room in rooms
    ]


def find_next_bookings(
    rooms: Sequence[MeetingRoom],
    *,
    user: "User | None",
    now: dt.datetime,
    is_walk_in: bool = False,
    wanted: Span | None = None,
) -> Iterator[tuple[MeetingRoom, Span]]:
    """Yield the rooms with the next times in which they can be booked as usual; forms propose it.

    Rooms that are not free for three weeks are left out. The customer's own drafts are no
    conflicts, because a new draft replaces them. `is_walk_in`: the slot that is running now is
    proposed too, to staff. `wanted`: times as long as this one, from its start on.
    """
    end = (wanted.start if wanted else now) + PROPOSAL_HORIZON
    calendars = load_calendars(rooms, Span(now - DAY, end), user=user, now=now)
    for room in rooms:
        slot, zone = get_booking_rules(room).slot_minutes, room.center.zone
        start = hours.round_down_to_slot(now, zone, slot) if is_walk_in else now + TIME_TO_SUBMIT
        start, duration = (wanted.start, wanted.duration) if wanted else (start, None)
        for span in _list_bookings(calendars[room.pk], Span(start, end), now, duration):
            yield room, span
            break


def _list_bookings(
    calendar: RoomCalendar, within: Span, now: dt.datetime, duration: dt.timedelta | None
) -> Iterator[Span]:
    """Yield the available bookings of this length that local times without an offset name.

    By default, it is the usual length.
    """
    zone, rules = calendar.room.center.zone, get_booking_rules(calendar.room)
    duration = duration or rules.usual_duration
    for free in calendar.find_free_times(within, duration=duration, now=now, by_staff=True):
        start = free.start
        while (end := start + duration) <= free.end:
            # A local time that occurs twice is the first one.
            is_named = not (start.astimezone(zone).fold or end.astimezone(zone).fold)
            if is_named and calendar.is_available(Span(start, end), now=now, by_staff=True):
                yield Span(start, end)
            start = hours.round_up_to_slot(start + hours.MINUTE, zone, rules.slot_minutes)
