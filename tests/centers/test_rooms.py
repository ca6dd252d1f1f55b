"""Rooms by id, and the limits on their bookings."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from centers.rooms import BookingRules, get_booking_rules, get_room
from roombook.errors import NotFound
from tests.factories_centers import MeetingRoomFactory

pytestmark = pytest.mark.django_db


def test_get_room_requires_its_center():
    room = MeetingRoomFactory()
    assert get_room(room.pk) == room
    assert get_room(room.pk, center_id=room.center_id) == room
    for pk, center_id in ((room.pk, room.center_id + 1), (room.pk + 1, None)):
        with pytest.raises(NotFound):
            get_room(pk, center_id=center_id)


def test_booking_rules_of_a_room_without_its_own_are_the_default(settings):
    settings.BOOKING_GRID_MINUTES = 20
    assert get_booking_rules(MeetingRoomFactory()) == BookingRules(20, 30, 14 * 24 * 60, 365)


def test_booking_rules_of_a_room_replace_the_default():
    room = MeetingRoomFactory(grid_minutes=60, minimum_minutes=0, booking_window_days=0)
    assert get_booking_rules(room) == BookingRules(60, 0, 14 * 24 * 60, 0)


def test_last_day_to_book_is_in_local_time():
    rules = BookingRules(15, 30, 60, window_days=2)
    now = dt.datetime(2027, 3, 1, 23, 30, tzinfo=dt.UTC)
    assert rules.get_last_day(now, ZoneInfo("America/Denver")) == dt.date(2027, 3, 3)
    assert rules.get_last_day(now, ZoneInfo("Asia/Tokyo")) == dt.date(2027, 3, 4)
