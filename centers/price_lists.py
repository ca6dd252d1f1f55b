"""When special price lists hold (B12.2): their weekdays, times of day and periods of dates.

This module is pure: it works on unsaved rows and on any object with the attributes of a list.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from itertools import chain, combinations, pairwise, takewhile
from typing import Protocol

from centers.hours import MIDNIGHT, WEEKDAYS
from centers.span import Span

DAY = timedelta(days=1)
# The calendar's weekdays repeat after 28 years, or after 40 around a year such as 2100.
CALENDAR_CYCLE = 40 * 366
LEAP_YEAR = date(2028, 1, 1)
HORIZON_DAYS = 53 * 7


class PriceListLike(Protocol):
    """When a list holds, and its tiers. None is a tier that the list does not offer.

    No weekdays mean every day. `ends` at 00:00 is midnight at the end of the day. Of the dates of a
    yearly list, only month and day count, and it may hold over the turn of the year.
    """

    @property
    def name(self) -> str: ...
    @property
    def weekdays(self) -> str: ...
    @property
    def starts(self) -> time: ...
    @property
    def ends(self) -> time: ...
    @property
    def valid_from(self) -> date | None: ...
    @property
    def valid_until(self) -> date | None: ...
    @property
    def is_yearly(self) -> bool: ...
    @property
    def hourly(self) -> Decimal | None: ...
    @property
    def half_day(self) -> Decimal | None: ...
    @property
    def full_day(self) -> Decimal | None: ...


def holds_on(each: PriceListLike, day: date) -> bool:
    """Whether the list holds at some time of a local day."""
    if each.weekdays and WEEKDAYS[day.weekday()] not in each.weekdays:
        return False
    return _is_in_period(each, day)


def _is_in_period(each: PriceListLike, day: date) -> bool:
    first, last = each.valid_from or date.min, each.valid_until or date.max
    if not each.is_yearly:
        return first <= day <= last
    at, since, until = ((each_day.month, each_day.day) for each_day in (day, first, last))
    if since <= until:
        return since <= at <= until
    return at >= since or at <= until


def has_ended(each: PriceListLike, today: date) -> bool:
    """Whether the list never holds again."""
    return not each.is_yearly and each.valid_until is not None and each.valid_until < today


def find_next_day(each: PriceListLike, today: date) -> date | None:
    """The first day, today or later, on which the list holds; None if that is in over a year."""
    return next((day for day in _iterate(today, HORIZON_DAYS) if holds_on(each, day)), None)


def find_at(lists: Iterable[PriceListLike], at: time) -> PriceListLike | None:
    """The list that holds at a time of a day, of those that hold on this day."""
    for each in lists:
        if each.starts <= at and (at < each.ends or each.ends == MIDNIGHT):
            return each
    return None


def split(
    lists: Iterable[PriceListLike], day: date, part: Span, tz: tzinfo
) -> list[tuple[Span, PriceListLike | None]]:
    """Cut a part of a local day where other prices begin; None stands for the standard prices.

    Of an hour that the clock repeats, both have the list of their local time.
    """
    holding = [each for each in lists if holds_on(each, day)]
    if not holding:
        return [(part, None)]
    found: list[tuple[Span, PriceListLike | None]] = []
    for span, offset in _split_at_clock_changes(part, tz):
        times = [(*_get_times(each, day, offset), each) for each in holding]
        edges = {at for start, end, _ in times for at in (start, end) if span.start < at < span.end}
        for start, end in pairwise(sorted({span.start, span.end} | edges)):
            held = next((each for since, until, each in times if since <= start < until), None)
            if found and found[-1][1] is held:
                start = found.pop()[0].start
            found.append((Span(start, end), held))
    return found


def _get_times(each: PriceListLike, day: date, offset: timedelta) -> tuple[datetime, datetime]:
    """From when until when a list holds on a day, in UTC, if the clock has this offset."""
    ends_on = day + DAY if each.ends == MIDNIGHT else day
    return (
        datetime.combine(day, each.starts, UTC) - offset,
        datetime.combine(ends_on, each.ends, UTC) - offset,
    )


def _split_at_clock_changes(span: Span, tz: tzinfo) -> Iterator[tuple[Span, timedelta]]:
    """The parts of a span within which the offset from UTC stays the same, with this offset."""
    start = span.start
    while start < span.end:
        offset, end = start.astimezone(tz).utcoffset(), span.end
        if (end - timedelta(seconds=1)).astimezone(tz).utcoffset() != offset:
            same = start
            while end - same > timedelta(seconds=1):
                middle = (same + (end - same) / 2).replace(microsecond=0)
                if middle.astimezone(tz).utcoffset() == offset:
                    same = middle
                else:
                    end = middle
        assert offset is not None  # Every time zone has one.
        yield Span(start, end), offset
        start = end


def find_overlap(lists: Sequence[PriceListLike], *, today: date) -> str:
    """Name two lists that hold at the same moment, and a moment; empty if there are none.

    Lists that never overlap need no order of precedence. The moment is not in the past if one in
    the future exists.
    """
    for one, other in combinations(lists, 2):
        start = max(one.starts, other.starts)
        if any(each.ends <= start and each.ends != MIDNIGHT for each in (one, other)):
            continue
        weekdays = [set((each.weekdays or ",".join(WEEKDAYS)).split(",")) for each in (one, other)]
        if weekdays[0].isdisjoint(weekdays[1]):
            continue
        if day := _find_common_day(one, other, today=today):
            return (
                f"{one.name} and {other.name} would both hold on {day:%a %Y-%m-%d} {start:%H:%M}."
            )
    return ""


def _find_common_day(one: PriceListLike, other: PriceListLike, *, today: date) -> date | None:
    periods = [each for each in (one, other) if not each.is_yearly]
    if not periods and not any(
        _is_in_period(one, day) and _is_in_period(other, day) for day in _iterate(LEAP_YEAR, 366)
    ):
        # The weekday decides only on which day of which year it is.
        return None
    first = max((each.valid_from for each in periods if each.valid_from), default=date.min)
    last = min((each.valid_until for each in periods if each.valid_until), default=date.max)
    if first > last:
        return None
    future, past = max(first, today), max(first, min(today, last) - CALENDAR_CYCLE * DAY)
    days = (takewhile(last.__ge__, _iterate(at, CALENDAR_CYCLE)) for at in (future, past))
    for day in chain(*days):
        if holds_on(one, day) and holds_on(other, day):
            return day
    return None


def _iterate(day: date, count: int) -> Iterator[date]:
    return (day + number * DAY for number in range(count))
