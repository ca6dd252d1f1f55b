"""Opening hours and the clock of a place: wall-clock times, whatever the clock does to them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import groupby
from typing import Protocol

from babel.dates import format_time, get_day_names
from django.conf import settings

from centers.span import Span

MIDNIGHT = time()
SCHEMA_ORG_DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")


class NonexistentLocalTime(ValueError):
    """A local time that never comes: the clock goes forward over it."""


class OpeningInterval(Protocol):
    """One stretch of opening on a weekday; closing at 00:00 is midnight at the day's end."""

    @property
    def weekday(self) -> int: ...
    @property
    def opens(self) -> time: ...
    @property
    def closes(self) -> time: ...


def localize(moment: datetime, tz: tzinfo) -> datetime:
    """The moment on the clock of the place; a time without an offset is the place's local time.

    A local time that the clock shows twice is the first of the two; one that it skips raises
    SkippedLocalTime. Both ends of the calendar raise ValueError.
    """
    try:
        if moment.tzinfo is not None:
            return moment.astimezone(tz)
        local = moment.replace(tzinfo=tz, fold=0)
        if local.astimezone(UTC).astimezone(tz).replace(tzinfo=None) != moment.replace(fold=0):
            raise NonexistentLocalTime(f"The clock skips {moment:%Y-%m-%d %H:%M} at this place.")
    except OverflowError as error:
        raise ValueError("This time is out of range.") from error
    return local


def is_open(span: Span, opening_hours: Iterable[OpeningInterval], tz: tzinfo) -> bool:
    """Whether the whole span lies within the opening hours of one local day."""
    day = span.start.astimezone(tz).date()
    return any(opened.contains(span) for opened in get_open_spans(day, opening_hours, tz))


def get_open_spans(
    day: date, opening_hours: Iterable[OpeningInterval], tz: tzinfo
) -> Iterator[Span]:
    """When the place is open on a day; stretches that touch are one."""
    stretches = sorted(
        (_to_utc(day, hours.opens, tz), _closing_to_utc(day, hours.closes, tz))
        for hours in opening_hours
        if hours.weekday == day.weekday()
    )
    joined: list[tuple[datetime, datetime]] = []
    for opens, closes in stretches:
        if joined and opens <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], closes))
        else:
            joined.append((opens, closes))
    # A stretch that the clock skips over whole is no time at all.
    return (Span(opens, closes) for opens, closes in joined if opens < closes)


def _to_utc(day: date, at: time, tz: tzinfo, fold: int = 0) -> datetime:
    return datetime.combine(day, at, tzinfo=tz).replace(fold=fold).astimezone(UTC)


def _closing_to_utc(day: date, closes: time, tz: tzinfo) -> datetime:
    if closes == MIDNIGHT:
        return _to_utc(day + timedelta(days=1), MIDNIGHT, tz)
    # A closing time that the clock shows twice is the second: the place keeps its last hour.
    return _to_utc(day, closes, tz, fold=1)


def summarize_week(opening_hours: Iterable[OpeningInterval]) -> list[tuple[str, str]]:
    """The week in few words: one (value, display value) a run of days with equal hours.

    The value is schema.org's openingHours (`Mo-Fr 08:30-17:00`, midnight as 24:00), the display
    value is for people (`Mon-Fri 8:30 AM - 5:00 PM`). Closed days are left out.
    """
    return list(
        summarize_intervals((hours.weekday, hours.opens, hours.closes) for hours in opening_hours)
    )


def summarize_intervals(stretches: Iterable[tuple[int, time, time]]) -> tuple[tuple[str, str], ...]:
    """`runs`, of stretches told as weekday, opening and closing."""
    return _summarize_cached(frozenset(stretches), settings.LOCALE)


# Few weeks are told over and over.
@lru_cache(maxsize=1024)
def _summarize_cached(
    week: frozenset[tuple[int, time, time]], locale: str
) -> tuple[tuple[str, str], ...]:
    by_day: dict[int, list[tuple[time, time]]] = {}
    for weekday, opens, closes in week:
        by_day.setdefault(weekday, []).append((opens, closes))
    days = [(day, tuple(sorted(by_day.get(day, ())))) for day in range(7)]
    result = []
    for stretches, run in groupby(days, key=lambda item: item[1]):
        if stretches:
            numbers = [day for day, _ in run]
            result.append(_describe_days(numbers[0], numbers[-1], stretches, locale))
    return tuple(result)


def format_week(opening_hours: Iterable[OpeningInterval]) -> str:
    """The week for people on one line: `Mon-Fri 8:30 AM - 5:00 PM; Sat 9:00 AM - 1:00 PM`."""
    return "; ".join(display for _, display in summarize_week(opening_hours))


def _describe_days(
    first: int, last: int, stretches: tuple[tuple[time, time], ...], locale: str
) -> tuple[str, str]:
    names = get_day_names("abbreviated", locale=locale)
    value_days, display_days = SCHEMA_ORG_DAYS[first], names[first]
    if last > first:
        value_days += f"-{SCHEMA_ORG_DAYS[last]}"
        display_days += f"-{names[last]}"
    values = ",".join(
        f"{opens:%H:%M}-{'24:00' if closes == MIDNIGHT else f'{closes:%H:%M}'}"
        for opens, closes in stretches
    )
    displays = ", ".join(_format_interval(opens, closes, locale) for opens, closes in stretches)
    return f"{value_days} {values}", f"{display_days} {displays}"


def _format_interval(opens: time, closes: time, locale: str) -> str:
    if opens == closes == MIDNIGHT:
        return "open 24 hours"
    end = "midnight" if closes == MIDNIGHT else _format_time(closes, locale)
    return f"{_format_time(opens, locale)} - {end}"


def _format_time(at: time, locale: str) -> str:
    # CLDR parts hour and AM/PM by a narrow no-break space, which few phones' fonts have.
    return str(format_time(at, "short", locale=locale)).replace("\u202f", " ")
