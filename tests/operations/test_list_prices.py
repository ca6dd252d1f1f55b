"""What a room costs when: /api/meeting-rooms/prices"""

import datetime as dt
from decimal import Decimal

import pytest

from centers.models import PriceList
from tests.factories_centers import MeetingRoomFactory, RateFactory
from tests.factories_reservations import NOW
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PRICES = "/api/meeting-rooms/prices"
SATURDAY = {"From": "2027-03-06", "To": "2027-03-07"}
STANDARD = {"Hourly": 25.0, "HalfDay": 90.0, "FullDay": 160.0}


@pytest.fixture
def evening(room):
    return PriceList.objects.create(
        rate=room.rate, name="Evening", starts=dt.time(18), hourly=Decimal(30), full_day=Decimal(99)
    )


def list_days(get, room, **fields):
    return get(PRICES, RoomId=room.pk, **{**SATURDAY, **fields})["Days"]


def test_standard_prices_hold_from_midnight_to_midnight(get, room):
    [day] = list_days(get, room)
    whole_day = {"Start": "2027-03-06T00:00:00-07:00", "End": "2027-03-07T00:00:00-07:00"}
    assert day == {"Date": "2027-03-06", "Prices": [{**whole_day, **STANDARD}]}


def test_special_prices_are_parts_of_the_day(get, room, evening):
    evening.weekdays = "sat"
    evening.save()
    [saturday, sunday] = list_days(get, room, From="2027-03-06T12:00", To="2027-03-07T00:01:00")
    before, special = saturday["Prices"]
    assert before["Start"] == "2027-03-06T00:00:00-07:00"
    assert before["End"] == "2027-03-06T18:00:00-07:00"
    assert special == {
        "Name": "Evening",
        "Start": "2027-03-06T18:00:00-07:00",
        "End": "2027-03-07T00:00:00-07:00",
        "Hourly": 30.0,
        "FullDay": 99.0,
    }
    [whole] = sunday["Prices"]
    assert (sunday["Date"], whole["Start"]) == ("2027-03-07", "2027-03-07T00:00:00-07:00")


def test_day_of_a_clock_change_is_covered_whole(get, room, evening):
    [day] = list_days(get, room, From="2027-03-14", To="2027-03-15")
    assert [part["Start"] for part in day["Prices"]] == [
        "2027-03-14T00:00:00-07:00",
        "2027-03-14T18:00:00-06:00",
    ]


def test_flat_rate_is_one_price(get):
    room = MeetingRoomFactory(rate=RateFactory(is_flat_rate=True, flat_rate=50, hourly=7))
    [day] = list_days(get, room)
    assert day["Prices"][0]["FlatRate"] == 50.0
    assert "Hourly" not in day["Prices"][0]


def test_room_that_cannot_be_booked_has_no_prices(call, room):
    without_price = RateFactory(hourly=None, half_day=None, full_day=None, center=room.center)
    for rate in (without_price, None):
        room.rate = rate
        room.save()
        refused(call(PRICES, RoomId=room.pk, **SATURDAY), 409, "RateNotConfigured")
    room.is_active = False
    room.save()
    refused(call(PRICES, RoomId=room.pk, **SATURDAY), 404, "NotFound")
