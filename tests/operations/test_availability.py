"""When rooms are free: /api/meeting-rooms/check-availability, free-times and alternatives"""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.models import Center, MeetingRoom
from reservations import alternatives
from reservations.free_times import MAX_ROOM_DAYS
from tests.factories_centers import (
    CenterFactory,
    ClosureFactory,
    MeetingRoomFactory,
    PriceListFactory,
    RateFactory,
    ServiceFactory,
    open_every_day,
)
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    make_booking,
)
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

CHECK = "/api/meeting-rooms/check-availability"
FREE_TIMES = "/api/meeting-rooms/free-times"
ALTERNATIVES = "/api/meeting-rooms/alternatives"
# Local times of the center, which is open from 8 to 18.
NINE_TO_TWELVE = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T12:00:00"}
DAY = {"From": "2027-03-03", "To": "2027-03-04"}


# --- List free times ------------------------------------------------------------------------------


def local(hour):
    return f"2027-03-03T{hour:02}:00:00-07:00"


def free(*hours):
    return [{"Start": local(start), "End": local(end)} for start, end in hours]


@pytest.fixture
def list_free_times(call, room):
    return lambda **fields: call(FREE_TIMES, **{"RoomIds": [room.pk], **DAY, **fields})


def test_free_times_leave_out_what_is_taken_or_outside_of_the_request(list_free_times, room):
    def free_times(**fields):
        [answered] = list_free_times(**fields).json()["Rooms"]
        assert answered["RoomId"] == room.pk
        return answered["FreeTimes"]

    assert free_times(From="2027-03-03T08:50:00", To="2027-03-03T17:05:00Z") == free((9, 10))
    make_booking(room=room)  # 9 to 12
    ClosureFactory(center=room.center, starts_at=START + 5 * HOUR, ends_at=START + 6 * HOUR)
    assert free_times() == free((8, 9), (12, 14), (15, 18))
    # Only those that hold the duration.
    assert free_times(DurationMinutes=180) == free((15, 18))
    MeetingRoom.objects.filter(pk=room.pk).update(booking_window_days=1)
    assert [each["Start"] for each in free_times(From="2027-02-20", To="2027-03-20")] == [
        *("2027-03-01T09:00:00-07:00", "2027-03-02T08:00:00-07:00"),
    ]


def test_rooms_of_a_center_are_listed_as_a_search_lists_them(list_free_times, room):
    center = room.center
    last = MeetingRoomFactory(center=center, name="Zebra", rate=None)
    MeetingRoomFactory(center=center, name="Hidden", is_active=False)
    first = MeetingRoomFactory(center=center, name="Aspen")

    response = list_free_times(RoomIds=None, CenterId=center.pk).json()

    assert [each["RoomId"] for each in response["Rooms"]] == [first.pk, room.pk, last.pk]
    assert all(each["FreeTimes"] == free((8, 18)) for each in response["Rooms"])
    empty = list_free_times(RoomIds=None, CenterId=CenterFactory().pk)
    assert empty.json() == {"Success": True, "Rooms": []}


def test_period_of_a_month_with_a_clock_change_is_accepted(list_free_times):
    assert list_free_times(From="2027-10-15", To="2027-11-15").status_code == 200
    response = list_free_times(From="2027-10-15", To="2027-11-15T00:15:00")
    assert refused(response, 400, "InvalidRequest")["Details"] == "To: At most 31 days after From."


def test_inactive_room_or_center_is_not_found(list_free_times, room):
    MeetingRoom.objects.filter(pk=room.pk).update(is_active=False)
    assert list_free_times().status_code == 404
    Center.objects.update(is_active=False)
    assert list_free_times(RoomIds=None, CenterId=room.center_id).status_code == 404


