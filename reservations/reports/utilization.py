"""The utilization report: how much of the time in which rooms are open was sold.

**Open time.** The opening hours of the center on each local day of the period, less closures of the
center or the room, times the rooms. Inactive rooms count only if they were booked.

**Sold time.** The time of Confirmed, Completed and NoShow reservations within the opening hours, as
far as it is in the period. Time outside of them (after-hours support, an override by a manager) is
shown separately, so that utilization never exceeds 100 %.

Hours are those of the local clock: on the day on which an hour is repeated, it counts twice; an
hour that is skipped does not count.
"""

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from babel.dates import get_day_names
from django.conf import settings
from django.db.models import Q, QuerySet

from centers.hours import OpeningHoursRow, get_open_spans_within
from centers.models import Closure, MeetingRoom, OpeningHours
from centers.requested_span import MAX_SPAN
from centers.span import Span, find_gaps
from reservations.local_days import LocalDays
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES
from reservations.reports.cube import (
    CENTER,
    ColumnFormat,
    Cube,
    Dimension,
    HeatMap,
    HeatMapCell,
    Member,
    Report,
    Sums,
    count,
    hours,
    share,
)
from reservations.reports.selection import ReportSelection, fetch_at_most
from roombook import places

# Limits that keep a report within a few seconds.
MAX_ROOMS = 5_000
MAX_BOOKINGS = 100_000

HOUR_LENGTH, SECOND = dt.timedelta(hours=1), dt.timedelta(seconds=1)

# A weekday (0 is Monday) and an hour of the local clock.
WeekdayHour = tuple[int, int]


def get_weekday_name(weekday: int, width: str = "wide") -> str:
    names = get_day_names(width, locale=settings.LOCALE)  # type: ignore[arg-type]
    return str(names[weekday])


WEEKDAY = Dimension("weekday", "Weekday", ColumnFormat(get_weekday_name))
SHORT_WEEKDAY = replace(
    WEEKDAY, format=ColumnFormat(partial(get_weekday_name, width="abbreviated"))
)
HOUR = Dimension("hour", "Hour", ColumnFormat("{:02}:00".format))
UTILIZATION = share("Utilization", "sold", "opened")
SOLD, OPEN = hours("Hours sold", "sold"), hours("Hours open", "opened")
OUTSIDE = hours("Hours sold outside", "outside")
TIMES = (UTILIZATION, SOLD, OPEN)
MEASURES = (*TIMES, OUTSIDE, count("Bookings", "bookings"))


class Utilization(NamedTuple):
    """By center and room, and by weekday and hour: each adds up to the total."""

    rooms: Cube
    times: Cube


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    rooms, times = measure_utilization(selection)
    return Report(
        figures=[
            rooms.summarize(UTILIZATION),
            rooms.summarize(SOLD, "within opening hours"),
            rooms.summarize(OPEN, f"of {rooms.total['rooms']:,} rooms"),
            rooms.summarize(OUTSIDE, "of opening hours"),
        ],
        # From Monday to Sunday; a day without opening hours has no bar.
        charts=[
            times.draw(
                "Utilization by weekday", SHORT_WEEKDAY, UTILIZATION, _describe_hours, full=1
            )
        ],
        heat_map=build_heat_map("Utilization by weekday and hour, percent", times),
        tables=[
            rooms.tabulate_centers([count("Rooms", "rooms"), *MEASURES], order=UTILIZATION),
            rooms.tabulate("room", "By room", [CENTER, Dimension("room", "Room")], MEASURES),
            times.tabulate("weekday", "By weekday", [WEEKDAY], TIMES, omits_zeros=True),
            times.tabulate(
                "hour", "By weekday and hour", [WEEKDAY, HOUR], TIMES, is_for_files=True
            ),
        ],
        description=(
            "The time of Confirmed, Completed and No-show reservations within opening hours, as a"
            " share of all opening hours less closures, times the rooms. Hours are in the local"
            " time of each center, also on days on which the clocks change."
        ),
    )


