"""A span of time: half-open, so that a booking that ends at 10:00 does not touch the next one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """From start up to, and without, end; both are kept in UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("A span needs times with a time zone.")
        # Frozen: the one place that sets its own fields.
        object.__setattr__(self, "start", self.start.astimezone(UTC))
        object.__setattr__(self, "end", self.end.astimezone(UTC))
        if self.start >= self.end:
            raise ValueError("A span starts before it ends.")

    @property
    def duration(self) -> timedelta:
        """Elapsed time, also across a change of the clock."""
        return self.end - self.start

    def overlaps(self, other: "Span") -> bool:
        """Whether the two share a moment; touching is not overlapping."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: "Span") -> bool:
        """Whether the other lies within this one; the ends may coincide."""
        return self.start <= other.start and other.end <= self.end

    def expand(self, margin: timedelta) -> "Span":
        """The span with a margin before and after it."""
        return Span(self.start - margin, self.end + margin)

    def split_by_local_day(self, tz: tzinfo) -> Iterator[tuple[date, "Span"]]:
        """Each calendar day of the place that the span touches, with its part of the span.

        A day is as long as the place's clock makes it: 23 or 25 hours when the clock changes.
        """
        day = self.start.astimezone(tz).date()
        start = self.start
        while start < self.end:
            day_after = day + timedelta(days=1)
            end = min(self.end, get_local_midnight(day_after, tz))
            # A place may skip a whole day (Samoa, 30 December 2011): nothing lies in it.
            if start < end:
                yield day, Span(start, end)
                start = end
            day = day_after


def get_local_midnight(day: date, tz: tzinfo) -> datetime:
    """The moment at which the day begins at the place, in UTC."""
    return datetime.combine(day, time(), tzinfo=tz).astimezone(UTC)


def find_gaps(within: Span, taken: Iterable[Span]) -> list[Span]:
    """The parts of a span that no other span takes, in order."""
    gaps, start = [], within.start
    for span in sorted(taken):
        if start < span.start < within.end:
            gaps.append(Span(start, span.start))
        start = max(start, min(span.end, within.end))
    if start < within.end:
        gaps.append(Span(start, within.end))
    return gaps
