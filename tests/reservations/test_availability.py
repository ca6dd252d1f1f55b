"""Availability of a room: each reason alone, and all reasons together."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from centers.models import MeetingRoom
from centers.span import Span
from reservations import availability
from reservations.models.status import Status
from roombook.errors import SlotUnavailable
from tests.factories_centers import ClosureFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    START,
    ReservationFactory,
    make_draft,
)

pytestmark = pytest.mark.django_db


SPAN = Span(START, START + 3 * HOUR)


def of(room, span=SPAN, *, now=NOW, **who):
    fresh = MeetingRoom.objects.with_booking_details().get(pk=room.pk)
    return availability.evaluate(fresh, span, now=now, **who)


def codes(*args, **kwargs):
    return [reason.code for reason in of(*args, **kwargs).reasons]


def change(row, **fields):
    type(row).objects.filter(pk=row.pk).update(**fields)


# --- Each reason alone ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("center", {"is_active": False}, "center-inactive"),
        ("", {"is_active": False}, "room-inactive"),
        ("", {"is_blocked": True}, "room-blocked"),
    ],
)
def test_room_that_nobody_may_book_is_unavailable(room, field, value, code):
    change(getattr(room, field) if field else room, **value)
    assert codes(room) == [code]


def test_start_in_the_past_is_unavailable(room):
    assert codes(room, now=START) == []
    assert codes(room, now=START + timedelta(seconds=1)) == ["past"]


def test_booking_window_ends_with_the_local_day_a_year_ahead(room):
    # 365 days from a March 1st: February 29th of 2028.
    last_evening = datetime(2028, 3, 1, 0, tzinfo=UTC)  # 17:00 local time
    assert codes(room, Span(last_evening, last_evening + HOUR)) == []
    day_after = datetime(2028, 3, 1, 15, tzinfo=UTC)
    assert codes(room, Span(day_after, day_after + HOUR)) == ["too-far-ahead"]


@pytest.mark.parametrize(
    ("late", "length", "reasons"),
    [
        *((late, length, ["off-grid"]) for late, length in ((1, 60), (0, 61), (7, 67), (14, 46))),
        (0, 30, []),
        (0, 15, ["too-short"]),
        # Durations are elapsed time, although the clock changes in Denver.
        (0, 14 * 24 * 60, []),
        (0, 14 * 24 * 60 + 15, ["too-long"]),
    ],
)
def test_span_off_the_grid_or_too_short_or_long_is_unavailable(room, late, length, reasons):
    change(room.center, is_after_hours_support_enabled=True)
    start = START + late * MINUTE
    assert codes(room, Span(start, start + length * MINUTE)) == reasons


@pytest.mark.parametrize(
    ("field", "value", "span", "code", "message"),
    [
        (
            *("grid_minutes", 60, Span(START, START + 90 * MINUTE), "off-grid"),
            "Bookings begin and end on a 60-minute step.",
        ),
        (
            *("minimum_minutes", 120, Span(START, START + HOUR), "too-short"),
            "The shortest booking of this room is 120 minutes.",
        ),
        ("maximum_minutes", 60, SPAN, "too-long", "The longest booking of this room is 1 hour."),
        (
            *("booking_window_days", 1, SPAN, "too-far-ahead"),
            "The room can be booked at most 1 days ahead.",
        ),
        (
            *("booking_window_days", 0, SPAN, "too-far-ahead"),
            "The room can be booked at most 0 days ahead.",
        ),
    ],
)
def test_room_limits_override_the_settings_and_are_named(room, field, value, span, code, message):
    assert codes(room, span) == []
    change(room, **{field: value})
    [reason] = of(room, span).reasons
    assert (reason.code, reason.message) == (code, message)


def test_longest_booking_is_named_in_whole_days_or_else_in_hours(room):
    for minutes, length in (
        *((None, "14 days"), (1440, "1 day"), (2880, "2 days"), (60, "1 hour")),
        *((90, "1.5 hours"), (1500, "25 hours"), (2160, "36 hours")),
    ):
        change(room, maximum_minutes=minutes)
        messages = [each.message for each in of(room, Span(START, START + 28 * DAY)).reasons]
        assert f"The longest booking of this room is {length}." in messages


def test_booking_limits_are_read_from_settings(room, settings):
    settings.BOOKING_GRID_MINUTES = 120
    settings.BOOKING_MINIMUM_MINUTES = 240
    settings.BOOKING_WINDOW_DAYS = 1
    assert codes(room) == ["too-far-ahead", "off-grid", "too-short"]


@pytest.mark.parametrize(
    ("first", "last", "is_open"),
    [
        (8, 18, True),
        (7, 9, False),
        (17, 19, False),
        (17, 18.25, False),  # the last quarter hour
        (6, 20, False),
        (18, 20, False),
        (17, 33, False),  # from one open day into the next
    ],
)
def test_span_outside_the_opening_hours_of_one_local_day_is_closed(room, first, last, is_open):
    midnight = datetime(2027, 3, 3, 7, tzinfo=UTC)
    span = Span(midnight + first * HOUR, midnight + last * HOUR)
    assert codes(room, span) == ([] if is_open else ["closed"])


def test_center_without_opening_hours_is_closed(room):
    room.center.opening_hours.all().delete()
    answer = of(room)
    assert [reason.code for reason in answer.reasons] == ["closed"]
    assert "never" in answer.reasons[0].detail


# --- Closures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "overlaps"),
    [
        (-24, 48, True),
        (1, 2, True),
        (-1, 0.25, True),
        (2.75, 9, True),
        (-2, 0, False),  # ends as the meeting begins
        (3, 5, False),
    ],
)
def test_overlapping_closure_makes_room_unavailable(room, first, last, overlaps):
    ClosureFactory(
        center=room.center,
        starts_at=START + first * HOUR,
        ends_at=START + last * HOUR,
        reason="Holiday",
    )
    answer = of(room)
    assert [reason.code for reason in answer.reasons] == (["closure"] if overlaps else [])
    if overlaps:
        assert re.match(r"Holiday: \w{3} 2027-03-0\d ", answer.reasons[0].detail)
    change(room.center, is_after_hours_support_enabled=True)
    assert of(room).reasons == answer.reasons


# --- Conflicts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [each for each in Status if each != Status.NEW])
def test_reservation_that_is_not_closed_makes_room_unavailable_to_everybody(room, status):
    conflicting = ReservationFactory(room=room, status=status)
    is_active = status in {Status.PROCESSING, Status.PENDING, Status.CONFIRMED}
    details = [reason.detail for reason in of(room, for_user=conflicting.user).reasons]
    assert [f"Reservation {conflicting.pk}" in each for each in details] == [True] * is_active
    assert codes(room) == ["held"] * is_active


def test_draft_conflicts_until_its_hold_expires(room):
    make_draft(room=room)
    assert codes(room) == ["held"]
    assert codes(room, now=NOW + 15 * MINUTE - timedelta(seconds=1)) == ["held"]
    assert codes(room, now=NOW + 15 * MINUTE) == []


def test_own_drafts_and_the_reservation_itself_do_not_conflict(room):
    draft = make_draft(room=room)
    assert codes(room, for_user=draft.user) == []
    assert codes(room, for_user=UserFactory()) == ["held"]
    booking = ReservationFactory(room=room, start=START + DAY)
    moved = Span(START + DAY + HOUR, START + DAY + 4 * HOUR)
    assert codes(room, moved, for_user=booking.user) == ["held"]
    assert codes(room, moved, for_user=booking.user, excluding=booking) == []


def test_draft_by_staff_holds_room_for_a_day(room):
    make_draft(room=room, created_by=UserFactory(is_staff=True))
    assert codes(room, now=NOW + 24 * HOUR - MINUTE) == ["held"]
    assert codes(room, now=NOW + 24 * HOUR) == []


# --- All reasons together -------------------------------------------------------------------------


def test_all_reasons_are_listed_and_the_error_has_the_first(room):
    change(room.center, is_active=False)
    change(room, is_active=False, is_blocked=True)
    span = Span(START - 10 * HOUR + MINUTE, START - 10 * HOUR + 2 * MINUTE)
    ClosureFactory(center=room.center, starts_at=NOW, ends_at=START + HOUR)
    for start in (START - 14 * HOUR, START - 9 * HOUR):
        ReservationFactory(room=room, start=start, turnaround_minutes=90)

    answer = of(room, span, now=START)

    assert [reason.code for reason in answer.reasons] == [
        *("center-inactive", "room-inactive", "room-blocked", "past", "off-grid", "too-short"),
        *("closed", "closure", "held", "held"),
    ]
    with pytest.raises(SlotUnavailable, match=r"The room cannot be booked at the moment\."):
        answer.raise_if_unavailable()


def test_conflict_message_does_not_identify_other_reservations(room):
    conflicting = ReservationFactory(room=room)
    (reason,) = of(room).reasons
    assert str(conflicting.pk) not in reason.message
    assert reason.message == "The room is already taken at that time."


def test_free_times_are_none_in_the_past_or_for_longer_than_the_room_allows(room):
    change(room, maximum_minutes=90)
    past = Span(NOW - HOUR, NOW)
    # 50 minutes are no multiple of a time slot.
    for span, minutes, count in ((SPAN, 90, 1), (SPAN, 105, 0), (SPAN, 50, 0), (past, 90, 0)):
        room = MeetingRoom.objects.with_booking_details().get(pk=room.pk)
        calendar = availability.load_calendars([room], span, user=None, now=NOW)[room.pk]
        free = calendar.find_free_times(span, duration=minutes * MINUTE, now=NOW)
        assert len([*free]) == count, (span, minutes)