def _describe_hours(sums: Sums) -> str:
    return f"{SOLD.display(sums)} of {OPEN.display(sums)} hours"


def build_heat_map(title: str, times: Cube) -> HeatMap:
    """Build a heat map from the first to the last hour with any opening time."""
    found = times.by("weekday", "hour")
    open_hours = sorted({hour for (_, hour), sums in found.items() if sums["opened"]})
    shown = range(open_hours[0], open_hours[-1] + 1) if open_hours else range(0)
    largest = max(map(UTILIZATION.get_size, found.values()), default=0) or 1

    def build_cell(name: str, day: int, hour: int) -> HeatMapCell:
        sums = found.get((day, hour), Sums())
        time = f"{name} {hour:02}:00-{(hour + 1) % 24:02}:00"
        if not sums["opened"]:
            return HeatMapCell("", None, f"{time}: closed")
        used = UTILIZATION.get_size(sums)
        hint = f"{time}: {_describe_hours(sums)}"
        return HeatMapCell(f"{used * 100:.0f}", round(used / largest * 100), hint)

    names = map(SHORT_WEEKDAY.format.render, range(7))
    rows = [
        (name, [build_cell(name, day, each) for each in shown]) for day, name in enumerate(names)
    ]
    return HeatMap(title, [f"{hour:02}" for hour in shown], rows)


# --- Measuring -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Schedule:
    """When a room is open in a period. Rooms that are open at the same times share one."""

    period: LocalDays
    time_zone_id: str
    opening_hours: frozenset[OpeningHoursRow]
    closures: tuple[Span, ...]

    @cached_property
    def zone(self) -> ZoneInfo:
        return places.get_time_zone(self.time_zone_id)

    @cached_property
    def span(self) -> Span:
        """The period in the time zone."""
        return self.period.span(self.time_zone_id)

    @cached_property
    def seconds(self) -> Counter[WeekdayHour]:
        """The open seconds by weekday and hour."""
        return self._split(self.span)

    def split_booking(self, booking: Span) -> tuple[Counter[WeekdayHour], int]:
        """The seconds of a booking in the period: within opening hours, and outside of them."""
        if not booking.overlaps(self.span):
            return Counter(), 0
        inside = Span(max(booking.start, self.span.start), min(booking.end, self.span.end))
        sold = self._split(inside)
        return sold, inside.duration // SECOND - sold.total()

    def get_open_parts(self, span: Span) -> list[Span]:
        opened = get_open_spans_within(span, self.opening_hours, self.zone)
        return [part for each in opened for part in find_gaps(each, self.closures)]

    def _split(self, span: Span) -> Counter[WeekdayHour]:
        seconds: Counter[WeekdayHour] = Counter()
        for part in self.get_open_parts(span):
            seconds.update(split_by_weekday_hour(part, self.zone))
        return seconds


def split_by_weekday_hour(span: Span, zone: ZoneInfo) -> Counter[WeekdayHour]:
    """The seconds of a span by weekday and hour of the local clock."""
    seconds: Counter[WeekdayHour] = Counter()
    at = span.start
    while at < span.end:
        local = at.astimezone(zone)
        # Clocks change at a full or half hour, so never within the rest of this hour.
        elapsed = dt.timedelta(minutes=local.minute, seconds=local.second)
        next_hour = min(at + HOUR_LENGTH - elapsed, span.end)
        seconds[local.weekday(), local.hour] += (next_hour - at) // SECOND
        at = next_hour
    return seconds


