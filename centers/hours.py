"""Opening hours and local times. Opening hours are wall-clock times, whatever the clock changes."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, Protocol

from babel.dates import get_day_names
from django.conf import settings

from centers.span import Span, get_local_midnight
from roombook import dates

MIDNIGHT = time()
MINUTE, WEEK = timedelta(minutes=1), timedelta(weeks=1)
SCHEMA_ORG_DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
STAFF_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# How files and the database write them.
WEEKDAYS = tuple(day.lower() for day in STAFF_DAYS)


class NonexistentLocalTime(ValueError):
    """The clock skips this local time when it goes forward."""


class OpeningInterval(Protocol):
    """One interval of opening hours, which begins on a weekday.

    It closes on the next day if that is not after its opening: 00:00 is midnight at the day's end.
    """

    @property
    def weekday(self) -> int: ...
    @property
    def opens(self) -> time: ...
    @property
    def closes(self) -> time: ...


class OpeningHoursRow(NamedTuple):
    """An `OpeningInterval` that was read without its model."""

    weekday: int
    opens: time
    closes: time


def localize(at: datetime, tz: tzinfo) -> datetime:
    """The time in the time zone. A time without an offset is a local time.

    A local time that occurs twice is the first of the two.

    Raises:
        NonexistentLocalTime: the clock skips the local time.
        ValueError: the time is out of the calendar's range.
    """
    try:
        if at.tzinfo is not None:
            return at.astimezone(tz)
        local = at.replace(tzinfo=tz, fold=0)
        if local.astimezone(UTC).astimezone(tz).replace(tzinfo=None) != at.replace(fold=0):
            raise NonexistentLocalTime(f"The clock skips {at:%Y-%m-%d %H:%M} at this place.")
    except OverflowError as error:
        raise ValueError("This time is out of range.") from error
    return local


def is_open(span: Span, opening_hours: Iterable[OpeningInterval], tz: tzinfo) -> bool:
    """Whether the whole span lies within the opening hours, which are continuous at midnight."""
    intervals = list(opening_hours)
    day = span.start.astimezone(tz).date()
    if any(opened.contains(span) for opened in get_open_spans(day, intervals, tz)):
        return True
    # Searches ask this of many times, and few of them reach into another day.
    is_of_one_day = span.end.astimezone(tz).date() == day
    return not is_of_one_day and next(get_open_spans_within(span, intervals, tz), None) == span


def get_open_spans(
    day: date, opening_hours: Iterable[OpeningInterval], tz: tzinfo
) -> Iterator[Span]:
    """The times of a local day in which it is open. Intervals that touch are joined."""
    weekday = day.weekday()
    day_before = (weekday - 1) % 7
    intervals = []
    for each in opening_hours:
        if each.weekday not in {weekday, day_before}:
            continue
        is_over_midnight = each.closes <= each.opens
        if each.weekday == weekday:
            day_after = day + timedelta(days=1)
            closes = (
                get_local_midnight(day_after, tz)
                if is_over_midnight
                # Of a closing time that occurs twice, the center stays open for the last hour.
                else _to_utc(day, each.closes, tz, fold=1)
            )
            intervals.append((_to_utc(day, each.opens, tz), closes))
        elif is_over_midnight:
            opens = get_local_midnight(day, tz)
            intervals.append((opens, _to_utc(day, each.closes, tz, fold=1)))
    joined: list[tuple[datetime, datetime]] = []
    for opens, closes in sorted(intervals):
        if joined and opens <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], closes))
        else:
            joined.append((opens, closes))
    # An interval that the clock skips completely is empty, and so is one up to this midnight.
    return (Span(opens, closes) for opens, closes in joined if opens < closes)


def get_open_spans_within(
    within: Span, opening_hours: Iterable[OpeningInterval], tz: tzinfo
) -> Iterator[Span]:
    """The times in which it is open within a span of any days, joined where they touch."""
    intervals, previous = list(opening_hours), None
    for day, part in within.split_by_local_day(tz):
        for opened in get_open_spans(day, intervals, tz):
            if not opened.overlaps(part):
                continue
            span = Span(max(opened.start, part.start), min(opened.end, part.end))
            if previous and previous.end == span.start:
                span = Span(previous.start, span.end)
            elif previous:
                yield previous
            previous = span
    if previous:
        yield previous


def find_overlapping_days(week: Iterable[OpeningInterval]) -> list[int]:
    """The weekdays with intervals that overlap, also over midnight. They may touch."""
    intervals = sorted(map(_get_times_in_week, week))
    # The last one of a week may reach into the next week.
    following = [*intervals[1:], *((at + WEEK, end, day) for at, end, day in intervals[:1])]
    pairs = zip(intervals, following, strict=True)
    return sorted({day for one, next_ in pairs if one[1] > next_[0] for day in (one[2], next_[2])})


def _get_times_in_week(each: OpeningInterval) -> tuple[timedelta, timedelta, int]:
    opens, closes = (
        timedelta(days=each.weekday, hours=at.hour, minutes=at.minute, seconds=at.second)
        for at in (each.opens, each.closes)
    )
    return opens, closes if closes > opens else closes + timedelta(days=1), each.weekday


# Most requests are about the same days of the same few opening hours.
@lru_cache(maxsize=4096)
def _to_utc(day: date, at: time, tz: tzinfo, fold: int = 0) -> datetime:
    """The time in UTC. One that the clock skips is when the clock goes forward.

    One that occurs twice is the first of the two, or with `fold=1` the second.
    """
    local = datetime.combine(day, at, tzinfo=tz)
    utc, other = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    if utc <= other:
        return other if fold else utc
    while other.astimezone(tz).utcoffset() == local.utcoffset():
        other += MINUTE
    return other


# --- The week in words ---------------------------------------------------------------------------


def summarize_week(opening_hours: Iterable[OpeningInterval]) -> list[tuple[str, str]]:
    """The week in short: one (value, display value) for each run of days with equal hours (B11.4).

    The value is schema.org's openingHours (`Mo-Fr 08:30-17:00`, midnight as 24:00); the display
    value is for people (`Mon-Fri 8:30 AM - 5:00 PM`). Closed days are left out.
    """
    return list(
        summarize_intervals((hours.weekday, hours.opens, hours.closes) for hours in opening_hours)
    )


def summarize_intervals(intervals: Iterable[tuple[int, time, time]]) -> tuple[tuple[str, str], ...]:
    """`summarize_week` of tuples (weekday, opening, closing)."""
    return _summarize_cached(frozenset(intervals), settings.LOCALE)


# Many centers have the same week.
@lru_cache(maxsize=1024)
def _summarize_cached(
    week: frozenset[tuple[int, time, time]], locale: str
) -> tuple[tuple[str, str], ...]:
    by_day: dict[int, list[tuple[time, time]]] = {}
    for weekday, opens, closes in week:
        by_day.setdefault(weekday, []).append((opens, closes))
    days = [(day, tuple(sorted(by_day.get(day, ())))) for day in range(7)]
    result = []
    for intervals, run in groupby(days, key=lambda item: item[1]):
        if intervals:
            weekdays = [day for day, _ in run]
            result.append(_describe_days(weekdays[0], weekdays[-1], intervals, locale))
    return tuple(result)


def format_week(opening_hours: Iterable[OpeningInterval]) -> str:
    """The week for staff on one line: `Mon-Fri 08:30 - 17:00; Sat 09:00 - 13:00`."""
    return "; ".join(_format_days(value) for value, _ in summarize_week(opening_hours))


def _format_days(value: str) -> str:
    days, intervals = value.split(" ")
    names = "-".join(STAFF_DAYS[SCHEMA_ORG_DAYS.index(day)] for day in days.split("-"))
    return f"{names} {intervals.replace('-', ' - ').replace(',', ', ')}"


def _describe_days(
    first: int, last: int, intervals: tuple[tuple[time, time], ...], locale: str
) -> tuple[str, str]:
    names = get_day_names("abbreviated", locale=locale)
    value_days, display_days = SCHEMA_ORG_DAYS[first], names[first]
    if last > first:
        value_days += f"-{SCHEMA_ORG_DAYS[last]}"
        display_days += f"-{names[last]}"
    values = ",".join(
        f"{opens:%H:%M}-{'24:00' if closes == MIDNIGHT else f'{closes:%H:%M}'}"
        for opens, closes in intervals
    )
    displays = ", ".join(_format_interval(opens, closes, locale) for opens, closes in intervals)
    return f"{value_days} {values}", f"{display_days} {displays}"


def _format_interval(opens: time, closes: time, locale: str) -> str:
    if opens == closes == MIDNIGHT:
        return "open 24 hours"
    end = "midnight" if closes == MIDNIGHT else dates.format_time_of_day(closes, locale)
    return f"{dates.format_time_of_day(opens, locale)} - {end}"


# --- Time slots ----------------------------------------------------------------------------------


def round_up_to_slot(at: datetime, tz: tzinfo, slot_minutes: int) -> datetime:
    """The first end of a time slot at this time or later, in UTC. Slots count from midnight."""
    at, local = at.astimezone(UTC), at.astimezone(tz)
    up = at + -_get_time_since_midnight(local) % timedelta(minutes=slot_minutes)
    # The last slot of a day may be shorter than the others.
    up = min(up, get_local_midnight(local.date() + timedelta(days=1), tz))
    if up.astimezone(tz).utcoffset() == local.utcoffset():
        return up
    # The clock changes in between, so that other times are on a slot.
    up = at + -_get_time_since_midnight(local) % MINUTE
    while not is_on_slot(up, tz, slot_minutes):
        up += MINUTE
    return up


def round_down_to_slot(at: datetime, tz: tzinfo, slot_minutes: int) -> datetime:
    """The last end of a time slot at this time or earlier, in UTC. Slots count from midnight."""
    at, local = at.astimezone(UTC), at.astimezone(tz)
    down = at - _get_time_since_midnight(local) % timedelta(minutes=slot_minutes)
    if down.astimezone(tz).utcoffset() == local.utcoffset():
        return down
    down = at - _get_time_since_midnight(local) % MINUTE
    while not is_on_slot(down, tz, slot_minutes):
        down -= MINUTE
    return down


def is_on_slot(at: datetime, tz: tzinfo, slot_minutes: int) -> bool:
    return not _get_time_since_midnight(at.astimezone(tz)) % timedelta(minutes=slot_minutes)


def _get_time_since_midnight(local: datetime) -> timedelta:
    """The time since midnight that the clock shows."""
    return timedelta(
        hours=local.hour,
        minutes=local.minute,
        seconds=local.second,
        microseconds=local.microsecond,
    )
