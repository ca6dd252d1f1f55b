"""Utilization: how much of the time that rooms could be sold was sold.

**Of what.** The opening hours of the center on each local day of the period, less closures of the
center or the room; times the rooms. Rooms that are not active count only if they were booked.

**What was sold.** The time of Confirmed, Completed and NoShow reservations within those hours,
whatever part of it lies in the period. Time outside of them (after-hours support, an override by a
manager) is told beside it, so that no figure exceeds what there is.

Hours are the local clock's: on the day on which an hour comes twice, it counts twice on both sides;
one that is skipped counts on neither.
"""

import datetime as dt
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q

from centers.hours import get_open_spans
from centers.models import Center, Closure, MeetingRoom, OpeningHours
from centers.span import Span
from reservations.admin.reports.periods import ReportPeriod
from reservations.admin.reports.selection import ReportSelection, fetch_at_most
from reservations.booking.span import MAX_SPAN
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES
from roombook import places

# Read at most, so that no report keeps the service busy for longer than a few seconds.
MAX_ROOMS = 5_000
MAX_BOOKINGS = 100_000

HOUR = dt.timedelta(hours=1)
SECOND = dt.timedelta(seconds=1)

# A weekday (0 is Monday) and an hour of the local clock.
WeekdayHour = tuple[int, int]


@dataclass(slots=True)
class UsedTime:
    """Seconds that could be sold, that were, and that were sold outside of the opening hours."""

    opened: int = 0
    sold: int = 0
    outside: int = 0
    bookings: int = 0

    @property
    def share(self) -> float | None:
        """Of the opening hours, 0 to 1; None where there were none."""
        return self.sold / self.opened if self.opened else None

    def add(self, other: "UsedTime") -> None:
        self.opened += other.opened
        self.sold += other.sold
        self.outside += other.outside
        self.bookings += other.bookings


@dataclass(frozen=True, slots=True)
class RoomUtilization:
    room: int
    name: str
    center: int
    use: UsedTime


@dataclass(frozen=True, slots=True)
class UtilizationData:
    """A report; centers and rooms both add up to the total, and so do the cells."""

    total: UsedTime
    centers: dict[int, UsedTime]
    rooms: list[RoomUtilization]
    cells: dict[WeekdayHour, UsedTime]
    names: dict[int, str]

    def by_weekday(self) -> dict[int, UsedTime]:
        return self._folded(0)

    def by_hour(self) -> dict[int, UsedTime]:
        return self._folded(1)

    def _folded(self, part: int) -> dict[int, UsedTime]:
        sums: dict[int, UsedTime] = defaultdict(UsedTime)
        for cell, use in self.cells.items():
            sums[cell[part]].add(use)
        return dict(sorted(sums.items()))


@dataclass(frozen=True, slots=True)
class WeeklyHours:
    """Opening hours on the clock of a place: many centers share one."""

    time_zone_id: str
    hours: frozenset[tuple[int, dt.time, dt.time]]


@dataclass(slots=True)
class OpenTime:
    """When rooms of one week, and with the same closures, could be sold."""

    zone: ZoneInfo
    spans: list[Span]
    cells: Counter[WeekdayHour] = field(default_factory=Counter)
    seconds: int = 0

    def __post_init__(self) -> None:
        for span in self.spans:
            self.cells.update(split_by_weekday_hour(span, self.zone))
        self.seconds = self.cells.total()

    def within(self, span: Span) -> Iterator[Span]:
        """The parts of a span in which it is open."""
        # The last that opens no later, and those after it.
        number = max(bisect_right(self.spans, span.start, key=lambda each: each.start) - 1, 0)
        while number < len(self.spans) and self.spans[number].start < span.end:
            start = max(self.spans[number].start, span.start)
            end = min(self.spans[number].end, span.end)
            if start < end:
                yield Span(start, end)
            number += 1


# --- Pure ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OpeningHours:
    weekday: int
    opens: dt.time
    closes: dt.time


