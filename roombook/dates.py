"""Date and time formats of the back office, `Mon 2027-03-15 09:00 MDT`, and those of customers.

`roombook/formats` sets the same formats for Django's own columns and templates. Texts for customers
have the forms of the locale (CLDR). The hours of a meeting are always those of its center, so they
do not name the time zone.
"""

import datetime as dt
import functools
import re

from babel.dates import format_date, format_skeleton, format_time

# Dates closer to the ends of the calendar overflow when a day or an offset is added.
YEARS = range(2000, 2101)
# `9`, `930`, `9:30`, `1pm`, `1:30 p.m.`
TIME_OF_DAY = re.compile(r"(\d{1,2})(?:[:.]?(\d\d))?\s*(?:([ap])\.?m?\.?)?", re.IGNORECASE)


def add_months(day: dt.date, count: int) -> dt.date:
    """The first day of the month that is so many months later (or earlier, if negative)."""
    months = day.year * 12 + day.month - 1 + count
    return dt.date(months // 12, months % 12 + 1, 1)


def format_day(day: dt.date) -> str:
    """A day: `Mon 2027-03-15`."""
    return f"{day:%a %Y-%m-%d}"


def format_month(day: dt.date) -> str:
    """The month of a day: `Mar 2027`."""
    return f"{day:%b %Y}"


def format_datetime(at: dt.datetime, zone: dt.tzinfo) -> str:
    """A time in a time zone, which it names: `Mon 2027-03-15 09:00 MDT`."""
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M %Z}"


def format_exact_datetime(at: dt.datetime, zone: dt.tzinfo) -> str:
    """The same with seconds: `Mon 2027-03-15 09:00:30 MDT`."""
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M:%S %Z}"


def format_hours(start: dt.datetime, end: dt.datetime, zone: dt.tzinfo) -> str:
    """From when to when: `09:00 - 11:00`, with the day of the end if it is another day."""
    first, last = start.astimezone(zone), end.astimezone(zone)
    day = "" if last.date() == first.date() else f"{format_day(last)} "
    return f"{first:%H:%M} - {day}{last:%H:%M}"


def format_span(start: dt.datetime, end: dt.datetime, zone: dt.tzinfo) -> str:
    """The day and the hours: `Mon 2027-03-15 09:00 - 11:00`."""
    return f"{format_day(start.astimezone(zone))} {format_hours(start, end, zone)}"


def read_time_of_day(text: str) -> str:
    """A time as people type it, as `09:30`; "24:00" is midnight at the end of a day.

    Other text is returned as it is, for a form to refuse.
    """
    match = TIME_OF_DAY.fullmatch(text.strip())
    if match is None:
        return text
    hour, minute, half = int(match[1]), match[2] or "00", (match[3] or "").lower()
    if half and hour not in range(1, 13):
        return text
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{minute}"


# --- For customers: cached, because they book few different days and times of day ----------------


@functools.lru_cache(1024)
def format_time_of_day(time: dt.time, locale: str) -> str:
    """A time of day: `9:00 AM`, or `09:00` in locales with 24 hours."""
    return _replace_narrow_spaces(format_time(time, "short", locale=locale))


@functools.lru_cache(1024)
def format_short_day(day: dt.date, locale: str) -> str:
    """A day: `Mon, Mar 15, 2027`, in other locales `Mo., 15. März 2027` or `2027年3月15日(月)`."""
    # Not a pattern, which would have the American order in every locale. The medium form of CLDR
    # has no weekday; this skeleton is the locale's own medium form with one.
    return _replace_narrow_spaces(format_skeleton("yMMMEd", day, locale=locale))


@functools.lru_cache(1024)
def format_full_day(day: dt.date, locale: str) -> str:
    """A day: `Monday, March 15, 2027`, in other locales `Montag, 15. März 2027`."""
    return _replace_narrow_spaces(format_date(day, "full", locale=locale))


def _replace_narrow_spaces(text: str) -> str:
    # CLDR has them before AM, PM and the Russian word for year. The fonts of many phones lack them.
    return text.replace("\u202f", " ")
