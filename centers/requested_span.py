"""Turns two times of a request into a span of time at a center (B5.2, B11.1, B11.5)."""

import datetime as dt

from centers.hours import NonexistentLocalTime, localize
from centers.models import Center
from centers.span import Span, get_local_midnight
from roombook.errors import InvalidRequest

MAX_SPAN = dt.timedelta(days=31)


def resolve_span(center: Center, start: dt.datetime, end: dt.datetime) -> Span:
    """Return the span between two times. Times without an offset are local to the center.

    Raises InvalidRequest, by field, for a local time that the clock skips, an end that is not after
    the start, or more than 31 days. The availability evaluator checks the allowed duration.
    """
    first, last = _localize_fields(center.zone, {"start_date": start, "end_date": end})
    if first >= last:
        raise InvalidRequest({"end_date": "The end must be after the start."})
    if last - first > MAX_SPAN:
        raise InvalidRequest({"end_date": "At most 31 days after the start."})
    return Span(first, last)


def resolve_start(center: Center, start: dt.datetime) -> dt.datetime:
    """Return the start of a booking in UTC, as `resolve_span` does."""
    [first] = _localize_fields(center.zone, {"start_date": start})
    return first


def resolve_period(zone: dt.tzinfo, start: dt.datetime, end: dt.datetime) -> Span:
    """Return the time between From and To in a time zone, as `resolve_span` does for a booking.

    A midnight that the clock skips is the beginning of that day. Where the clock changes, 31 days
    by the calendar are allowed too.
    """
    times = {name: _skip_to_day(at, zone) for name, at in (("from", start), ("to", end))}
    first, last = _localize_fields(zone, times)
    if first >= last:
        raise InvalidRequest({"to": "To must be after From."})
    local_first, local_last = Span(first, last).to_local(zone)
    if min(last - first, local_last - local_first) > MAX_SPAN:
        raise InvalidRequest({"to": "At most 31 days after From."})
    return Span(first, last)


def _skip_to_day(at: dt.datetime, tz: dt.tzinfo) -> dt.datetime:
    is_local_midnight = at.tzinfo is None and at.time() == dt.time()
    return get_local_midnight(at.date(), tz) if is_local_midnight else at


def _localize_fields(tz: dt.tzinfo, fields: dict[str, dt.datetime]) -> list[dt.datetime]:
    """Return the times in UTC, or raise InvalidRequest by field."""
    times, problems = [], {}
    for name, at in fields.items():
        try:
            # Python compares two times in the same time zone by their local times: use UTC.
            times.append(localize(at, tz).astimezone(dt.UTC))
        except NonexistentLocalTime:
            problems[name] = "The clock skips this time at the center."
        except ValueError:
            problems[name] = "This time is out of range."
    if problems:
        raise InvalidRequest(problems)
    return times
