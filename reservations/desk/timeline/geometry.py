"""The geometry of a timeline: where things are on an axis of local time. Pure functions.

Lengths are elapsed time. So on a day of 23 or 25 hours every hour is equally wide, and an hour that
the clock repeats is there twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from centers.hours import round_down_to_slot, round_up_to_slot
from centers.rooms import BookingRules
from centers.span import Span, get_local_midnight
from roombook import dates

HOURS_PER_DAY = 24
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
# No offset has had a finer resolution since 1972.
QUARTER = timedelta(minutes=15)
# The hours that are shown on a day without opening hours and bookings.
DEFAULT_HOURS = (8, 18)


@dataclass(frozen=True, slots=True)
class TimelineTick:
    """A full hour. ``zone_name`` distinguishes the two occurrences of a repeated hour."""

    at: datetime
    left: float
    label: str
    zone_name: str


@dataclass(frozen=True)
class TimelineAxis:
    """Some hours of a local day."""

    day: date
    zone: tzinfo
    span: Span

    def format_style(self, span: Span) -> str:
        """The CSS that places the part of a span that is on the axis."""
        left, right = self.get_left(span.start), self.get_left(span.end)
        return f"left:{left:.4f}%;width:{right - left:.4f}%"

    def get_left(self, at: datetime) -> float:
        """The position of a time in percent, limited to the axis."""
        elapsed = (at - self.span.start) / self.span.duration
        return 100 * min(max(elapsed, 0.0), 1.0)

    @cached_property
    def ticks(self) -> list[TimelineTick]:
        """The full hours in chronological order."""
        return [
            TimelineTick(
                at,
                self.get_left(at),
                f"{at.astimezone(self.zone):%H:%M}",
                get_ambiguous_zone_name(at, self.zone),
            )
            for at in _get_quarters(self.span.start, self.span.end)
            if not at.astimezone(self.zone).minute
        ]

    @cached_property
    def clock(self) -> list[tuple[int, str]]:
        """The local time at the start of the axis, and each time that the clock changes.

        As pairs of minutes since the start of the axis and the local time at that point. It is ""
        during the second occurrence of a repeated hour: a local time without an offset means the
        first one.
        """
        clock, former = [], None
        for at in _get_quarters(self.span.start, self.span.end):
            local = at.astimezone(self.zone)
            state = (local.utcoffset(), local.fold)
            if state != former:
                text = "" if local.fold else f"{local:%Y-%m-%dT%H:%M}"
                clock.append(((at - self.span.start) // MINUTE, text))
            former = state
        return clock

    def split_at_hours(self, span: Span) -> Iterator[Span]:
        """The parts of a span between full hours."""
        hours = (tick.at for tick in self.ticks if span.start < tick.at < span.end)
        return (Span(start, end) for start, end in pairwise([span.start, *hours, span.end]))


def build_axis(
    day: date, zone: tzinfo, hours: tuple[int, int] = (0, HOURS_PER_DAY)
) -> TimelineAxis | None:
    """The axis of a day between two hours; None for a day that the time zone skipped."""
    start, end = (_get_time(day, hour, zone) for hour in hours)
    return TimelineAxis(day, zone, Span(start, end)) if start < end else None


def _get_time(day: date, hour: int, zone: tzinfo) -> datetime:
    if hour == HOURS_PER_DAY:
        return get_local_midnight(day + timedelta(days=1), zone)
    return datetime.combine(day, time(hour), tzinfo=zone).astimezone(UTC)


def get_visible_hours(day: Span, zone: tzinfo, spans: Iterable[Span]) -> tuple[int, int]:
    """The range of local hours that shows the parts of the spans on a day.

    With one more hour on either side, so that one sees where they start and end.
    """
    first, last = HOURS_PER_DAY, 0
    for span in spans:
        if not span.overlaps(day):
            continue
        start, end = max(span.start, day.start), min(span.end, day.end)
        # If the clock goes back within the span, the hour of its end may be before its start.
        for at in (*_get_quarters(start, end), end - timedelta.resolution):
            hour = at.astimezone(zone).hour
            first, last = min(first, hour), max(last, hour + 1)
    if first >= last:
        return DEFAULT_HOURS
    return max(0, first - 1), min(HOURS_PER_DAY, last + 1)


def _get_quarters(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += QUARTER


def assign_lanes(spans: Sequence[Span]) -> list[int]:
    """The lane of each span, so that no spans overlap in a lane, with as few lanes as possible."""
    ends: list[datetime] = []
    lane_by_index = [0] * len(spans)
    for index in sorted(range(len(spans)), key=lambda index: spans[index]):
        span = spans[index]
        lane = next((lane for lane, end in enumerate(ends) if end <= span.start), len(ends))
        ends[lane : lane + 1] = [span.end]
        lane_by_index[index] = lane
    return lane_by_index


class TimelineSlot(NamedTuple):
    """A piece of free time to click on, an hour at most, and the booking that it proposes."""

    piece: Span
    proposed: Span
    is_closed: bool


def find_slots(
    axis: TimelineAxis, free: Iterable[Span], rules: BookingRules, *, is_closed: bool = False
) -> Iterator[TimelineSlot]:
    """Each hour of the free time in which a booking can start.

    No proposed time is in the second occurrence of a repeated hour: a local time without an offset
    means the first one.
    """
    minimum = timedelta(minutes=max(rules.minimum_minutes, 1))
    for span in free:
        for piece in axis.split_at_hours(span):
            start = round_up_to_slot(piece.start, axis.zone, rules.slot_minutes)
            end = min(start + rules.usual_duration, span.end)
            end = round_down_to_slot(end, axis.zone, rules.slot_minutes)
            is_repeated = any(at.astimezone(axis.zone).fold for at in (start, end))
            if start < piece.end and end - start >= minimum and not is_repeated:
                yield TimelineSlot(piece, Span(start, end), is_closed)


# --- Formatting ----------------------------------------------------------------------------------


def get_ambiguous_zone_name(at: datetime, zone: tzinfo) -> str:
    """The abbreviation (MDT, MST) of a local time that the clock shows twice, else ""."""
    local = at.astimezone(zone)
    other = local.replace(fold=1 - local.fold)
    return (local.tzname() or "") if other.utcoffset() != local.utcoffset() else ""


def format_clock_time(at: datetime, zone: tzinfo) -> str:
    """``09:30``, or ``01:30 MST`` if the clock shows this time twice."""
    return f"{at.astimezone(zone):%H:%M} {get_ambiguous_zone_name(at, zone)}".rstrip()


def format_span(span: Span, axis: TimelineAxis) -> str:
    """``09:00 - 10:00``, with the date of times on other days."""
    start, end = _format_time(span.start, axis), _format_time(span.end, axis)
    if span.end == get_local_midnight(axis.day + timedelta(days=1), axis.zone):
        end = "24:00"
    return f"{start} - {end}"


def _format_time(at: datetime, axis: TimelineAxis) -> str:
    local = at.astimezone(axis.zone)
    day = "" if local.date() == axis.day else f"{dates.format_day(local)} "
    return f"{day}{format_clock_time(at, axis.zone)}"
