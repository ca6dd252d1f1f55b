"""Resolution of StartDate and EndDate to a span, in many time zones."""

from datetime import datetime, timedelta

import pytest

from centers.models import Center
from centers.requested_span import resolve_span
from roombook.errors import InvalidRequest


def center(zone="America/Denver"):
    return Center(time_zone_id=zone)


def span(start, end, zone="America/Denver"):
    return resolve_span(center(zone), datetime.fromisoformat(start), datetime.fromisoformat(end))


def refused(*args, **kwargs):
    with pytest.raises(InvalidRequest) as error:
        span(*args, **kwargs)
    return error.value.fields


@pytest.mark.parametrize(
    ("zone", "start", "end", "hours"),
    [
        # DST begins: elapsed time is an hour less than local times suggest.
        ("America/Denver", "2027-03-14T01:00", "2027-03-14T04:00", 2),
        ("Australia/Lord_Howe", "2027-10-03T01:00", "2027-10-03T03:00", 1.5),
        # DST ends: elapsed time is an hour more.
        ("America/Denver", "2027-11-07T00:00", "2027-11-07T03:00", 4),
        ("Australia/Lord_Howe", "2027-04-04T01:00", "2027-04-04T03:00", 2.5),
        # No DST.
        ("Asia/Kathmandu", "2027-03-14T01:15", "2027-03-14T04:00", 2.75),
    ],
)
def test_duration_across_dst_change_is_elapsed_time(zone, start, end, hours):
    assert span(start, end, zone).duration == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("zone", "skipped"),
    [
        ("America/Denver", "2027-03-14T02:00"),
        ("America/Denver", "2027-03-14T02:59"),
        ("Australia/Lord_Howe", "2027-10-03T02:15"),
    ],
)
def test_nonexistent_local_time_is_refused_with_its_field(zone, skipped):
    reason = "The clock skips this time at the center."
    assert refused(skipped, "2027-12-01T00:00", zone) == {"start_date": reason}
    assert refused("2027-03-01T00:00", skipped, zone) == {"end_date": reason}
    assert refused(skipped, skipped, zone) == {"start_date": reason, "end_date": reason}


def test_end_is_compared_with_start_in_utc():
    """In the repeated hour at the end of DST, a later time can have an earlier local time."""
    backwards = span("2027-11-07T01:45-06:00", "2027-11-07T01:15-07:00")
    assert backwards.duration == timedelta(minutes=30)


@pytest.mark.parametrize("end", ["2027-03-03T09:00", "2027-03-03T08:59", "2020-01-01T00:00"])
def test_end_before_start_is_refused(end):
    assert refused("2027-03-03T09:00", end) == {"end_date": "The end must be after the start."}


def test_span_longer_than_31_days_is_refused():
    # In UTC, so that the DST change in March has no effect.
    assert span("2027-03-03T09:00Z", "2027-04-03T09:00Z").duration == timedelta(days=31)
    assert refused("2027-03-03T09:00Z", "2027-04-03T09:01Z") == {
        "end_date": "At most 31 days after the start."
    }
