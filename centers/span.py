"""Half-open time spans: a booking that ends at 10:00 does not overlap one that starts at 10:00."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The time from `start` up to, but not including, `end`. Both are stored in UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("A span needs times with a time zone.")
        # The class is frozen, so its own fields cannot be assigned directly.
        object.__setattr__(self, "start", self.start.astimezone(UTC))
        object.__setattr__(self, "end", self.end.astimezone(UTC))
        if self.start >= self.end:
            raise ValueError("A span starts before it ends.")

    @property
    def duration(self) -> timedelta:
        """The elapsed time, also across a clock change."""
        return self.end - self.start

    def overlaps(self, other: "Span") -> bool:
        """Whether the spans have some time in common. Spans that only touch do not."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: "Span") -> bool:
        """Whether the other span lies within this one. Their ends may be equal."""
        return self.start <= other.start and other.end <= self.end

    def expand(self, margin: timedelta) -> "Span":
        """The span with a margin before and after it."""
        return Span(self.start - margin, self.end + margin)

    def to_local(self, tz: tzinfo) -> tuple[datetime, datetime]:
        """The start and the end as a clock in the time zone shows them, without an offset."""
        start, end = (at.astimezone(tz).replace(tzinfo=None) for at in (self.start, self.end))
        return start, end

    def split_by_local_day(self, tz: tzinfo) -> Iterator[tuple[date, "Span"]]:
        """Each local day that the span overlaps, with its part of the span.

        A local day has 23 or 25 hours when the clock changes.
        """
        day = self.start.astimezone(tz).date()
        start = self.start
        while start < self.end:
            day_after = day + timedelta(days=1)
            end = min(self.end, get_local_midnight(day_after, tz))
            # Skip a day that the time zone does not have (Samoa, 30 December 2011).
            if start < end:
                yield day, Span(start, end)
                start = end
            day = day_after


def get_local_midnight(day: date, tz: tzinfo) -> datetime:
    """The time in UTC at which the local day begins."""
    return datetime.combine(day, time(), tzinfo=tz).astimezone(UTC)


def find_gaps(within: Span, taken: Iterable[Span]) -> list[Span]:
    """The parts of a span that no other span takes, in order."""
    gaps, start = [], within.start
    for span in sorted(taken):
        gap_end = min(span.start, within.end)
        if start < gap_end:
            gaps.append(Span(start, gap_end))
        start = max(start, span.end)
    if start < within.end:
        gaps.append(Span(start, within.end))
    return gaps
