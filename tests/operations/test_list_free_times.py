"""POST /api/meeting-rooms/free-times"""

import datetime as dt

import pytest

from centers.models import MeetingRoom
from reservations.free_times import MAX_ROOM_DAYS
from tests.factories_centers import CenterFactory, ClosureFactory, MeetingRoomFactory
from tests.factories_reservations import HOUR, NOW, START, make_booking, make_draft
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/meeting-rooms/free-times"
# The local day of START, on which the center is open from 8 to 18.
DAY = {"From": "2027-03-03", "To": "2027-03-04"}


def local(hour, minute=0):
    return f"2027-03-03T{hour:02}:{minute:02}:00-07:00"


def free(*hours):
    return [{"Start": local(start), "End": local(end)} for start, end in hours]


@pytest.fixture
def ask(client, token, room):
    def ask(path=PATH, **fields):
        return post(client, path, {"Token": token, "RoomIds": [room.pk], **DAY, **fields})

    return ask


@pytest.fixture
def free_times(ask):
    def free_times(**fields):
        response = ask(**fields)
        assert response.status_code == 200, response.content
        [answered] = response.json()["Rooms"]
        return answered["FreeTimes"]

    return free_times


def test_free_times_of_a_room_leave_out_what_is_taken(ask, room):
    make_booking(room=room)  # 9 to 12
    ClosureFactory(center=room.center, starts_at=START + 5 * HOUR, ends_at=START + 6 * HOUR)

    assert ask().json() == {
        "Success": True,
        "Rooms": [{"RoomId": room.pk, "FreeTimes": free((8, 9), (12, 14), (15, 18))}],
    }


def test_free_times_as_csv_have_one_row_for_each(client, token, room):
    other = MeetingRoomFactory(center=room.center, is_blocked=True)
    make_booking(room=room)
    body = {"Token": token, "RoomIds.0": other.pk, "RoomIds.1": room.pk, **DAY}

    assert table(post_csv(client, f"{PATH}.csv", body)) == [
        ["Success", "Rooms.RoomId", "Rooms.FreeTimes.Start", "Rooms.FreeTimes.End"],
        ["true", str(other.pk), "", ""],
        ["true", str(room.pk), local(8), local(9)],
        ["true", str(room.pk), local(12), local(18)],
    ]


def test_free_times_are_wrapped_for_jsonp(ask, room):
    wrapped = jsonp(ask(path=f"{PATH}?callback=cb"), "cb")
    assert wrapped["Rooms"] == [{"RoomId": room.pk, "FreeTimes": free((8, 18))}]


def test_rooms_of_a_center_are_listed_as_a_search_lists_them(ask, room):
    center = room.center
    last = MeetingRoomFactory(center=center, name="Zebra", rate=None)
    MeetingRoomFactory(center=center, name="Hidden", is_active=False)
    first = MeetingRoomFactory(center=center, name="Aspen")

    response = ask(RoomIds=None, CenterId=center.pk).json()

    assert [each["RoomId"] for each in response["Rooms"]] == [first.pk, room.pk, last.pk]
    assert all(each["FreeTimes"] == free((8, 18)) for each in response["Rooms"])


def test_free_times_of_a_center_without_rooms_are_an_empty_list(ask):
    response = ask(RoomIds=None, CenterId=CenterFactory().pk)
    assert response.json() == {"Success": True, "Rooms": []}


def test_duration_keeps_only_free_times_that_hold_it(free_times, room):
    make_booking(room=room)
    assert free_times(DurationMinutes=90) == free((12, 18))


@pytest.mark.parametrize("minutes", [15, 100, 20161])
def test_duration_that_the_room_does_not_allow_has_no_free_time(free_times, minutes):
    assert free_times(DurationMinutes=minutes) == []


