"""What a room costs when: /api/meeting-rooms/prices and /api/reservations/cost"""

import datetime as dt
from decimal import Decimal

import pytest

from centers.models import MeetingRoom, PriceList
from reservations.models import Reservation
from tests.factories_centers import MeetingRoomFactory, RateFactory, ServiceFactory
from tests.factories_reservations import NOW, AllowanceFactory, make_booking
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PRICES, COST = "/api/meeting-rooms/prices", "/api/reservations/cost"
SATURDAY = {"From": "2027-03-06", "To": "2027-03-07"}
NINE_TO_TWO = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T14:00:00"}
STANDARD = {"Hourly": 25.0, "HalfDay": 90.0, "FullDay": 160.0}


def list_days(get, room, **fields):
    return get(PRICES, RoomId=room.pk, **{**SATURDAY, **fields})["Days"]


def test_standard_and_flat_prices_hold_from_midnight_to_midnight(get, room):
    flat = MeetingRoomFactory(rate=RateFactory(is_flat_rate=True, flat_rate=50, hourly=7))
    whole_day = {"Start": "2027-03-06T00:00:00-07:00", "End": "2027-03-07T00:00:00-07:00"}
    for each, prices in ((room, STANDARD), (flat, {"FlatRate": 50.0})):
        [day] = list_days(get, each)
        assert day == {"Date": "2027-03-06", "Prices": [{**whole_day, **prices}]}


def test_special_prices_are_parts_of_the_day(get, room):
    prices = {"hourly": Decimal(30), "full_day": Decimal(99)}
    evening = {"name": "Evening", "weekdays": "sat", "starts": dt.time(18)}
    PriceList.objects.create(rate=room.rate, **evening, **prices)
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


def test_room_that_cannot_be_booked_has_no_prices(call, room):
    without_price = RateFactory(hourly=None, half_day=None, full_day=None, center=room.center)
    for rate in (without_price, None):
        room.rate = rate
        room.save()
        refused(call(PRICES, RoomId=room.pk, **SATURDAY), 409, "RateNotConfigured")
    room.is_active = False
    room.save()
    refused(call(PRICES, RoomId=room.pk, **SATURDAY), 404, "NotFound")


# --- Reservation cost -----------------------------------------------------------------------------


@pytest.fixture
def ask(call, room):
    return lambda path=COST, **fields: call(
        path, **{"MeetingRoomId": room.pk, **NINE_TO_TWO, **fields}
    )


def test_cost_ignores_allowances_and_availability_and_stores_nothing(ask, ada, room):
    assert ask().json() == {"Success": True, "Total": 115}
    AllowanceFactory(user=ada)
    past = {"StartDate": "2020-03-03T03:07:00", "EndDate": "2020-03-03T03:08:00"}
    assert ask(**past).json()["Total"] == 6.25
    assert not Reservation.objects.exists()
    make_booking(room=room)
    MeetingRoom.objects.filter(pk=room.pk).update(is_active=False, is_blocked=True)
    assert ask().json()["Total"] == 115


def test_room_or_service_without_a_rate_returns_409(ask, room):
    coffee = ServiceFactory(center=room.center, name="Coffee", rate__flat_rate=None)
    error = refused(ask(ServiceOptions=[{"ServiceId": coffee.pk}]), 409, "RateNotConfigured")
    assert error["Message"] == "Coffee has no price yet. Please ask the center."

    MeetingRoom.objects.filter(pk=room.pk).update(rate=None)
    for path in (COST, "/api/reservations/create"):
        error = refused(ask(path), 409, "RateNotConfigured")
        assert error["Message"] == "This room has no price yet. Please ask the center."
