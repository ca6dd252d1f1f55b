"""Turns the StartDate and EndDate of a request into a span of time at a center (B5.2, B11.1)."""

import datetime as dt

from centers.hours import NonexistentLocalTime, localize
from centers.models import Center
from centers.span import Span
from roombook.errors import InvalidRequest

MAX_SPAN = dt.timedelta(days=31)


def resolve_span(center: Center, start: dt.datetime, end: dt.datetime) -> Span:
    """Return the span between two times. Times without an offset are local to the center.

    Raises InvalidRequest, by field, for a local time that the clock skips, an end that is not after
    the start, or more than 31 days. The availability evaluator checks the allowed duration.
    """
    times, problems = [], {}
    for name, at in (("start_date", start), ("end_date", end)):
        try:
            times.append(localize(at, center.zone))
        except NonexistentLocalTime:
            problems[name] = "The clock skips this time at the center."
        except ValueError:
            problems[name] = "This time is out of range."
    if problems:
        raise InvalidRequest(problems)
    # Compare in UTC: Python compares two times in the same time zone by their local times.
    first, last = (at.astimezone(dt.UTC) for at in times)
    if first >= last:
        raise InvalidRequest({"end_date": "The end must be after the start."})
    if last - first > MAX_SPAN:
        raise InvalidRequest({"end_date": "At most 31 days after the start."})
    return Span(first, last)
