from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centers.span import Span, find_gaps, get_local_midnight

DENVER = ZoneInfo("America/Denver")
ZONES = [
    ZoneInfo(name)
    for name in ("UTC", "America/Denver", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe")
]


def at(hour, day=1, zone=UTC):
    return datetime(2027, 3, day, hour, tzinfo=zone)


def test_span_is_stored_in_utc_and_starts_before_its_end():
    span = Span(at(9, zone=DENVER), at(10, zone=DENVER))
    assert (span.start, span.end, span.start.tzinfo) == (at(16), at(17), UTC)
    naive = datetime(2027, 3, 1, 9)  # noqa: DTZ001 (the mistake itself)
    for start, end in ((at(9), at(9)), (at(9), at(8)), (naive, at(10))):
        with pytest.raises(ValueError):
            Span(start, end)


def test_spans_that_touch_do_not_overlap():
    nine_to_ten, ten_to_eleven, half_past = Span(at(9), at(10)), Span(at(10), at(11)), at(9)
    assert not nine_to_ten.overlaps(ten_to_eleven)
    assert not ten_to_eleven.overlaps(nine_to_ten)
    assert nine_to_ten.overlaps(Span(half_past + timedelta(minutes=59), at(12)))
    assert Span(at(8), at(12)).contains(nine_to_ten)
    assert not nine_to_ten.contains(Span(at(8), at(12)))
    assert nine_to_ten.expand(timedelta(minutes=1)).overlaps(ten_to_eleven)


def test_day_that_a_time_zone_skips_is_left_out():
    apia = ZoneInfo("Pacific/Apia")
    span = Span(datetime(2011, 12, 29, 12, tzinfo=apia), datetime(2011, 12, 31, 12, tzinfo=apia))
    days = [day for day, _ in span.split_by_local_day(apia)]
    assert days == [date(2011, 12, 29), date(2011, 12, 31)]
    assert span.duration == timedelta(hours=24)


times = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=UTC)
)


@given(times, st.timedeltas(timedelta(minutes=1), timedelta(days=31)), st.sampled_from(ZONES))
def test_local_days_partition_the_span(start, length, zone):
    span = Span(start, start + length)
    pieces = list(span.split_by_local_day(zone))
    assert pieces[0][1].start == span.start
    assert pieces[-1][1].end == span.end
    for (_, piece), (_, following) in pairwise(pieces):
        assert piece.end == following.start
    days = [day for day, _ in pieces]
    assert days == sorted(set(days))
    for day, piece in pieces:
        assert piece.start >= get_local_midnight(day, zone)
        assert piece.end <= get_local_midnight(day + timedelta(days=1), zone)
        assert piece.start.astimezone(zone).date() == day


def test_gaps_are_found_before_and_after_spans_that_reach_beyond_the_whole():
    day = Span(at(8), at(18))
    assert find_gaps(day, [Span(at(19), at(20)), Span(at(6), at(9))]) == [Span(at(9), at(18))]
    assert find_gaps(day, [Span(at(17), at(20)), Span(at(8), at(9))]) == [Span(at(9), at(17))]
    assert find_gaps(day, [Span(at(6), at(20))]) == []
