"""Where things lie on a timeline, whatever the clock does."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centers.span import Span, find_gaps
from reservations.admin.timeline import geometry
from reservations.admin.timeline.geometry import SlotRules, TimelineAxis, build_axis

DENVER = ZoneInfo("America/Denver")
SPRING, AUTUMN, PLAIN = date(2027, 3, 14), date(2027, 11, 7), date(2027, 3, 3)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)

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


def labels(day, zone=DENVER):
    return [f"{tick.label} {tick.zone_name}".strip() for tick in build_axis(day, zone).get_ticks()]


def at(day, text, zone=DENVER, fold=0):
    moment = datetime.fromisoformat(f"{day}T{text}").replace(tzinfo=zone, fold=fold)
    return moment.astimezone(UTC)


# Examples


def test_a_plain_day_has_24_hours():
    assert labels(PLAIN) == [f"{hour:02}:00" for hour in range(24)]


def test_in_spring_an_hour_is_left_out():
    assert labels(SPRING)[:4] == ["00:00", "01:00", "03:00", "04:00"]
    assert len(labels(SPRING)) == 23


def test_in_autumn_an_hour_comes_twice_and_is_told_apart():
    assert labels(AUTUMN)[:4] == ["00:00", "01:00 MDT", "01:00 MST", "02:00"]
    assert len(labels(AUTUMN)) == 25


def test_half_an_hour_of_change():
    # At 02:00 the clock goes back to 01:30: no full hour comes twice, and one is longer.
    lefts = {
        tick.label: tick.left
        for tick in build_axis(date(2027, 4, 4), ZoneInfo("Australia/Lord_Howe")).get_ticks()
    }
    assert (lefts["02:00"] - lefts["01:00"]) / (lefts["04:00"] - lefts["03:00"]) == pytest.approx(
        1.5
    )


def test_a_day_that_the_place_left_out_has_no_axis():
    assert build_axis(date(2011, 12, 30), ZoneInfo("Pacific/Apia")) is None


def test_a_booking_over_midnight_is_open_at_the_end():
    axis = build_axis(PLAIN, DENVER, (8, 24))
    box = axis.get_box(Span(at(PLAIN, "22:00"), at(PLAIN, "22:00") + 4 * HOUR))
    assert (round(box.left, 3), round(box.width, 3)) == (87.5, 12.5)
    assert (box.starts_before, box.ends_after) == (False, True)


def test_times_are_told_with_their_day_where_it_is_another():
    axis = build_axis(PLAIN, DENVER)
    evening = Span(at(PLAIN, "22:00"), at(PLAIN, "22:00") + 4 * HOUR)
    assert geometry.format_span(evening, axis) == "22:00 - Thu 2027-03-04 02:00"
    until_midnight = Span(at(PLAIN, "22:00"), at(PLAIN, "22:00") + 2 * HOUR)
    assert geometry.format_span(until_midnight, axis) == "22:00 - 24:00"


def test_the_doubled_hour_is_told_apart_in_words_too():
    axis = build_axis(AUTUMN, DENVER)
    span = Span(at(AUTUMN, "01:30"), at(AUTUMN, "01:30", fold=1))
    assert geometry.format_span(span, axis) == "01:30 MDT - 01:30 MST"


@pytest.mark.parametrize(
    ("spans", "hours"),
    [
        ([], geometry.DEFAULT_HOURS),
        ([("08:30", "17:00")], (7, 18)),
        ([("08:30", "17:01")], (7, 19)),
        ([("00:00", "05:00"), ("22:00", "23:00")], (0, 24)),
    ],
)
def test_the_hours_that_matter_are_shown(spans, hours):
    day = build_axis(PLAIN, DENVER).span
    given = [Span(at(PLAIN, start), at(PLAIN, end)) for start, end in spans]
    assert geometry.get_visible_hours(day, DENVER, given) == hours


def test_free_time_is_offered_by_the_hour_on_the_rooms_grid():
    axis = build_axis(PLAIN, DENVER)
    free = [Span(at(PLAIN, "09:10"), at(PLAIN, "11:30"))]
    proposed = [
        geometry.format_span(slot.proposed, axis)
        for slot in geometry.find_slots(axis, free, SlotRules(grid=15, minimum=30))
    ]
    assert proposed == ["09:15 - 10:15", "10:00 - 11:00", "11:00 - 11:30"]


def test_too_short_a_gap_is_not_offered():
    axis = build_axis(PLAIN, DENVER)
    free = [Span(at(PLAIN, "09:00"), at(PLAIN, "09:20"))]
    assert not list(geometry.find_slots(axis, free, SlotRules(grid=15, minimum=30)))


def test_nothing_is_offered_in_the_second_showing_of_an_hour():
    axis = build_axis(AUTUMN, DENVER, (0, 4))
    offered = [
        geometry.format_clock_time(slot.proposed.start, DENVER)
        for slot in geometry.find_slots(axis, [axis.span], SlotRules(grid=15, minimum=30))
    ]
    assert offered == ["00:00", "02:00", "03:00"]


# Properties


@given(axes())
def test_ticks_are_in_order_on_the_axis_and_no_two_are_alike(axis: TimelineAxis):
    ticks = axis.get_ticks()
    assert all(0 <= tick.left < 100 for tick in ticks)
    assert sorted(ticks, key=lambda tick: tick.at) == ticks
    names = [(tick.label, tick.zone_name) for tick in ticks]
    assert len(set(names)) == len(names)


@given(axis_and_spans())
def test_boxes_lie_on_the_axis_and_are_as_wide_as_they_are_long(given_):
    axis, spans = given_
    for span in spans:
        box = axis.get_box(span)
        if not axis.span.overlaps(span):
            assert box is None
            continue
        assert 0 <= box.left <= 100
        assert 0 < box.width <= 100 + 1e-9
        seen = min(span.end, axis.span.end) - max(span.start, axis.span.start)
        assert box.width == pytest.approx(100 * (seen / axis.span.duration))
        assert box.starts_before == (span.start < axis.span.start)
        assert box.ends_after == (span.end > axis.span.end)


@given(axis_and_spans())
def test_gaps_and_what_is_taken_make_up_the_whole(given_):
    axis, spans = given_
    left = find_gaps(axis.span, spans)
    assert left == sorted(left)
    for gap in left:
        assert axis.span.contains(gap)
        assert not any(gap.overlaps(span) for span in spans)
    # Nothing is left of the gaps once they are taken too.
    assert not find_gaps(axis.span, [*left, *spans])


@given(axis_and_spans())
def test_no_two_bars_lie_upon_each_other(given_):
    _, spans = given_
    lanes = geometry.assign_lanes(spans)
    for one, (span, lane) in enumerate(zip(spans, lanes, strict=True)):
        for other in range(one):
            assert lanes[other] != lane or not span.overlaps(spans[other])
    most = max((sum(s.start <= each.start < s.end for s in spans) for each in spans), default=0)
    assert len(set(lanes)) == most


@given(axis_and_spans())
def test_the_hours_shown_show_all(given_):
    axis, spans = given_
    day = build_axis(axis.day, axis.zone)
    shown = build_axis(axis.day, axis.zone, geometry.get_visible_hours(day.span, axis.zone, spans))
    for span in spans:
        if span.overlaps(day.span):
            seen = Span(max(span.start, day.span.start), min(span.end, day.span.end))
            assert shown.span.contains(seen)


@given(axis_and_spans(), st.sampled_from([5, 15, 30, 60]), st.sampled_from([0, 30, 90]))
def test_what_is_offered_is_free_long_enough_and_on_the_grid(given_, grid, shortest):
    axis, spans = given_
    free = find_gaps(axis.span, spans)
    for slot in geometry.find_slots(axis, free, SlotRules(grid, shortest)):
        assert any(gap.contains(slot.proposed) and gap.contains(slot.piece) for gap in free)
        assert slot.piece.start <= slot.proposed.start < slot.piece.end
        assert slot.proposed.duration >= shortest * MINUTE
        local = slot.proposed.start.astimezone(axis.zone)
        assert (local.hour * 60 + local.minute) % grid == 0
        # What the draft page makes of the time without its offset is this very time.
        for moment in (slot.proposed.start, slot.proposed.end):
            wall = moment.astimezone(axis.zone).replace(tzinfo=None)
            assert wall.replace(tzinfo=axis.zone).astimezone(UTC) == moment