def test_own_drafts_do_not_take_free_time_but_those_of_others_do(free_times, ada, room):
    make_draft(ada, room)
    assert free_times() == free((8, 18))
    make_draft(room=room, start=START + 4 * HOUR, hours=1)
    assert free_times() == free((8, 13), (14, 18))


def test_free_times_are_clipped_to_the_period_and_the_grid(free_times):
    times = {"From": "2027-03-03T08:50:00", "To": "2027-03-03T17:05:00Z"}
    assert free_times(**times) == [{"Start": local(9), "End": local(10)}]


def test_free_times_begin_now_and_end_with_the_booking_window(free_times, room):
    MeetingRoom.objects.filter(pk=room.pk).update(booking_window_days=1)
    found = free_times(From="2027-02-20", To="2027-03-20")
    assert found == [
        {"Start": "2027-03-01T09:00:00-07:00", "End": "2027-03-01T18:00:00-07:00"},
        {"Start": "2027-03-02T08:00:00-07:00", "End": "2027-03-02T18:00:00-07:00"},
    ]


def test_period_of_a_month_with_a_clock_change_is_accepted(ask):
    assert ask(From="2027-10-15", To="2027-11-15").status_code == 200
    response = ask(From="2027-10-15", To="2027-11-15T00:15:00")
    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == "To: At most 31 days after From."


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"RoomIds": None}, "CenterId: Either CenterId or RoomIds is required."),
        ({"CenterId": 1}, "CenterId: Either CenterId or RoomIds is required."),
        ({"RoomIds": []}, "RoomIds: At least one room is required."),
        ({"RoomIds": [7, 7]}, "RoomIds: Each room can be listed once."),
        ({"RoomIds": list(range(1, 52))}, "RoomIds: Must have at most 50 elements."),
        ({"From": None}, "From: Required."),
        ({"To": "2027-03-03"}, "To: To must be after From."),
        ({"DurationMinutes": 0}, "DurationMinutes: Must be at least 1."),
    ],
)
def test_wrong_fields_are_refused_by_name(ask, fields, message):
    response = ask(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Details"].startswith(message)


def test_unknown_or_inactive_room_or_center_is_not_found(ask, room):
    assert ask(RoomIds=[room.pk, 987654]).status_code == 404
    assert ask(RoomIds=None, CenterId=987654).status_code == 404
    MeetingRoom.objects.filter(pk=room.pk).update(is_active=False)
    assert ask().status_code == 404
    room.center.is_active = False
    room.center.save()
    assert ask(RoomIds=None, CenterId=room.center_id).status_code == 404


def test_days_that_are_open_round_the_clock_touch_at_midnight(free_times, room):
    room.center.opening_hours.update(opens=dt.time(0), closes=dt.time(0))
    found = free_times(To="2027-03-05")
    assert [each["End"] for each in found] == [
        "2027-03-04T00:00:00-07:00",
        "2027-03-05T00:00:00-07:00",
    ]
    room.center.is_after_hours_support_enabled = True
    room.center.save()
    [merged] = free_times(To="2027-03-05")
    assert merged == {"Start": "2027-03-03T00:00:00-07:00", "End": "2027-03-05T00:00:00-07:00"}


def test_center_with_too_many_rooms_for_the_days_is_refused(ask, room):
    MeetingRoom.objects.bulk_create(
        MeetingRoom(
            center=room.center, resource_type=room.resource_type, name=f"Desk {number}", capacity=1
        )
        for number in range(MAX_ROOM_DAYS // 31)
    )
    whole = {"RoomIds": None, "CenterId": room.center_id, "From": "2027-03-01"}

    refused = ask(**whole, To="2027-04-01")

    assert refused.status_code == 400
    assert refused.json()["Error"]["Details"] == (
        "CenterId: The center has too many rooms for so many days. Ask for fewer days, or for some"
        " of its rooms by RoomIds."
    )
    assert len(ask(**whole, To="2027-03-03").json()["Rooms"]) == MAX_ROOM_DAYS // 31 + 1
