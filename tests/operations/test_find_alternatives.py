"""POST /api/meeting-rooms/alternatives"""

import datetime as dt
import random

import pytest

from centers.geo import miles_from_squared_chord
from centers.models import Center, MeetingRoom
from centers.requested_span import resolve_span
from reservations import alternatives
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ServiceFactory,
    open_every_day,
)
from tests.factories_reservations import HOUR, MINUTE, NOW, START, make_booking
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/meeting-rooms/alternatives"
TIMES = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T12:00:00"}
SAME_TIME = {"Start": "2027-03-03T09:00:00-07:00", "End": "2027-03-03T12:00:00-07:00"}


@pytest.fixture
def ask(client, token, room):
    def ask(path=PATH, **fields):
        return post(client, path, {"Token": token, "RoomId": room.pk, **TIMES, **fields})

    return ask


@pytest.fixture
def found(ask):
    def found(**fields):
        response = ask(**fields)
        assert response.status_code == 200, response.content
        return response.json()["Alternatives"]

    return found


def make_center_nearby(latitude=39.76, **fields):
    """A center about a mile north of the room's, open 8 to 18, with one room."""
    center = CenterFactory(latitude=latitude)
    open_every_day(center)
    return MeetingRoomFactory(center=center, **fields)


def test_alternatives_are_other_rooms_then_other_times_then_other_centers(ask, room):
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

    assert ask().json() == {
        "Success": True,
        "Alternatives": [
            expect(cheap, SAME_TIME, 60.0, 0.0, "OtherRoom"),
            expect(room, at_noon, 75.0, 0.0, "OtherTime"),
            expect(room, the_day_before, 75.0, 0.0, "OtherTime"),
            expect(nearby, SAME_TIME, 75.0, 1.15, "OtherCenter"),
        ],
    }


def test_alternatives_as_csv_have_one_row_for_each(client, token, room):
    make_booking(room=room)
    other = MeetingRoomFactory(center=room.center)
    body = {"Token": token, "RoomId": room.pk, **TIMES, "Limit": 1}

    header, row = table(post_csv(client, f"{PATH}.csv", body))

    assert header == ["Success"] + [
        f"Alternatives.{name}"
        for name in ("RoomId", "CenterId", "Start", "End", "Total", "DistanceInMiles", "Reason")
    ]
    assert row == [
        *("true", str(other.pk), str(room.center_id), *SAME_TIME.values()),
        *("75.0", "0.0", "OtherRoom"),
    ]


def test_alternatives_are_wrapped_for_jsonp(ask):
    assert len(jsonp(ask(path=f"{PATH}?callback=cb"), "cb")["Alternatives"]) == 2


def test_rooms_that_are_smaller_taken_or_without_a_price_are_left_out(found, room):
    make_booking(room=MeetingRoomFactory(center=room.center))
    MeetingRoomFactory(center=room.center, capacity=7)
    MeetingRoomFactory(center=room.center, rate=None)
    MeetingRoomFactory(center=room.center, is_blocked=True)
    MeetingRoomFactory(
        center=room.center,
        rate=RateFactory(center=room.center, hourly=None, half_day=None, full_day=None),
    )
    assert {each["Reason"] for each in found()} == {"OtherTime"}


def test_center_beyond_five_miles_or_inactive_is_left_out(found):
    make_center_nearby(latitude=39.7433 + 5.1 / 69)
    other = make_center_nearby()
    Center.objects.filter(pk=other.center_id).update(is_active=False)
    assert "OtherCenter" not in {each["Reason"] for each in found(Limit=10)}


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
    assert [each["Reason"] for each in without] == [
        *("OtherRoom", "OtherTime", "OtherTime", "OtherCenter"),
    ]
    assert [each["Reason"] for each in with_service] == ["OtherRoom", "OtherTime", "OtherTime"]
    assert all(each["Total"] > without[0]["Total"] for each in with_service)


def test_alternative_is_nearest_and_earlier_at_a_tie(found):
    assert [each["Start"] for each in found()] == [
        "2027-03-03T08:45:00-07:00",
        "2027-03-03T09:15:00-07:00",
    ]


@pytest.mark.parametrize("limit", [0, 11])
def test_limit_out_of_bounds_is_refused(ask, limit):
    assert ask(Limit=limit).status_code == 400


def test_unknown_room_is_not_found(ask):
    assert ask(RoomId=987654).status_code == 404


# --- Brute force ----------------------------------------------------------------------------------


def list_by_brute_force(client, token, room, span, limit):
    """The alternatives by check-availability and Reservation cost, one by one."""

    def price(other, start):
        times = {
            "StartDate": start.isoformat(),
            "EndDate": (start + span.duration).isoformat(),
            "Token": token,
        }
        checked = post(
            client, "/api/meeting-rooms/check-availability", {"RoomId": other.pk, **times}
        ).json()
        cost = post(client, "/api/reservations/cost", {"MeetingRoomId": other.pk, **times})
        return cost.json()["Total"] if checked["IsAvailable"] and cost.status_code == 200 else None

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


@pytest.mark.parametrize("seed", range(4))
def test_alternatives_are_those_of_a_brute_force_search(client, token, room, found, seed):
    choice = random.Random(seed)
    rooms = [room]
    for _ in range(choice.randint(1, 4)):
        rate = RateFactory(center=room.center, hourly=choice.randint(10, 40))
        rooms.append(
            MeetingRoomFactory(center=room.center, capacity=choice.choice([4, 8, 20]), rate=rate)
        )
    for _ in range(3):
        rooms.append(
            make_center_nearby(39.70 + choice.random() / 8, capacity=choice.choice([4, 9]))
        )
    for booked in choice.sample(rooms, len(rooms) // 2):
        start = START + choice.randint(-4, 3) * HOUR
        if start > NOW:
            make_booking(room=booked, start=start + 2 * HOUR, hours=choice.choice([1, 3]))
    span = resolve_span(room.center, START, START + choice.choice([1, 2, 6]) * HOUR)
    limit = choice.choice([3, 10])

    answered = found(StartDate=span.start.isoformat(), EndDate=span.end.isoformat(), Limit=limit)

    assert [
        (each["RoomId"], dt.datetime.fromisoformat(each["Start"]), each["Total"], each["Reason"])
        for each in answered
    ] == list_by_brute_force(client, token, room, span, limit)
