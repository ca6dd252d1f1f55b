"""When rooms are free: /api/meeting-rooms/check-availability, free-times and alternatives"""

import datetime as dt
import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.geo import miles_from_squared_chord
from centers.models import Center, MeetingRoom
from centers.requested_span import resolve_span
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
    MINUTE,
    NOW,
    START,
    ReservationFactory,
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


@pytest.fixture
def free_times(list_free_times):
    def free_times(**fields):
        response = list_free_times(**fields)
        assert response.status_code == 200, response.content
        [answered] = response.json()["Rooms"]
        return answered["FreeTimes"]

    return free_times


def test_free_times_of_a_room_leave_out_what_is_taken(list_free_times, free_times, room):
    make_booking(room=room)  # 9 to 12
    ClosureFactory(center=room.center, starts_at=START + 5 * HOUR, ends_at=START + 6 * HOUR)

    assert list_free_times().json() == {
        "Success": True,
        "Rooms": [{"RoomId": room.pk, "FreeTimes": free((8, 9), (12, 14), (15, 18))}],
    }
    # Only those that hold the duration.
    assert free_times(DurationMinutes=180) == free((15, 18))


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


@pytest.mark.parametrize("minutes", [15, 100, 105])
def test_duration_that_the_room_does_not_allow_has_no_free_time(free_times, room, minutes):
    MeetingRoom.objects.filter(pk=room.pk).update(maximum_minutes=90)
    assert free_times(DurationMinutes=minutes) == []


def test_free_times_are_clipped_to_the_period_the_grid_and_the_booking_window(free_times, room):
    assert free_times(From="2027-03-03T08:50:00", To="2027-03-03T17:05:00Z") == free((9, 10))
    assert free_times(From="2027-02-20", To=f"{NOW:%Y-%m-%dT%H:%M:%SZ}") == []
    MeetingRoom.objects.filter(pk=room.pk).update(booking_window_days=1)
    assert free_times(From="2027-02-20", To="2027-03-20") == [
        {"Start": "2027-03-01T09:00:00-07:00", "End": "2027-03-01T18:00:00-07:00"},
        {"Start": "2027-03-02T08:00:00-07:00", "End": "2027-03-02T18:00:00-07:00"},
    ]


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

    assert error["Details"] == (
        "CenterId: The center has too many rooms for so many days. Ask for fewer days, or for some"
        " of its rooms by RoomIds."
    )
    rooms = list_free_times(**whole, To="2027-03-03").json()["Rooms"]
    assert len(rooms) == MAX_ROOM_DAYS // 31 + 1


# --- Find alternatives ----------------------------------------------------------------------------

SAME_TIME = {"Start": "2027-03-03T09:00:00-07:00", "End": "2027-03-03T12:00:00-07:00"}


@pytest.fixture
def found(get, room):
    return lambda **fields: get(ALTERNATIVES, **{"RoomId": room.pk, **NINE_TO_TWELVE, **fields})[
        "Alternatives"
    ]


def make_center_nearby(latitude=39.76, **fields):
    """A center about a mile north of the room's, open 8 to 18, with one room."""
    center = CenterFactory(latitude=latitude)
    open_every_day(center)
    return MeetingRoomFactory(center=center, **fields)


def get_reasons(alternatives):
    return [each["Reason"] for each in alternatives]


def test_alternatives_are_other_rooms_then_other_times_then_other_centers(found, room):
    make_booking(room=room)
    cheap = MeetingRoomFactory(
        center=room.center, rate=RateFactory(center=room.center, hourly=20, half_day=None)
    )
    nearby = make_center_nearby()
    at_noon = {"Start": "2027-03-03T12:00:00-07:00", "End": "2027-03-03T15:00:00-07:00"}
    the_day_before = {"Start": "2027-03-02T15:00:00-07:00", "End": "2027-03-02T18:00:00-07:00"}

    def expect(other, times, total, distance, reason):
        return {
            "RoomId": other.pk,
            "CenterId": other.center_id,
            **times,
            "Total": total,
            "DistanceInMiles": distance,
            "Reason": reason,
        }

    assert found() == [
        expect(cheap, SAME_TIME, 60.0, 0.0, "OtherRoom"),
        expect(room, at_noon, 75.0, 0.0, "OtherTime"),
        expect(room, the_day_before, 75.0, 0.0, "OtherTime"),
        expect(nearby, SAME_TIME, 75.0, 1.15, "OtherCenter"),
    ]


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
    assert get_reasons(without) == ["OtherRoom", "OtherTime", "OtherTime", "OtherCenter"]
    assert get_reasons(with_service) == ["OtherRoom", "OtherTime", "OtherTime"]
    assert all(each["Total"] > without[0]["Total"] for each in with_service)


