"""The utilization report: how much of the time in which rooms are open was sold.

**Open time.** The opening hours of the center on each local day of the period, less closures of the
center or the room, times the rooms. Inactive rooms count only if they were booked.

**Sold time.** The time of Confirmed, Completed and NoShow reservations within the opening hours, as
far as it is in the period. Time outside of them (after-hours support, an override by a manager) is
shown separately, so that utilization never exceeds 100 %.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Q

from centers.models import Center, Closure, MeetingRoom, OpeningHours
from centers.span import Span
from reservations.admin.reports.aggregates import SummableMixin
from reservations.admin.reports.charts import (
    Chart,
    HeatMap,
    HeatMapCell,
    build_chart,
    get_weekday_names,
)
from reservations.admin.reports.open_time import Schedule, WeekdayHour, WeekdayOpening
from reservations.admin.reports.report import Report, ReportFigure, sort_by_size
from reservations.admin.reports.selection import ReportSelection, fetch_at_most
from reservations.admin.reports.tables import (
    COUNT,
    HOURS,
    SHARE,
    ReportColumn,
    build_table,
)
from reservations.booking.span import MAX_SPAN
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES

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


class RoomUtilization(NamedTuple):
    """The use of one room."""

    pk: int
    name: str
    center: int
    used: UsedTime


@dataclass(frozen=True, slots=True)
class Utilization:
    """Rooms and centers, weekdays and hours: each adds up to the total."""

    total: UsedTime
    by_center: dict[int, UsedTime]
    rooms: list[RoomUtilization]
    by_weekday_hour: dict[WeekdayHour, UsedTime]
    center_names: dict[int, str]

    @property
    def by_weekday(self) -> dict[int, UsedTime]:
        sums: dict[int, UsedTime] = {}
        for (weekday, _), used in sorted(self.by_weekday_hour.items()):
            sums[weekday] = sums.get(weekday, UsedTime()) + used
        return sums


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
                [([found.center_names[room.center], room.name], room.used) for room in found.rooms],
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
            "The time of Confirmed, Completed and NoShow reservations within opening hours, as a"
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
    """Measure the utilization of the selection, with five queries. Raises ReportTooLarge."""
    rooms = _fetch_rooms(selection)
    centers = _fetch_centers(selection)
    get_schedule = _build_schedules(selection, centers)
    bookings = _fetch_bookings(selection)
    booked_rooms = {room for room, _, _ in bookings}

    schedules = {
        pk: get_schedule(pk, center)
        for pk, _, center, is_active in rooms
        if is_active or pk in booked_rooms
    }
    opened, sold = Counter[WeekdayHour](), Counter[WeekdayHour]()
    for schedule, count in Counter(schedules.values()).items():
        for hour, seconds in schedule.seconds.items():
            opened[hour] += seconds * count
    sold_in_room, outside_in_room, bookings_in_room = Counter[int](), Counter[int](), Counter[int]()
    # Many bookings are at the same times.
    split: dict[tuple[Schedule, Span], tuple[Counter[WeekdayHour], int]] = {}
    for (room, start, end), count in Counter(bookings).items():
        if room not in schedules:  # it was created a moment ago
            continue
        key = (schedules[room], Span(start, end))
        if key not in split:
            split[key] = key[0].split_booking(key[1])
        sold_hours, outside = split[key]
        if sold_hours or outside:
            sold_in_room[room] += sold_hours.total() * count
            outside_in_room[room] += outside * count
            bookings_in_room[room] += count
        for hour, seconds in sold_hours.items():
            sold[hour] += seconds * count

    found = [
        RoomUtilization(
            *(pk, name, center),
            UsedTime(
                schedules[pk].seconds.total(),
                *(sold_in_room[pk], outside_in_room[pk], bookings_in_room[pk]),
                rooms=1,
            ),
        )
        for pk, name, center, _ in rooms
        if pk in schedules
    ]
    total = UsedTime()
    by_center: dict[int, UsedTime] = {}
    for each in found:
        total += each.used
        by_center[each.center] = by_center.get(each.center, UsedTime()) + each.used
    return Utilization(
        total,
        by_center,
        found,
        {hour: UsedTime(opened[hour], sold[hour]) for hour in {*opened, *sold}},
        {pk: name for pk, (name, _) in centers.items() if pk in by_center},
    )


def _fetch_rooms(selection: ReportSelection) -> list[tuple[int, str, int, bool]]:
    """The id, name and center of each room, and whether it is active."""
    rows = MeetingRoom.objects.filter(selection.filter_rooms("")).order_by(
        "center__name", "name", "pk"
    )
    columns = ("pk", "name", "center_id", "is_active", "center__is_active")
    advice = f"These are more than {MAX_ROOMS:,} rooms. Choose some centers."
    found = fetch_at_most(MAX_ROOMS, rows.values_list(*columns), advice)
    return [
        (pk, name, center, is_room_active and is_center_active)
        for pk, name, center, is_room_active, is_center_active in found
    ]


def _fetch_centers(selection: ReportSelection) -> dict[int, tuple[str, str]]:
    """The name and time zone of each center with rooms."""
    rows = Center.objects.filter(selection.filter_centers("pk"), rooms__isnull=False).distinct()
    return {pk: (name, zone) for pk, name, zone in rows.values_list("pk", "name", "time_zone_id")}


def _build_schedules(
    selection: ReportSelection, centers: dict[int, tuple[str, str]]
) -> Callable[[int, int], Schedule]:
    """A function that returns the schedule of a room (by room and center id).

    Rooms that are open at the same times get the same schedule, which is computed once.
    """
    opening_hours: dict[int, set[WeekdayOpening]] = defaultdict(set)
    rows = OpeningHours.objects.filter(center__in=centers).order_by()
    columns = ("center_id", "weekday", "opens", "closes")
    for center, weekday, opens, closes in rows.values_list(*columns):
        opening_hours[center].add(WeekdayOpening(weekday, opens, closes))
    span = selection.period.widest_span()
    closures: dict[tuple[int, int | None], list[Span]] = defaultdict(list)
    for center, room, start, end in (
        Closure.objects.filter(center__in=centers)
        .overlapping(span.start, span.end)
        .values_list("center_id", "room_id", "starts_at", "ends_at")
    ):
        closures[center, room].append(Span(start, end))

    schedules: dict[Hashable, Schedule] = {}

    def get_schedule(room: int, center: int) -> Schedule:
        closed = tuple(
            sorted([*closures.get((center, None), ()), *closures.get((center, room), ())])
        )
        _, time_zone_id = centers[center]
        key = (time_zone_id, frozenset(opening_hours[center]), closed)
        if key not in schedules:
            schedules[key] = Schedule(selection.period, *key)
        return schedules[key]

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
