"""From what a client calls StartDate and EndDate to a span of time at a center (B5.2, B11.1)."""

import datetime as dt

from centers.hours import NonexistentLocalTime, localize
from centers.models import Center
from centers.span import Span
from roombook.errors import InvalidRequest

MAX_SPAN = dt.timedelta(days=31)


def resolve_span(center: Center, start: dt.datetime, end: dt.datetime) -> Span:
    """The span between two times at the center; without an offset they are its local time.

    Raises InvalidRequest, naming the field: a local time that the clock skips, an end that is not
    after its start, more than 31 days. How long a booking may be is the evaluator's to say.
    """
    moments, problems = [], {}
    for name, moment in (("start_date", start), ("end_date", end)):
        try:
            moments.append(localize(moment, center.zone))
        except NonexistentLocalTime:
            problems[name] = "The clock skips this time at the center."
        except ValueError:
            problems[name] = "This time is out of range."
    if problems:
        raise InvalidRequest(problems)
    # In UTC: two times on one clock would be compared by what the clock shows.
    first, last = (moment.astimezone(dt.UTC) for moment in moments)
    if first >= last:
        raise InvalidRequest({"end_date": "The end must be after the start."})
    if last - first > MAX_SPAN:
        raise InvalidRequest({"end_date": "At most 31 days after the start."})
    return Span(first, last)