def test_center_with_too_many_rooms_for_the_days_is_refused(list_free_times, room):
    MeetingRoom.objects.bulk_create(
        MeetingRoom(
            center=room.center, resource_type=room.resource_type, name=f"Desk {number}", capacity=1
        )
        for number in range(MAX_ROOM_DAYS // 31)
    )
    whole = {"RoomIds": None, "CenterId": room.center_id, "From": "2027-03-01"}

    error = refused(list_free_times(**whole, To="2027-04-01"), 400, "InvalidRequest")

    assert error["Details"].startswith("CenterId: The center has too many rooms for so many days.")
    rooms = list_free_times(**whole, To="2027-03-03").json()["Rooms"]
    assert len(rooms) == MAX_ROOM_DAYS // 31 + 1


# --- Find alternatives ----------------------------------------------------------------------------

SAME_TIME = {"Start": "2027-03-03T09:00:00-07:00", "End": "2027-03-03T12:00:00-07:00"}


@pytest.fixture
def found(get, room):
    return lambda **fields: get(ALTERNATIVES, **{"RoomId": room.pk, **NINE_TO_TWELVE, **fields})[
        "Alternatives"
    ]


def make_center_nearby(latitude=39.76, *, is_active=True, **fields):
    """A center about a mile north of the room's, open 8 to 18, with one room."""
    center = CenterFactory(latitude=latitude, is_active=is_active)
    open_every_day(center)
    return MeetingRoomFactory(center=center, **fields)


def test_alternatives_are_other_rooms_then_other_times_then_other_centers(found, room):
    make_booking(room=room)
    rate, cheap_rate, no_rate = (
        RateFactory(center=room.center, hourly=hourly, half_day=None, full_day=None)
        for hourly in (25, 20, None)
    )
    large = {"center": room.center, "rate": rate, "capacity": 20}
    similar, cheap = MeetingRoomFactory(**large), MeetingRoomFactory(**large | {"rate": cheap_rate})
    nearby = make_center_nearby()
    # None of these is one.
    for fields in ({"rate": no_rate}, {"rate": None}, {"capacity": 7}, {"is_blocked": True}):
        MeetingRoomFactory(**large | fields)
    make_booking(room=MeetingRoomFactory(**large))
    make_center_nearby(capacity=7)
    make_center_nearby(39.83)
    make_center_nearby(is_active=False)
    at_noon = {"Start": "2027-03-03T12:00:00-07:00", "End": "2027-03-03T15:00:00-07:00"}
    the_day_before = {"Start": "2027-03-02T15:00:00-07:00", "End": "2027-03-02T18:00:00-07:00"}

    def expect(other, times, total, distance, reason):
        ids = {"RoomId": other.pk, "CenterId": other.center_id}
        return {**ids, **times, "Total": total, "DistanceInMiles": distance, "Reason": reason}

    all_of_them = [
        expect(cheap, SAME_TIME, 60.0, 0.0, "OtherRoom"),
        expect(similar, SAME_TIME, 75.0, 0.0, "OtherRoom"),
        expect(room, at_noon, 75.0, 0.0, "OtherTime"),
        expect(room, the_day_before, 75.0, 0.0, "OtherTime"),
        expect(nearby, SAME_TIME, 75.0, 1.15, "OtherCenter"),
    ]
    assert found(Limit=10) == all_of_them
    assert found(Limit=3) == all_of_them[:3]
    # Of times that are equally near, the earlier one is first.
    at_noon = {"StartDate": at_noon["Start"], "EndDate": "2027-03-03T13:00:00-07:00"}
    make_booking(room=room, start=START + 4 * HOUR)
    nearest = [each["Start"] for each in found(**at_noon, Limit=10) if each["RoomId"] == room.pk]
    assert nearest == ["2027-03-03T08:00:00-07:00", "2027-03-03T16:00:00-07:00"]


def test_only_the_nearest_centers_and_the_smallest_rooms_are_read(found, room, monkeypatch):
    monkeypatch.setattr(alternatives, "MAX_CENTERS", 2)
    monkeypatch.setattr(alternatives, "MAX_ROOMS", 2)
    make_booking(room=room)
    _large, small, middle = (
        MeetingRoomFactory(center=room.center, rate=room.rate, capacity=capacity)
        for capacity in (30, 10, 20)
    )
    _far, near, nearest = (make_center_nearby(latitude) for latitude in (39.78, 39.76, 39.75))

    rooms = {each["RoomId"] for each in found(Limit=10) if each["Reason"] != "OtherTime"}

    assert rooms == {small.pk, middle.pk, near.pk, nearest.pk}


def test_selected_service_leaves_out_other_centers_and_is_in_the_total(found, room):
    make_center_nearby()
    MeetingRoomFactory(center=room.center)
    service = ServiceFactory(center=room.center)
    without, with_service = found(), found(ServiceOptions=[{"ServiceId": service.pk}])
    reasons = ["OtherRoom", "OtherTime", "OtherTime"]
    assert [each["Reason"] for each in without] == [*reasons, "OtherCenter"]
    assert [each["Reason"] for each in with_service] == reasons
    assert all(each["Total"] > without[0]["Total"] for each in with_service)


def test_special_prices_of_alternatives_are_read_by_one_query_for_each_kind(get, room):
    other = MeetingRoomFactory(center=room.center, rate=room.rate)
    PriceListFactory(rate=other.rate, starts=dt.time(9), hourly=77)

    with CaptureQueriesContext(connection) as queries:
        [found, *_] = get(ALTERNATIVES, RoomId=room.pk, **NINE_TO_TWELVE)["Alternatives"]

    assert found["Total"] == 3 * 77
    assert sum("centers_pricelist" in query["sql"] for query in queries) <= 2
