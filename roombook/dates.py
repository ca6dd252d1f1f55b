"""Date and time formats of the back office: `Mon 2027-03-15 09:00 MDT`.

`roombook/formats` sets the same formats for Django's own columns and templates. Texts for customers
are formatted elsewhere, by the locale. The hours of a meeting are always those of its center, so
they do not name the time zone.
"""

import datetime as dt

# Dates closer to the ends of the calendar overflow when a day or an offset is added.
YEARS = range(2000, 2101)


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