def get_open_spans_in(period: ReportPeriod, week: WeeklyHours) -> list[Span]:
    """When a place is open in the period, in order; stretches that meet at midnight stay two."""
    zone = places.get_time_zone(week.time_zone_id)
    stretches = [_OpeningHours(*each) for each in week.hours]
    return [span for day in period.days() for span in get_open_spans(day, stretches, zone)]


def subtract_spans(spans: Sequence[Span], closed: Iterable[Span]) -> list[Span]:
    """The spans less all that is closed."""
    left = list(spans)
    for closure in closed:
        parts = []
        for span in left:
            if not span.overlaps(closure):
                parts.append(span)
                continue
            if span.start < closure.start:
                parts.append(Span(span.start, closure.start))
            if closure.end < span.end:
                parts.append(Span(closure.end, span.end))
        left = parts
    return left


def split_by_weekday_hour(span: Span, zone: ZoneInfo) -> Counter[WeekdayHour]:
    """The seconds of a span by the weekday and the hour that the clock of the place shows."""
    cells: Counter[WeekdayHour] = Counter()
    at = span.start
    while at < span.end:
        local = at.astimezone(zone)
        # Clocks change at a full hour or at half of one: never between this and the next turn.
        into = dt.timedelta(minutes=local.minute, seconds=local.second)
        turn = min(at + HOUR - into, span.end)
        cells[local.weekday(), local.hour] += (turn - at) // SECOND
        at = turn
    return cells


# --- Asked ---------------------------------------------------------------------------------------


def measure_utilization(selection: ReportSelection) -> UtilizationData:
    """The utilization of the selection, in five questions. Raises TooMuch."""
    rooms = _rooms(selection)
    centers = _centers(selection)
    weeks = _weeks(centers)
    closures = _closures(selection.period, centers)
    bookings = _bookings(selection)
    booked = {room for room, _, _ in bookings}
    calendar = _OpenTimeCache(selection.period, weeks, closures)

    total = UsedTime()
    by_center: dict[int, UsedTime] = {}
    cells: dict[WeekdayHour, UsedTime] = defaultdict(UsedTime)
    uses: dict[int, UsedTime] = {}
    kinds: dict[int, tuple[Any, ...]] = {}
    counted: Counter[tuple[Any, ...]] = Counter()
    for pk, _, center, is_active in rooms:
        if is_active or pk in booked:
            kinds[pk] = kind = calendar.kind(pk, center)
            counted[kind] += 1
            uses[pk] = UsedTime(opened=calendar.opened(kind).seconds)
    for kind, number in counted.items():
        for cell, seconds in calendar.opened(kind).cells.items():
            cells[cell].opened += seconds * number
    alike: Counter[tuple[Any, ...]] = Counter(
        (room, *span, kinds[room]) for room, *span in bookings if room in kinds
    )
    seen: dict[tuple[Any, ...], tuple[Counter[WeekdayHour], int]] = {}
    for (room, start, end, kind), number in alike.items():
        if (kind, start, end) not in seen:
            seen[kind, start, end] = calendar.sold(kind, Span(start, end))
        sold, outside = seen[kind, start, end]
        if not sold and not outside:
            continue
        uses[room].add(UsedTime(0, sold.total() * number, outside * number, number))
        for cell, seconds in sold.items():
            cells[cell].sold += seconds * number
    rows = []
    for pk, name, center, _ in rooms:
        if pk in uses:
            rows.append(RoomUtilization(pk, name, center, uses[pk]))
            by_center.setdefault(center, UsedTime()).add(uses[pk])
            total.add(uses[pk])
    names = {pk: name for pk, (name, _) in centers.items() if pk in by_center}
    return UtilizationData(total, by_center, rows, dict(cells), names)


