"""POST /api/meeting-rooms/check-availability"""

import pytest

from centers.models import MeetingRoom
from reservations.models import Reservation
from tests.factories_centers import CenterFactory, ClosureFactory, MeetingRoomFactory
from tests.factories_people import issue_token
from tests.factories_reservations import HOUR, NOW, START, make_booking, make_draft
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/meeting-rooms/check-availability"
# Local times of the center.
NINE_TO_TWELVE = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T12:00:00"}


@pytest.fixture
def ask(client, ada, room):
    token = issue_token(ada)

    def ask(**fields):
        body = {"Token": token, "RoomId": room.pk, **NINE_TO_TWELVE, **fields}
        return post(client, PATH, body)

    return ask


@pytest.fixture
def is_available(ask):
    def is_available(**fields):
        response = ask(**fields)
        assert response.status_code == 200, response.content
        return response.json()["IsAvailable"]

    return is_available


def test_check_returns_whether_the_room_is_available(ask, room):
    response = ask(CenterId=room.center_id)
    assert response.status_code == 200
    assert response.json() == {"Success": True, "IsAvailable": True}

    make_booking(room=room)
    assert ask().json() == {"Success": True, "IsAvailable": False}


def test_check_accepts_and_returns_csv_and_jsonp(client, ada, room):
    body = {"Token": issue_token(ada), "RoomId": room.pk, **NINE_TO_TWELVE}

    assert table(post_csv(client, f"{PATH}.csv", body)) == [
        ["Success", "IsAvailable"],
        ["true", "true"],
    ]
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", body), "cb")
    assert wrapped == {"Success": True, "IsAvailable": True}


def test_check_changes_nothing(is_available):
    assert is_available()
    assert is_available()
    assert not Reservation.objects.exists()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2027-03-01T08:00:00", "2027-03-01T09:00:00"),  # past
        ("2028-03-01T09:00:00", "2028-03-01T10:00:00"),  # too far ahead
        ("2027-03-03T09:05:00", "2027-03-03T10:00:00"),  # off the grid
        ("2027-03-03T09:00:00", "2027-03-03T09:15:00"),  # too short
        ("2027-03-03T09:00:00", "2027-03-20T09:00:00"),  # too long
        ("2027-03-03T17:00:00", "2027-03-03T19:00:00"),  # closed
    ],
)
def test_unbookable_time_is_unavailable_without_error(is_available, start, end):
    assert is_available(StartDate=start, EndDate=end) is False


@pytest.mark.parametrize("fields", [{"is_active": False}, {"is_blocked": True}])
def test_inactive_or_blocked_room_is_unavailable(is_available, room, fields):
    MeetingRoom.objects.filter(pk=room.pk).update(**fields)
    assert is_available() is False


def test_room_of_closed_or_inactive_center_is_unavailable(is_available, room):
    closure = ClosureFactory(center=room.center, starts_at=START - HOUR, ends_at=START + HOUR)
    assert is_available() is False
    closure.delete()
    assert is_available() is True
    room.center.is_active = False
    room.center.save()
    assert is_available() is False


def test_drafts_of_others_conflict_but_own_drafts_do_not(is_available, ada, room):
    make_draft(ada, room)
    assert is_available() is True
    make_draft(room=room, start=START + 3 * HOUR)
    assert is_available(EndDate="2027-03-03T12:15:00") is False


def test_adjacent_booking_does_not_conflict(is_available, room):
    make_booking(room=room, start=START - HOUR, hours=1)
    make_booking(room=room, start=START + 3 * HOUR)
    assert is_available() is True


def test_times_without_offset_are_local_times_of_the_center(is_available, room):
    make_booking(room=room)
    assert is_available(StartDate="2027-03-03T16:00:00Z", EndDate="2027-03-03T17:00:00Z") is False
    assert is_available(StartDate="2027-03-03T12:00:00", EndDate="2027-03-03T20:00:00+00:00")


def test_room_of_another_center_is_not_found(ask):
    elsewhere = MeetingRoomFactory()

    answers = [
        ask(CenterId=CenterFactory().pk),
        ask(CenterId=2**31 - 1),
        ask(RoomId=2**31 - 1),
        ask(RoomId=elsewhere.pk, CenterId=CenterFactory().pk),
    ]

    assert {each.status_code for each in answers} == {404}
    assert len({each.content for each in answers}) == 1
    assert answers[0].json()["Error"] == {
        "Summary": "NotFound",
        "Message": "Not found.",
    }


EXAMPLE = "2027-03-01T09:00:00 or 2027-03-01T09:00:00-07:00"


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"RoomId": None}, "RoomId: Required."),
        ({"RoomId": "7"}, "RoomId: Must be a whole number."),
        ({"CenterId": 0}, "CenterId: Must be at least 1."),
        ({"StartDate": None}, "StartDate: Required."),
        ({"EndDate": None}, "EndDate: Required."),
        ({"StartDate": "2027-03-03"}, f"StartDate: Must be a date and time such as {EXAMPLE}."),
        ({"StartDate": 5}, f"StartDate: Must be a date and time such as {EXAMPLE}."),
        ({"StartDate": "2027-02-30T09:00:00"}, "StartDate: Must be a date and time that exists."),
        ({"StartDate": "2027-03-03T12:00:00"}, "EndDate: The end must be after the start."),
        ({"StartDate": "2027-03-03T13:00:00"}, "EndDate: The end must be after the start."),
        ({"EndDate": "2027-04-04T09:00:00"}, "EndDate: At most 31 days after the start."),
        (
            {"StartDate": "2027-03-14T02:30:00", "EndDate": "2027-03-14T04:00:00"},
            "StartDate: The clock skips this time at the center.",
        ),
        (
            {"EndDate": "2027-03-14T02:30:00"},
            "EndDate: The clock skips this time at the center.",
        ),
    ],
)
def test_invalid_request_names_the_wrong_fields(ask, fields, details):
    response = ask(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"] == details


def test_span_of_31_days_is_unavailable_without_error(is_available):
    assert is_available(StartDate="2027-04-03T09:00:00", EndDate="2027-05-04T09:00:00") is False


def test_request_without_token_is_refused(client, room):
    assert post(client, PATH, {"RoomId": room.pk, **NINE_TO_TWELVE}).status_code == 401