def measure_utilization(selection: ReportSelection) -> Utilization:
    """Measure the utilization of the selection, with five queries. Raises ReportTooLarge."""
    rooms, bookings = _fetch_rooms(selection), _fetch_bookings(selection)
    booked = {room for room, _ in bookings}
    rooms = [
        room for room in rooms if room.pk in booked or (room.is_active and room.center__is_active)
    ]
    schedules = _build_schedules(selection.period, rooms)
    split = cache(Schedule.split_booking)  # Many bookings are at the same times.
    used_by_room = {
        pk: Sums(rooms=1, opened=schedule.seconds.total()) for pk, schedule in schedules.items()
    }
    used_by_time: dict[WeekdayHour, Sums] = defaultdict(Sums)
    for schedule, number in Counter(schedules.values()).items():
        for time, seconds in schedule.seconds.items():
            used_by_time[time]["opened"] += seconds * number
    for room_id, span in bookings:
        if room_id not in schedules:  # It was created after the rooms were read.
            continue
        sold, outside = split(schedules[room_id], span)
        if sold or outside:
            used_by_room[room_id].add(Sums(sold=sold.total(), outside=outside, bookings=1))
        for time, seconds in sold.items():
            used_by_time[time]["sold"] += seconds
    by_room = [
        (
            {
                "center": Member(room.center__name, room.center),
                "room": Member(room.name, room.pk),
            },
            used_by_room[room.pk],
        )
        for room in rooms
    ]
    by_time = [
        ({"weekday": weekday, "hour": hour}, sums)
        for (weekday, hour), sums in sorted(used_by_time.items())
    ]
    weekdays = [({"weekday": weekday}, Sums()) for weekday in range(7)]
    return Utilization(Cube(by_room), Cube([*weekdays, *by_time]))


def _fetch_rooms(selection: ReportSelection) -> list[Any]:
    """The rooms, with what is needed of their centers: model instances would take much longer."""
    rows = MeetingRoom.objects.filter(selection.filter_rooms(""))
    named: QuerySet[MeetingRoom, Any] = rows.order_by("center__name", "name", "pk").values_list(
        *("pk", "name", "is_active", "center"),
        *("center__name", "center__is_active", "center__time_zone_id"),
        named=True,
    )
    return fetch_at_most(
        MAX_ROOMS, named, f"These are more than {MAX_ROOMS:,} rooms. Choose some centers."
    )


def _build_schedules(period: LocalDays, rooms: list[Any]) -> dict[int, Schedule]:
    """The schedules by room. Rooms that are open at the same times get the same one."""
    centers, span = {room.center for room in rooms}, period.widest_span()
    closures: dict[tuple[int, int | None], list[Span]] = defaultdict(list)
    for each in Closure.objects.filter(center__in=centers).overlapping(span.start, span.end):
        closures[each.center_id, each.room_id].append(each.span)
    weeks: dict[int, set[OpeningHoursRow]] = defaultdict(set)
    rows = OpeningHours.objects.filter(center__in=centers)
    for center, weekday, opens, closes in rows.values_list("center", "weekday", "opens", "closes"):
        weeks[center].add(OpeningHoursRow(weekday, opens, closes))
    build_schedule = cache(partial(Schedule, period))
    return {
        room.pk: build_schedule(
            room.center__time_zone_id,
            frozenset(weeks[room.center]),
            tuple(sorted(closures[room.center, None] + closures[room.center, room.pk])),
        )
        for room in rooms
    }


def _fetch_bookings(selection: ReportSelection) -> list[tuple[int, Span]]:
    """The room and the time of each booking."""
    span = selection.period.widest_span()
    rows = Reservation.objects.filter(
        selection.filter_rooms("room__"),
        # The index is on the start; no booking is longer than MAX_SPAN.
        Q(start__gte=span.start - MAX_SPAN, start__lt=span.end, end__gt=span.start),
        status__in=sorted(REVENUE_STATUSES),
    )
    found = fetch_at_most(
        MAX_BOOKINGS,
        rows.order_by().values_list("room_id", "start", "end"),
        f"These are more than {MAX_BOOKINGS:,} reservations. Choose fewer days, or some centers.",
    )
    return [(room, Span(start, end)) for room, start, end in found]