class _OpenTimeCache:
    """When each room could be sold; worked out once for all rooms alike."""

    def __init__(
        self,
        period: ReportPeriod,
        weeks: dict[int, WeeklyHours],
        closures: dict[tuple[int, int | None], list[Span]],
    ) -> None:
        self.period = period
        self.weeks = weeks
        self.closures = closures
        self._opened: dict[tuple[Any, ...], OpenTime] = {}

    def kind(self, room: int, center: int) -> tuple[Any, ...]:
        """What rooms that can be sold at the very same times have in common."""
        closed = [*self.closures.get((center, None), ()), *self.closures.get((center, room), ())]
        return (self.weeks[center], tuple(sorted(closed)))

    def opened(self, kind: tuple[Any, ...]) -> OpenTime:
        if kind not in self._opened:
            week, closed = kind
            spans = subtract_spans(get_open_spans_in(self.period, week), closed)
            self._opened[kind] = OpenTime(places.get_time_zone(week.time_zone_id), spans)
        return self._opened[kind]

    def sold(self, kind: tuple[Any, ...], span: Span) -> tuple[Counter[WeekdayHour], int]:
        """Of a booking: its seconds within the hours, by cell, and those outside of them."""
        whole = self.period.span(kind[0].time_zone_id)
        if not span.overlaps(whole):
            return Counter(), 0
        inside = Span(max(span.start, whole.start), min(span.end, whole.end))
        opened, sold = self.opened(kind), Counter[WeekdayHour]()
        for part in opened.within(inside):
            sold.update(split_by_weekday_hour(part, opened.zone))
        return sold, inside.duration // SECOND - sold.total()


def _rooms(selection: ReportSelection) -> list[tuple[int, str, int, bool]]:
    rows = MeetingRoom.objects.filter(selection.of_rooms("")).order_by("center__name", "name", "pk")
    columns = ("pk", "name", "center_id", "is_active", "center__is_active")
    advice = f"These are more than {MAX_ROOMS:,} rooms. Choose some centers."
    found = fetch_at_most(MAX_ROOMS, rows.values_list(*columns), advice)
    return [(pk, name, center, room and its) for pk, name, center, room, its in found]


def _centers(selection: ReportSelection) -> dict[int, tuple[str, str]]:
    """Of each center with rooms its name and time zone; as many as there are rooms at most."""
    rows = Center.objects.filter(selection.of_centers("pk"), rooms__isnull=False).distinct()
    return {pk: (name, zone) for pk, name, zone in rows.values_list("pk", "name", "time_zone_id")}


def _weeks(centers: dict[int, tuple[str, str]]) -> dict[int, WeeklyHours]:
    hours: dict[int, set[tuple[int, dt.time, dt.time]]] = defaultdict(set)
    rows = OpeningHours.objects.filter(center__in=centers).order_by()
    columns = ("center_id", "weekday", "opens", "closes")
    for center, weekday, opens, closes in rows.values_list(*columns):
        hours[center].add((weekday, opens, closes))
    return {pk: WeeklyHours(zone, frozenset(hours[pk])) for pk, (_, zone) in centers.items()}


def _closures(
    period: ReportPeriod, centers: dict[int, tuple[str, str]]
) -> dict[tuple[int, int | None], list[Span]]:
    held = period.anywhere()
    rows = Closure.objects.filter(
        center__in=centers, starts_at__lt=held.end, ends_at__gt=held.start
    )
    closures: dict[tuple[int, int | None], list[Span]] = defaultdict(list)
    columns = ("center_id", "room_id", "starts_at", "ends_at")
    for center, room, start, end in rows.values_list(*columns):
        closures[center, room].append(Span(start, end))
    return closures


def _bookings(selection: ReportSelection) -> list[tuple[int, dt.datetime, dt.datetime]]:
    held = selection.period.anywhere()
    rows = Reservation.objects.filter(
        selection.of_rooms("room__"),
        # The index knows when they start only; none is longer.
        Q(start__gte=held.start - MAX_SPAN, start__lt=held.end, end__gt=held.start),
        status__in=sorted(REVENUE_STATUSES),
    )
    return fetch_at_most(
        MAX_BOOKINGS,
        rows.order_by().values_list("room_id", "start", "end"),
        f"These are more than {MAX_BOOKINGS:,} reservations. Choose fewer days, or some centers.",
    )
