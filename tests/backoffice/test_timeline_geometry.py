"""The geometry of timelines, also when clocks change."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centers.rooms import BookingRules
from centers.span import Span, find_gaps
from reservations.desk.timeline import geometry
from reservations.desk.timeline.geometry import build_axis

DENVER = ZoneInfo("America/Denver")
SPRING, AUTUMN, PLAIN = date(2027, 3, 14), date(2027, 11, 7), date(2027, 3, 3)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def build_rules(slot_minutes, minimum_minutes):
    return BookingRules(slot_minutes, minimum_minutes, maximum_minutes=1440, window_days=30)


# Known for changes of half an hour, at midnight, of whole days, twice a year, or none at all.
ODD = [
    *("America/Denver", "Australia/Lord_Howe", "America/Havana", "America/Sao_Paulo"),
    *("Africa/Casablanca", "Asia/Kathmandu", "Pacific/Chatham", "Pacific/Apia", "Asia/Tehran"),
    *("Europe/Dublin", "Antarctica/Troll", "America/St_Johns", "UTC", "America/Asuncion"),
]
zones = st.sampled_from(ODD) | st.sampled_from(sorted(available_timezones() - {"localtime"}))
days = st.dates(date(2000, 1, 1), date(2037, 12, 31)) | st.sampled_from([SPRING, AUTUMN])


@st.composite
def axes(draw):
    zone, day = ZoneInfo(draw(zones)), draw(days)
    first = draw(st.integers(0, 23))
    axis = build_axis(day, zone, (first, draw(st.integers(first + 1, 24))))
    return axis or build_axis(date(2020, 1, 1), zone)


@st.composite
def spans_near(draw, axis):
    start = axis.span.start + draw(st.integers(-3000, 3000)) * MINUTE
    return Span(start, start + draw(st.integers(1, 4000)) * MINUTE)


@st.composite
def axis_and_spans(draw):
    axis = draw(axes())
    return axis, draw(st.lists(spans_near(axis), max_size=8))


def test_repeated_hour_is_not_offered():
    axis = build_axis(AUTUMN, DENVER, (0, 4))
    offered = [
        geometry.format_clock_time(booking.start, DENVER)
        for _, booking, _ in geometry.find_slots(axis, [axis.span], build_rules(15, 30))
    ]
    assert offered == ["00:00", "02:00", "03:00"]


@given(axis_and_spans())
def test_positions_are_on_axis_and_proportional(given_):
    axis, spans = given_
    for span in spans:
        left, right = axis.get_left(span.start), axis.get_left(span.end)
        assert 0 <= left <= right <= 100
        if axis.span.overlaps(span):
            seen = min(span.end, axis.span.end) - max(span.start, axis.span.start)
            assert right - left == pytest.approx(100 * (seen / axis.span.duration))


@given(axis_and_spans())
def test_lanes_do_not_overlap(given_):
    _, spans = given_
    lanes = geometry.assign_lanes(spans)
    for one, (span, lane) in enumerate(zip(spans, lanes, strict=True)):
        for other in range(one):
            assert lanes[other] != lane or not span.overlaps(spans[other])
    most = max((sum(s.start <= each.start < s.end for s in spans) for each in spans), default=0)
    assert len(set(lanes)) == most


@given(axis_and_spans())
def test_visible_hours_contain_all_spans(given_):
    axis, spans = given_
    day = build_axis(axis.day, axis.zone)
    shown = build_axis(axis.day, axis.zone, geometry.get_visible_hours(day.span, axis.zone, spans))
    for span in spans:
        if span.overlaps(day.span):
            seen = Span(max(span.start, day.span.start), min(span.end, day.span.end))
            assert shown.span.contains(seen)


@given(axis_and_spans(), st.sampled_from([5, 15, 30, 60]), st.sampled_from([0, 30, 90]))
def test_slots_are_free_long_enough_and_on_grid(given_, grid, shortest):
    axis, spans = given_
    free = find_gaps(axis.span, spans)
    for piece, booking, _ in geometry.find_slots(axis, free, build_rules(grid, shortest)):
        assert any(gap.contains(booking) and gap.contains(piece) for gap in free)
        assert piece.start <= booking.start < piece.end
        assert booking.duration >= shortest * MINUTE
        for at in (booking.start, booking.end):
            local = at.astimezone(axis.zone)
            assert (local.hour * 60 + local.minute) % grid == 0
            # What the draft page makes of the time without its offset is this very time.
            assert (
                local.replace(tzinfo=None, fold=0).replace(tzinfo=axis.zone).astimezone(UTC) == at
            )


@given(axes())
def test_clock_gives_the_local_time_of_every_quarter(axis):
    clock = axis.clock
    assert clock[0][0] == 0
    at = axis.span.start
    while at < axis.span.end:
        minutes = (at - axis.span.start) // MINUTE
        since, text = next(pair for pair in reversed(clock) if pair[0] <= minutes)
        local = at.astimezone(axis.zone)
        if text:
            elapsed = timedelta(minutes=minutes - since)
            assert datetime.fromisoformat(text) + elapsed == local.replace(tzinfo=None)
        # Nothing else tells which of two equal times is meant.
        assert bool(local.fold) is not bool(text)
        at += 15 * MINUTE
