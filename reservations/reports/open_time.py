"""When rooms are open within a period, by weekday and hour of the local clock.

Hours are those of the local clock: on the day on which an hour is repeated, it counts twice; an
hour that is skipped does not count.
"""

import datetime as dt
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

from centers.hours import OpeningHoursRow, get_open_spans
from centers.span import Span, find_gaps
from reservations.reports.periods import ReportPeriod
from roombook import places

HOUR = dt.timedelta(hours=1)
SECOND = dt.timedelta(seconds=1)

# A weekday (0 is Monday) and an hour of the local clock.
WeekdayHour = tuple[int, int]
# The seconds of a booking within opening hours, and outside of them.
SplitBooking = tuple[Counter[WeekdayHour], int]


@dataclass(frozen=True, eq=False)
class Schedule:
    """When a room is open in a period. Rooms that are open at the same times share one."""

    period: ReportPeriod
    time_zone_id: str
    opening_hours: frozenset[OpeningHoursRow]
    closures: tuple[Span, ...]

    @cached_property
    def zone(self) -> ZoneInfo:
        return places.get_time_zone(self.time_zone_id)

    @cached_property
    def spans(self) -> list[Span]:
        """The open spans in order; those that meet at midnight are separate."""
        return [
            gap
            for day in self.period.days()
            for span in get_open_spans(day, self.opening_hours, self.zone)
            for gap in find_gaps(span, self.closures)
        ]

    @cached_property
    def seconds(self) -> Counter[WeekdayHour]:
        """The open seconds by weekday and hour."""
        seconds: Counter[WeekdayHour] = Counter()
        for span in self.spans:
            seconds.update(split_by_weekday_hour(span, self.zone))
        return seconds

    def split_booking(self, booking: Span) -> SplitBooking:
        """The seconds of a booking in the period: within opening hours, and outside of them."""
        period = self.period.span(self.time_zone_id)
        if not booking.overlaps(period):
            return Counter(), 0
        inside = Span(max(booking.start, period.start), min(booking.end, period.end))
        sold: Counter[WeekdayHour] = Counter()
        for span in self.get_open_parts(inside):
            sold.update(split_by_weekday_hour(span, self.zone))
        return sold, inside.duration // SECOND - sold.total()

    def get_open_parts(self, span: Span) -> Iterator[Span]:
        """The open parts of a span."""
        # Start with the last open span that starts no later.
        index = max(bisect_right(self.spans, span.start, key=lambda each: each.start) - 1, 0)
        while index < len(self.spans) and self.spans[index].start < span.end:
            start = max(self.spans[index].start, span.start)
            end = min(self.spans[index].end, span.end)
            if start < end:
                yield Span(start, end)
            index += 1


def split_by_weekday_hour(span: Span, zone: ZoneInfo) -> Counter[WeekdayHour]:
    """The seconds of a span by weekday and hour of the local clock."""
    seconds: Counter[WeekdayHour] = Counter()
    at = span.start
    while at < span.end:
        local = at.astimezone(zone)
        # Clocks change at a full or half hour, so never within the rest of this hour.
        elapsed = dt.timedelta(minutes=local.minute, seconds=local.second)
        next_hour = min(at + HOUR - elapsed, span.end)
        seconds[local.weekday(), local.hour] += (next_hour - at) // SECOND
        at = next_hour
    return seconds
