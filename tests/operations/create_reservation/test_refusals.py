"""POST /api/reservations/create: refused, and nothing is created"""

import pytest

from centers.models import MeetingRoom
from reservations.models import Reservation
from tests.factories_centers import ClosureFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import HOUR, MINUTE, NOW, START, make_draft
from tests.http import post
from tests.operations.create_reservation.helpers import GRACE, NINE_TO_TWELVE, PATH

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def refused(response, code="SlotUnavailable", status=409):
    assert response.status_code == status
    assert response.json()["Error"]["Summary"] == code
    return response.json()["Error"]["Message"]


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("2027-03-01T08:00", "2027-03-01T09:00", "That time has passed."),
        ("2028-03-01T09:00", "2028-03-01T10:00", "The room can be booked at most 365 days ahead."),
        ("2027-03-03T09:05", "2027-03-03T10:00", "Bookings begin and end on a 15-minute step."),
        (
            "2027-03-03T09:00",
            "2027-03-03T09:15",
            "The shortest booking of this room is 30 minutes.",
        ),
        ("2027-03-03T17:00", "2027-03-03T19:00", "The center is closed at that time."),
    ],
)
def test_unbookable_time_is_refused_with_the_reason(create, start, end, message):
    assert refused(create(StartDate=start, EndDate=end)) == message
    assert not Reservation.objects.exists()


def test_unavailable_room_is_refused(create, room):
    make_draft(room=room)
    assert refused(create()) == "The room is already taken at that time."
    ClosureFactory(center=room.center, starts_at=START, ends_at=START + HOUR)
    assert refused(create()) == "The room is closed at that time."
    MeetingRoom.objects.filter(pk=room.pk).update(is_blocked=True)
    assert refused(create()) == "The room cannot be booked at the moment."
    assert Reservation.objects.count() == 1


@pytest.mark.parametrize(
    ("minutes", "length"),
    [
        (None, "14 days"),
        (1440, "1 day"),
        (2880, "2 days"),
        (60, "1 hour"),
        (90, "1.5 hours"),
        (1500, "25 hours"),
        (2160, "36 hours"),
    ],
)
def test_longest_booking_is_named_in_whole_days_or_else_in_hours(create, room, minutes, length):
    MeetingRoom.objects.filter(pk=room.pk).update(maximum_minutes=minutes)
    room.center.is_after_hours_support_enabled = True
    room.center.save()
    times = {"StartDate": "2027-03-03T09:00", "EndDate": "2027-03-31T09:00"}

    message = refused(create(**times))

    assert message == f"The longest booking of this room is {length}."


def test_drafts_above_the_hourly_limit_are_refused(create, ada, room, settings, time_machine):
    settings.CREATES_PER_HOUR = 2
    make_draft(ada, room, start=START + 48 * HOUR, created_by=UserFactory(is_staff=True))
    refused(create(MeetingRoomId=2**31 - 1), "NotFound", 404)
    for _ in range(2):
        assert create().status_code == 200

    time_machine.move_to(NOW + 40 * MINUTE, tick=False)
    response = create()

    assert (response.status_code, response.json()) == (
        429,
        {
            "Success": False,
            "Error": {
                "Summary": "TooManyRequests",
                "Message": "Too many attempts. Please wait a little and try again.",
            },
        },
    )
    assert response["Retry-After"] == "1200"
    time_machine.move_to(NOW + HOUR, tick=False)
    assert create().status_code == 200


def test_hourly_limit_of_zero_allows_any_number_of_drafts(create, settings):
    settings.CREATES_PER_HOUR = 0
    for _ in range(61):
        assert create().status_code == 200


def test_hourly_limit_is_sixty_by_default(create):
    for _ in range(60):
        assert create().status_code == 200
    assert create().status_code == 429


def test_refused_draft_keeps_the_hold_of_an_earlier_one(create, ada, room):
    earlier = make_draft(ada, room, hours=1)
    make_draft(room=room, start=START + 2 * HOUR, hours=1)
    refused(create())
    earlier.refresh_from_db()
    assert earlier.holds_slot


def test_room_without_a_rate_cannot_be_booked(create, room):
    MeetingRoom.objects.filter(pk=room.pk).update(rate=None)
    assert "no price" in refused(create(), "RateNotConfigured")
    assert not Reservation.objects.exists()


def test_unknown_room_is_not_found(create):
    refused(create(MeetingRoomId=2**31 - 1), "NotFound", 404)


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"MeetingRoomId": None}, "MeetingRoomId: Required."),
        ({"StartDate": None, "EndDate": None}, "StartDate: Required.\nEndDate: Required."),
        ({"EndDate": "2027-03-03T09:00:00"}, "EndDate: The end must be after the start."),
        ({"EndDate": "2027-04-30T09:00:00"}, "EndDate: At most 31 days after the start."),
        ({"NumberOfAttendees": 0}, "NumberOfAttendees: Must be at least 1."),
        ({"NumberOfAttendees": "4"}, "NumberOfAttendees: Must be a whole number."),
        ({"Attendees": {}}, "Attendees: Must be a list."),
        ({"Attendees": [{}] * 101}, "Attendees: Must have at most 100 elements."),
        (
            {"Attendees": [{"EmailAddress": "x" * 255}]},
            "Attendees.0.EmailAddress: Must have at most 254 characters.",
        ),
        ({"Attendees": [{"Name": 5}]}, "Attendees.0.Name: Must be text."),
        (
            {"Attendees": [GRACE, {"Name": "Joan", "CompanyName": "4242 4242 4242 4242"}]},
            "Attendees.1.CompanyName: This looks like a card number, not a name.",
        ),
        (
            {"Attendees": [{"CompanyName": "Navy"}]},
            "Attendees.0: A name or an e-mail address is needed.",
        ),
        (
            {"Attendees": [{"Name": "Joan", "EmailAddress": "4242424242424242"}]},
            "Attendees.0.EmailAddress: This is not an e-mail address.",
        ),
        (
            {"Attendees": [{"EmailAddress": "ada.4242-4242-4242-4242@example.com"}]},
            "Attendees.0.EmailAddress: This looks like a card number, not an e-mail address.",
        ),
        (
            {"ServiceOptions": [{"ServiceId": 2**31 - 1}]},
            "ServiceOptions.0.ServiceId: This center does not offer this service.",
        ),
    ],
)
def test_invalid_request_names_the_wrong_fields(create, fields, details):
    response = create(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == details
    assert not Reservation.objects.exists()


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"MeetingRoomId": 1, **NINE_TO_TWELVE}).status_code == 401
