"""The utilization report: how much of the time in which rooms are open was sold.

**Open time.** The opening hours of the center on each local day of the period, less closures of the
center or the room, times the rooms. Inactive rooms count only if they were booked.

**Sold time.** The time of Confirmed, Completed and NoShow reservations within the opening hours, as
far as it is in the period. Time outside of them (after-hours support, an override by a manager) is
shown separately, so that utilization never exceeds 100 %.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from django.db.models import Q

from centers.hours import OpeningHoursRow
from centers.models import Closure, MeetingRoom, OpeningHours
from centers.requested_span import MAX_SPAN
from centers.span import Span
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES
from reservations.reports.aggregates import SummableMixin, add_up
from reservations.reports.charts import (
    Chart,
    HeatMap,
    HeatMapCell,
    build_chart,
    get_weekday_names,
)
from reservations.reports.open_time import Schedule, SplitBooking, WeekdayHour
from reservations.reports.report import Report, ReportFigure, sort_by_size
from reservations.reports.selection import ReportSelection, fetch_at_most
from reservations.reports.tables import COUNT, HOURS, SHARE, ReportColumn, build_table

# Limits that keep a report within a few seconds.
MAX_ROOMS = 5_000
MAX_BOOKINGS = 100_000

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class UsedTime(SummableMixin):
    """Seconds that were open, that were sold of these, and that were sold outside of them."""

    opened: int = 0
    sold: int = 0
    outside: int = 0
    bookings: int = 0
    rooms: int = 0

    @property
    def share(self) -> float | None:
        """The sold share of the open time, 0 to 1; None without open time."""
        return self.sold / self.opened if self.opened else None

    @property
    def hours_open(self) -> float:
        return self.opened / SECONDS_PER_HOUR

    @property
    def hours_sold(self) -> float:
        return self.sold / SECONDS_PER_HOUR

    @property
    def hours_outside(self) -> float:
        return self.outside / SECONDS_PER_HOUR


class UtilizedRoom(NamedTuple):
    """A room and its center; ``is_active`` only if both are."""

    pk: int
    name: str
    center: int
    center_name: str
    time_zone_id: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Utilization:
    """Rooms and centers, weekdays and hours: each adds up to the total."""

    total: UsedTime
    by_center: dict[int, UsedTime]
    by_room: dict[UtilizedRoom, UsedTime]
    by_weekday_hour: dict[WeekdayHour, UsedTime]
    center_names: dict[int, str]

    @property
    def by_weekday(self) -> dict[int, UsedTime]:
        by_hour = sorted(self.by_weekday_hour.items())
        return add_up((weekday, used) for (weekday, _), used in by_hour)


TIME_COLUMNS = (
    ReportColumn("Utilization", SHARE, "share"),
    ReportColumn("Hours sold", HOURS, "hours_sold"),
    ReportColumn("Hours open", HOURS, "hours_open"),
)
COLUMNS = (
    *TIME_COLUMNS,
    ReportColumn("Hours sold outside", HOURS, "hours_outside"),
    ReportColumn("Bookings", COUNT, "bookings"),
)


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    found = measure_utilization(selection)
    total, names = found.total, get_weekday_names("wide")
    center, weekday = ReportColumn("Center"), ReportColumn("Weekday")
    return Report(
        figures=[
            ReportFigure("Utilization", SHARE.display(total.share)),
            ReportFigure("Hours sold", HOURS.display(total.hours_sold), "within opening hours"),
            ReportFigure(
                "Hours open", HOURS.display(total.hours_open), f"of {total.rooms:,} rooms"
            ),
            ReportFigure(
                "Hours sold outside", HOURS.display(total.hours_outside), "of opening hours"
            ),
        ],
        charts=[build_weekday_chart("Utilization by weekday", found.by_weekday)],
        heat_map=build_heat_map("Utilization by weekday and hour, percent", found.by_weekday_hour),
        tables=[
            build_table(
                *("center", "By center", [center]),
                (ReportColumn("Rooms", COUNT, "rooms"), *COLUMNS),
                [
                    ([found.center_names[pk]], used)
                    for pk, used in sort_by_size(found.by_center, lambda used: used.share or 0)
                ],
                total,
            ),
            build_table(
                *("room", "By room", [center, ReportColumn("Room")], COLUMNS),
                [([room.center_name, room.name], used) for room, used in found.by_room.items()],
                total,
            ),
            build_table(
                *("weekday", "By weekday", [weekday], TIME_COLUMNS),
                [([names[day]], used) for day, used in found.by_weekday.items()],
                total,
            ),
            build_table(
                *("hour", "By weekday and hour", [weekday, ReportColumn("Hour")], TIME_COLUMNS),
                [
                    ([names[day], f"{hour:02}:00"], used)
                    for (day, hour), used in sorted(found.by_weekday_hour.items())
                ],
                total,
                is_for_files=True,
            ),
        ],
        description=(
            "The time of Confirmed, Completed and No-show reservations within opening hours, as a"
            " share of all opening hours less closures, times the rooms. Hours are in the local"
            " time of each center, also on days on which the clocks change."
        ),
    )


# --- Charts --------------------------------------------------------------------------------------


def build_weekday_chart(title: str, by_weekday: dict[int, UsedTime]) -> Chart:
    """The utilization from Monday to Sunday; a day without opening hours has no bar."""
    days = [(name, by_weekday.get(day, UsedTime())) for day, name in enumerate(get_weekday_names())]
    return build_chart(
        title,
        [
            (name, day.share or 0, SHARE.display(day.share), _describe_hours(day))
            for name, day in days
        ],
        full=1,
    )


def _describe_hours(used: UsedTime) -> str:
    return f"{used.hours_sold:,.1f} of {used.hours_open:,.1f} hours"


def build_heat_map(title: str, by_weekday_hour: dict[WeekdayHour, UsedTime]) -> HeatMap:
    """Build a heat map from the first to the last hour with any opening time."""
    open_hours = sorted({hour for (_, hour), used in by_weekday_hour.items() if used.opened})
    hours = range(open_hours[0], open_hours[-1] + 1) if open_hours else range(0)
    largest = max((used.share or 0 for used in by_weekday_hour.values()), default=0) or 1

    def build_cell(name: str, day: int, hour: int) -> HeatMapCell:
        used = by_weekday_hour.get((day, hour), UsedTime())
        time = f"{name} {hour:02}:00-{(hour + 1) % 24:02}:00"
        if used.share is None:
            return HeatMapCell("", None, f"{time}: closed")
        return HeatMapCell(
            f"{used.share * 100:.0f}",
            round(used.share / largest * 100),
            f"{time}: {_describe_hours(used)}",
        )

    return HeatMap(
        title,
        [f"{hour:02}" for hour in hours],
        [
            (name, [build_cell(name, day, hour) for hour in hours])
            for day, name in enumerate(get_weekday_names())
        ],
    )


# --- Measuring -----------------------------------------------------------------------------------


def measure_utilization(selection: ReportSelection) -> Utilization:
    """Measure the utilization of the selection, with four queries. Raises ReportTooLarge."""
    rooms = _fetch_rooms(selection)
    get_schedule = _build_schedules(selection, rooms)
    bookings = _fetch_bookings(selection)
    booked_rooms = {room for room, _, _ in bookings}
    schedules = {
        room.pk: get_schedule(room) for room in rooms if room.is_active or room.pk in booked_rooms
    }
    opened, sold = Counter[WeekdayHour](), Counter[WeekdayHour]()
    for schedule, count in Counter(schedules.values()).items():
        for hour, seconds in schedule.seconds.items():
            opened[hour] += seconds * count
    sold_in_room, outside_in_room, bookings_in_room = Counter[int](), Counter[int](), Counter[int]()

    @cache  # Many bookings are at the same times.
    def split(schedule: Schedule, start: dt.datetime, end: dt.datetime) -> SplitBooking:
        return schedule.split_booking(Span(start, end))

    for (room_id, start, end), count in Counter(bookings).items():
        if room_id not in schedules:  # it was created after the rooms were read
            continue
        sold_hours, outside = split(schedules[room_id], start, end)
        if sold_hours or outside:
            sold_in_room[room_id] += sold_hours.total() * count
            outside_in_room[room_id] += outside * count
            bookings_in_room[room_id] += count
        for hour, seconds in sold_hours.items():
            sold[hour] += seconds * count

    used_by_room = {
        room: UsedTime(
            schedules[room.pk].seconds.total(),
            *(sold_in_room[room.pk], outside_in_room[room.pk], bookings_in_room[room.pk]),
            rooms=1,
        )
        for room in rooms
        if room.pk in schedules
    }
    by_center = add_up((room.center, used) for room, used in used_by_room.items())
    return Utilization(
        sum(by_center.values(), UsedTime()),
        by_center,
        used_by_room,
        {hour: UsedTime(opened[hour], sold[hour]) for hour in {*opened, *sold}},
        {room.center: room.center_name for room in used_by_room},
    )


def _fetch_rooms(selection: ReportSelection) -> list[UtilizedRoom]:
    rows = MeetingRoom.objects.filter(selection.filter_rooms("")).order_by(
        "center__name", "name", "pk"
    )
    rows = rows.annotate(is_in_use=Q(is_active=True, center__is_active=True))
    columns = ("pk", "name", "center_id", "center__name", "center__time_zone_id", "is_in_use")
    advice = f"These are more than {MAX_ROOMS:,} rooms. Choose some centers."
    found = fetch_at_most(MAX_ROOMS, rows.values_list(*columns), advice)
    return [UtilizedRoom(*row) for row in found]


def _build_schedules(
    selection: ReportSelection, rooms: list[UtilizedRoom]
) -> Callable[[UtilizedRoom], Schedule]:
    """A function that returns the schedule of a room.

    Rooms that are open at the same times get the same schedule, which is computed once.
    """
    centers = {room.center for room in rooms}
    opening_hours: dict[int, set[OpeningHoursRow]] = defaultdict(set)
    rows = OpeningHours.objects.filter(center__in=centers).order_by()
    columns = ("center_id", "weekday", "opens", "closes")
    for center, weekday, opens, closes in rows.values_list(*columns):
        opening_hours[center].add(OpeningHoursRow(weekday, opens, closes))
    span = selection.period.widest_span()
    closures: dict[tuple[int, int | None], list[Span]] = defaultdict(list)
    for center, room_id, start, end in (
        Closure.objects.filter(center__in=centers)
        .overlapping(span.start, span.end)
        .values_list("center_id", "room_id", "starts_at", "ends_at")
    ):
        closures[center, room_id].append(Span(start, end))
    build_schedule = cache(partial(Schedule, selection.period))

    def get_schedule(room: UtilizedRoom) -> Schedule:
        closed = sorted(closures[room.center, None] + closures[room.center, room.pk])
        return build_schedule(
            room.time_zone_id, frozenset(opening_hours[room.center]), tuple(closed)
        )

    return get_schedule


def _fetch_bookings(selection: ReportSelection) -> list[tuple[int, dt.datetime, dt.datetime]]:
    """The room, start and end of each booking."""
    span = selection.period.widest_span()
    rows = Reservation.objects.filter(
        selection.filter_rooms("room__"),
        # The index is on the start; no booking is longer than MAX_SPAN.
        Q(start__gte=span.start - MAX_SPAN, start__lt=span.end, end__gt=span.start),
        status__in=sorted(REVENUE_STATUSES),
    )
    return fetch_at_most(
        MAX_BOOKINGS,
        rows.order_by().values_list("room_id", "start", "end"),
        f"These are more than {MAX_BOOKINGS:,} reservations. Choose fewer days, or some centers.",
    )
