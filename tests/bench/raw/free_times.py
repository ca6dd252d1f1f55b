"""The free times of rooms."""

from collections import defaultdict
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from centers.span import Span
from reservations.free_times import find_free_times
from reservations.room_calendars import OpenInterval, RoomCalendar
from tests.bench.raw.database import (
    JSONDict,
    Refused,
    User,
    authenticate,
    fetch_all,
    get_cursor,
)
from tests.bench.raw.rooms import HOLDING, ROOM, Room, build_room


def list_free_times(data: JSONDict, root: str, now: datetime) -> JSONDict:
    """Dates without a time, one to 50 rooms. Statements read all rooms together."""
    cur = get_cursor()
    user = authenticate(cur, data, now)
    first, last = (datetime.fromisoformat(data[name]) for name in ("From", "To"))
    if last <= first or last - first > timedelta(days=31):
        raise Refused("400 Bad Request", "InvalidRequest")
    rooms = get_rooms(cur, data["RoomIds"])
    periods = {
        room.pk: Span(first.replace(tzinfo=room.zone), last.replace(tzinfo=room.zone))
        for room in rooms
    }
    within = Span(
        min(each.start for each in periods.values()), max(each.end for each in periods.values())
    )
    week = get_opening_hours(cur, rooms)
    taken = get_taken(cur, rooms, within, user=user, now=now)
    return {
        "Rooms": [
            {
                "RoomId": room.pk,
                "FreeTimes": [
                    {
                        "Start": free.start.astimezone(room.zone).isoformat(),
                        "End": free.end.astimezone(room.zone).isoformat(),
                    }
                    for free in find_free_times(
                        with_center(room),
                        periods[room.pk],
                        RoomCalendar(week[room.center_id], taken[room.pk]),
                        now=now,
                    )
                ],
            }
            for room in rooms
        ]
    }


def get_rooms(cur: Any, ids: list[int]) -> list[Room]:
    found = {
        row[0]: build_room(row)
        for row in fetch_all(
            cur,
            f"""SELECT {ROOM} FROM centers_meetingroom r
                  JOIN centers_center c ON c.id = r.center_id
                  LEFT JOIN centers_rate t ON t.id = r.rate_id
                WHERE r.id = ANY (%s) AND r.is_active AND c.is_active""",
            (ids,),
        )
    }
    if len(found) < len(ids):
        raise Refused("404 Not Found", "NotFound")
    return [found[pk] for pk in ids]


def with_center(room: Room) -> Any:
    """The room as roombook's function expects it."""
    center = SimpleNamespace(zone=room.zone, is_after_hours_support_enabled=room.after_hours)
    return SimpleNamespace(**{**room._asdict(), "center": center})


def get_opening_hours(cur: Any, rooms: list[Room]) -> dict[int, list[OpenInterval]]:
    week = defaultdict(list)
    for center, *interval in fetch_all(
        cur,
        """SELECT center_id, weekday, opens, closes FROM centers_openinghours
           WHERE center_id = ANY (%s)""",
        (list({room.center_id for room in rooms}),),
    ):
        week[center].append(OpenInterval._make(interval))
    return week


def get_taken(
    cur: Any, rooms: list[Room], within: Span, *, user: User, now: datetime
) -> dict[int, list[Span]]:
    """The closures and reservations of the rooms, by one statement."""
    margin = timedelta(minutes=max(room.turnaround_minutes for room in rooms))
    centers = list({room.center_id for room in rooms})
    ids = [room.pk for room in rooms]
    taken: dict[int, list[Span]] = {pk: [] for pk in ids}
    for pk, start, end in fetch_all(
        cur,
        f"""SELECT r.id, c.starts_at, c.ends_at FROM centers_meetingroom r
              JOIN centers_closure c
                ON c.center_id = r.center_id AND (c.room_id IS NULL OR c.room_id = r.id)
            WHERE c.center_id = ANY (%s) AND r.id = ANY (%s) AND c.starts_at < %s AND c.ends_at > %s
            UNION ALL
            SELECT r.id,
              LEAST(b.occupied_from, b.start - r.turnaround_minutes * interval '1 minute'),
              GREATEST(b.occupied_until, b."end" + r.turnaround_minutes * interval '1 minute')
            FROM reservations_reservation b JOIN centers_meetingroom r ON r.id = b.room_id
            WHERE b.room_id = ANY (%s) AND b.holds_slot
              AND (b.status IN {HOLDING} OR (b.status = 'New' AND b.hold_until > %s))
              AND NOT (b.user_id = %s AND b.status = 'New')
              AND ((b.start < %s AND b."end" > %s)
                OR (b.occupied_from < %s AND b.occupied_until > %s))""",
        (
            *(centers, ids, within.end, within.start, ids, now, user.pk),
            *(within.end + margin, within.start - margin, within.end, within.start),
        ),
    ):
        taken[pk].append(Span(start, end))
    return taken
