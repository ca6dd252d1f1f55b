"""Formats dates and times for customers, in the center's time zone and the deployment's locale."""

import datetime as dt

from babel.dates import get_timezone_name
from django.conf import settings

from centers.models import Center
from roombook import dates


def format_time_range(center: Center, start: dt.datetime, end: dt.datetime) -> str:
    """Format a time with its day and time zone; with both zones if the clock changes in between."""
    start, end = start.astimezone(center.zone), end.astimezone(center.zone)
    start_zone, end_zone = _format_zone(start), _format_zone(end)
    first = f"{_format_full_day(start)}, {format_hour(start)}"
    last = format_hour(end)
    if end.date() != start.date():
        last = f"{_format_full_day(end)}, {last}"
    if start_zone == end_zone:
        return f"{first} - {last} ({start_zone})"
    return f"{first} ({start_zone}) - {last} ({end_zone})"


def format_local_time(center: Center, at: dt.datetime) -> str:
    """Format a point in time with its day and time zone."""
    local = at.astimezone(center.zone)
    return f"{_format_full_day(local)}, {format_hour(local)} ({_format_zone(local)})"


def format_short_time(center: Center, at: dt.datetime) -> str:
    """Format a point in time with its day, without the time zone: `Mon, Mar 1, 2027, 9:00 AM`."""
    local = at.astimezone(center.zone)
    return f"{format_short_day(local)}, {format_hour(local)}"


def format_short_day(local: dt.datetime) -> str:
    return dates.format_short_day(local.date(), settings.LOCALE)


def format_hour(local: dt.datetime) -> str:
    return dates.format_time_of_day(local.time(), settings.LOCALE)


def _format_full_day(local: dt.datetime) -> str:
    return dates.format_full_day(local.date(), settings.LOCALE)


def _format_zone(local: dt.datetime) -> str:
    return str(get_timezone_name(local, locale=settings.LOCALE))
