"""The geometry of a timeline: where things lie on a stretch of a center's clock. Pure.

A day is as long as the clock makes it. Lengths are elapsed time: an hour is as wide as any other on
the 23 or 25 hours of a day on which the clock changes, and an hour that comes twice is there twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise

from centers.span import Span, get_local_midnight
from roombook import dates

HOURS_PER_DAY = 24
# No clock is off by anything finer since 1972.
QUARTER = timedelta(minutes=15)
HOUR = timedelta(hours=1)
# Shown of a day on which nothing says which hours matter.
DEFAULT_HOURS = (8, 18)


@dataclass(frozen=True, slots=True)
class TimelineBox:
    """Where a span lies, in percent of the axis; whether it begins before it or goes on after."""

    left: float
    width: float
    begins_before: bool
    goes_on: bool


@dataclass(frozen=True, slots=True)
class TimelineTick:
    """An hour of the clock. `which` tells two of the same name apart, and is empty elsewhere."""

    at: datetime
    left: float
    label: str
    which: str


@dataclass(frozen=True, slots=True)
class TimelineAxis:
    """Some hours of one day at a place."""

    day: date
    zone: tzinfo
    span: Span

    def box(self, span: Span) -> TimelineBox | None:
        """The part of a span that lies on the axis, None where no part of it does."""
        if not self.span.overlaps(span):
            return None
        left, right = self.left_of(span.start), self.left_of(span.end)
        return TimelineBox(
            left, right - left, span.start < self.span.start, span.end > self.span.end
        )

    def left_of(self, moment: datetime) -> float:
        """Percent of the axis that a moment lies from its left end, or the end that it is past."""
        passed = (moment - self.span.start) / self.span.duration
        return 100 * min(max(passed, 0.0), 1.0)

    def ticks(self) -> list[TimelineTick]:
        """The full hours of the clock, in the order in which they come."""
        return [
            TimelineTick(
                at,
                self.left_of(at),
                f"{at.astimezone(self.zone):%H:%M}",
                get_ambiguous_zone_name(at, self.zone),
            )
            for at in _full_hours(self.span, self.zone)
        ]

    def cut(self, spans: Iterable[Span]) -> Iterator[Span]:
        """The spans, cut wherever an hour begins."""
        hours = _full_hours(self.span, self.zone)
        for span in spans:
            cuts = [span.start, *(at for at in hours if span.start < at < span.end), span.end]
            yield from (Span(*pair) for pair in pairwise(cuts))


# Asked for every row of a board.
@lru_cache(maxsize=64)
def _full_hours(span: Span, zone: tzinfo) -> tuple[datetime, ...]:
    quarters = range(span.duration // QUARTER + 1)
    moments = (span.start + number * QUARTER for number in quarters)
    return tuple(at for at in moments if at < span.end and not at.astimezone(zone).minute)


def build_axis(
    day: date, zone: tzinfo, hours: tuple[int, int] = (0, HOURS_PER_DAY)
) -> TimelineAxis | None:
    """From one hour of a day's clock to another; None for a day that the place leaves out."""
    first, last = hours
    start, end = _hour_at(day, first, zone), _hour_at(day, last, zone)
    return TimelineAxis(day, zone, Span(start, end)) if start < end else None


def _hour_at(day: date, hour: int, zone: tzinfo) -> datetime:
    if hour == HOURS_PER_DAY:
        return get_local_midnight(day + timedelta(days=1), zone)
    return datetime.combine(day, time(hour), tzinfo=zone).astimezone(UTC)


def get_visible_hours(day: Span, zone: tzinfo, spans: Iterable[Span]) -> tuple[int, int]:
    """The fewest hours of a day's clock that show all of the spans' parts of it.

    One more on either side, so that it is seen how they begin and end.
    """
    first, last = HOURS_PER_DAY, 0
    for span in spans:
        if not span.overlaps(day):
            continue
        start, end = max(span.start, day.start), min(span.end, day.end)
        # Where the clock goes back within the span, its end may show less than its start.
        moments = [start, *_each_quarter(start, end)]
        for moment in moments:
            hour = moment.astimezone(zone).hour
            first, last = min(first, hour), max(last, hour + 1)
    if first >= last:
        return DEFAULT_HOURS
    return max(0, first - 1), min(HOURS_PER_DAY, last + 1)