def list_by_brute_force(call, room, span, limit):
    """The alternatives by check-availability and Reservation cost, one by one."""

    def price(other, start):
        times = {"StartDate": start.isoformat(), "EndDate": (start + span.duration).isoformat()}
        is_available = call(CHECK, RoomId=other.pk, **times).json().get("IsAvailable")
        cost = call("/api/reservations/cost", MeetingRoomId=other.pk, **times)
        return cost.json()["Total"] if is_available and cost.status_code == 200 else None

    def get_distance(center):
        pairs = zip(center.coordinates.vector, room.center.coordinates.vector, strict=True)
        return round(miles_from_squared_chord(sum((a - b) ** 2 for a, b in pairs)), 2)

    own, others = [], []
    for other in MeetingRoom.objects.filter(capacity__gte=room.capacity).exclude(pk=room.pk):
        total = price(other, span.start)
        if total is None:
            continue
        if other.center_id == room.center_id:
            own.append((total, other.pk, "OtherRoom", span.start))
        elif (distance := get_distance(other.center)) <= alternatives.RADIUS_IN_MILES:
            others.append((distance, total, other.pk, "OtherCenter", span.start))
    times = []
    for direction in (-1, 1):
        for number in range(1, 97):
            start = span.start + direction * number * 15 * MINUTE
            total = price(room, start)
            if total is not None:
                times.append((number, direction, total, start))
                break
    listed = [(pk, start, total, reason) for total, pk, reason, start in sorted(own)]
    listed += [(room.pk, start, total, "OtherTime") for _, _, total, start in sorted(times)]
    listed += [(pk, start, total, reason) for _, total, pk, reason, start in sorted(others)]
    return listed[:limit]


@pytest.mark.parametrize("seed", range(8))
def test_alternatives_are_those_of_a_brute_force_search(call, room, found, seed):
    choice = random.Random(seed)
    rooms = [room]
    free_of_prices = RateFactory(center=room.center, hourly=None, half_day=None, full_day=None)
    for _ in range(choice.randint(2, 5)):
        rate = RateFactory(center=room.center, hourly=choice.randint(10, 40))
        rooms.append(
            MeetingRoomFactory(
                center=room.center,
                capacity=choice.choice([4, 8, 20]),
                rate=choice.choice([rate, rate, None, free_of_prices]),
                is_blocked=choice.random() < 0.2,
            )
        )
    for _ in range(4):
        rooms.append(
            make_center_nearby(39.70 + choice.random() / 6, capacity=choice.choice([4, 9]))
        )
    Center.objects.filter(pk=rooms[-1].center_id).update(is_active=seed % 2)
    for booked in choice.sample(rooms, len(rooms) // 2):
        start = START + choice.randint(-4, 3) * HOUR
        if start > NOW:
            hours = choice.choice([1, 3])
            ReservationFactory(room=booked, start=start + 2 * HOUR, end=start + (2 + hours) * HOUR)
    span = resolve_span(room.center, START, START + choice.choice([1, 2, 6]) * HOUR)
    limit = choice.choice([3, 10])

    answered = found(StartDate=span.start.isoformat(), EndDate=span.end.isoformat(), Limit=limit)

    assert [
        (each["RoomId"], dt.datetime.fromisoformat(each["Start"]), each["Total"], each["Reason"])
        for each in answered
    ] == list_by_brute_force(call, room, span, limit)


def test_special_prices_of_alternatives_are_read_by_one_query_for_each_kind(get, room):
    other = MeetingRoomFactory(center=room.center, capacity=room.capacity, rate=room.rate)
    special = PriceListFactory(rate=other.rate, starts=dt.time(9), hourly=77)

    def count(total):
        with CaptureQueriesContext(connection) as queries:
            [found, *_] = get(ALTERNATIVES, RoomId=room.pk, **NINE_TO_TWELVE)["Alternatives"]
        taxed = total * (1 + float(room.center.tax_rate) / 100)
        assert found["Total"] == pytest.approx(taxed, 0.01)
        return sum("centers_pricelist" in query["sql"] for query in queries)

    assert count(3 * 77) <= 2
    special.delete()
    assert count(3 * 25) == 0
