"""The next time in which a room can be booked, which forms propose."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from centers.hours import localize
from centers.models import MeetingRoom
from reservations.free_times import find_next_bookings
from tests.factories_centers import ClosureFactory, MeetingRoomFactory
from tests.factories_reservations import MINUTE, ReservationFactory, make_room

pytestmark = pytest.mark.django_db

DENVER = "America/Denver"


def read(text, zone=DENVER):
    """The local time of a text such as `03-01 09:20`, in 2027."""
    return localize(dt.datetime.fromisoformat(f"2027-{text}"), ZoneInfo(zone))


def close(start, end, **fields):
    return lambda room: ClosureFactory(
        center=room.center, starts_at=read(start), ends_at=read(end), **fields
    )


def book(start, end, **fields):
    return lambda room: ReservationFactory(room=room, start=read(start), end=read(end), **fields)


def open_round_the_clock(room):
    room.center.is_after_hours_support_enabled = True
    room.center.save()


MONDAY = "03-01 09:20"
# The center is open from 8 to 18 every day. 2027-03-01 is a Monday.
# Random worlds are in test_room_calendar.py.
CASES = {
    "open": (MONDAY, {}, None, "03-01 09:30 10:30"),
    "a slot begins while the form is filled in": ("03-01 09:29", {}, None, "03-01 09:45 10:45"),
    "closed for two weeks": (MONDAY, {}, close("03-01 00:00", "03-15 00:00"), "03-15 08:00 09:00"),
    "closed for two months": (MONDAY, {}, close("03-01 00:00", "05-01 00:00"), None),
    "half an hour at most": (MONDAY, {"maximum_minutes": 30}, None, "03-01 09:30 10:00"),
    "two hours at least": ("03-01 16:20", {"minimum_minutes": 120}, None, "03-02 08:00 10:00"),
    "out of service": (MONDAY, {"is_blocked": True}, None, None),
    "the clock goes forward": ("03-14 01:20", {}, open_round_the_clock, "03-14 01:30 03:30"),
    # The booking would end at the second 01:15. Without an offset, that would mean the first.
    "the clock goes back": ("11-07 01:05", {}, open_round_the_clock, "11-07 02:00 03:00"),
}


def find(room, now):
    fresh = MeetingRoom.objects.with_booking_details().get(pk=room.pk)
    for _, span in find_next_bookings([fresh], user=None, now=now):
        start, end = (at.astimezone(fresh.center.zone) for at in (span.start, span.end))
        return f"{start:%m-%d %H:%M} {end:%H:%M}"
    return None


@pytest.mark.parametrize("case", CASES)
def test_next_booking_is_the_first_free_hour(case):
    now, fields, prepare, expected = CASES[case]
    room = make_room(**fields)
    if prepare:
        prepare(room)

    assert find(room, read(now)) == expected


def test_next_bookings_of_many_rooms_are_found_by_a_few_queries(django_assert_num_queries):
    first, now = make_room(), read("03-01 09:20")
    book("03-01 09:00", "03-01 11:00")(first)
    others = [MeetingRoomFactory(center=first.center) for _ in range(5)]
    close("03-01 00:00", "03-20 00:00", room=others[0])(first)
    rooms = list(MeetingRoom.objects.with_booking_details().order_by("pk"))

    # The opening hours, and what takes the rooms.
    with django_assert_num_queries(3):
        found = {room: span.start for room, span in find_next_bookings(rooms, user=None, now=now)}

    assert found == {
        first: read("03-01 11:00"),
        others[0]: read("03-20 08:00"),
        **dict.fromkeys(others[1:], now + 10 * MINUTE),
    }