def _each_quarter(start: datetime, end: datetime) -> Iterator[datetime]:
    """Moments of a span, its last included, so near that no hour is left out."""
    while start < end:
        yield start
        start += QUARTER
    yield end - timedelta.resolution


def find_gaps(within: Span, taken: Iterable[Span]) -> list[Span]:
    """What is left of a span, in order."""
    left, start = [], within.start
    for span in sorted(taken):
        if start < span.start < within.end:
            left.append(Span(start, span.start))
        start = max(start, min(span.end, within.end))
    if start < within.end:
        left.append(Span(start, within.end))
    return left


def assign_lanes(spans: Sequence[Span]) -> list[int]:
    """The lane of each span, as few as there can be, so that none lies upon another."""
    order = sorted(range(len(spans)), key=lambda index: spans[index])
    ends: list[datetime] = []
    lane_of = [0] * len(spans)
    for index in order:
        span = spans[index]
        free = next((lane for lane, end in enumerate(ends) if end <= span.start), len(ends))
        if free == len(ends):
            ends.append(span.end)
        ends[free] = span.end
        lane_of[index] = free
    return lane_of


@dataclass(frozen=True, slots=True)
class TimelineSlot:
    """A piece of free time to click on, and the booking that it proposes."""

    piece: Span
    proposed: Span


@dataclass(frozen=True, slots=True)
class SlotRules:
    """How a room's bookings may lie: the grid, the shortest and the usual, in minutes."""

    grid: int
    shortest: int
    usual: int = 60


def find_slots(
    axis: TimelineAxis, free: Iterable[Span], steps: SlotRules
) -> Iterator[TimelineSlot]:
    """Each hour of the free time in which a booking can begin.

    None begins or ends in the second showing of an hour that comes twice: a time without an offset
    means the first.
    """
    for whole in free:
        for piece in axis.cut([whole]):
            start = round_up_to_grid(piece.start, axis.zone, steps.grid)
            minutes = max(steps.usual, steps.shortest)
            end = min(start + timedelta(minutes=minutes), whole.end)
            end -= (end - start) % timedelta(minutes=steps.grid)
            if start >= piece.end or end - start < timedelta(minutes=max(steps.shortest, 1)):
                continue
            if any(each.astimezone(axis.zone).fold for each in (start, end)):
                continue
            yield TimelineSlot(piece, Span(start, end))


def round_up_to_grid(moment: datetime, zone: tzinfo, grid_minutes: int) -> datetime:
    """The first moment, this one or later, at which the grid of the day's clock has a step."""
    local = moment.astimezone(zone)
    since_midnight = timedelta(
        hours=local.hour,
        minutes=local.minute,
        seconds=local.second,
        microseconds=local.microsecond,
    )
    return moment + (-since_midnight) % timedelta(minutes=grid_minutes)


# Words


def get_ambiguous_zone_name(moment: datetime, zone: tzinfo) -> str:
    """The name of the clock (MDT, MST) at a time that it shows twice; empty at any other."""
    local = moment.astimezone(zone)
    other = local.replace(fold=1 - local.fold)
    return (local.tzname() or "") if other.utcoffset() != local.utcoffset() else ""


def format_clock_time(moment: datetime, zone: tzinfo) -> str:
    """The time of day, told apart where it comes twice: `09:30`, `01:30 MST`."""
    return f"{moment.astimezone(zone):%H:%M} {get_ambiguous_zone_name(moment, zone)}".rstrip()


def format_span(span: Span, axis: TimelineAxis) -> str:
    """From when to when, with the day where it is another: `22:00 - Thu 2027-03-04 02:00`."""
    start, end = (_format_time(moment, axis) for moment in (span.start, span.end))
    if span.end == get_local_midnight(axis.day + timedelta(days=1), axis.zone):
        end = "24:00"
    return f"{start} - {end}"


def _format_time(moment: datetime, axis: TimelineAxis) -> str:
    local = moment.astimezone(axis.zone)
    day = "" if local.date() == axis.day else f"{dates.format_day(local)} "
    return f"{day}{format_clock_time(moment, axis.zone)}"
