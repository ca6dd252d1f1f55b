"""POST /api/reservations/create"""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.models import MeetingRoom, Rate
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import ClosureFactory, ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    make_draft,
    make_room,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservations/create"
NINE_TO_TWELVE = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T12:00:00"}
GRACE = {"Name": "Grace", "EmailAddress": "grace@example.com", "CompanyName": "Navy"}


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com", company_name="Engines Ltd")


@pytest.fixture
def room():
    return make_room()


@pytest.fixture
def create(client, token, room):
    def create(**fields):
        body = {"Token": token, "MeetingRoomId": room.pk, **NINE_TO_TWELVE, **fields}
        return post(client, PATH, body)

    return create


@pytest.fixture
def created(create):
    def created(**fields):
        response = create(**fields)
        assert response.status_code == 200, response.content
        return response.json()["Reservation"]

    return created


def test_create_returns_the_whole_draft(client, create, token, ada, room):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)

    response = create(ServiceOptions=[{"ServiceId": coffee.pk, "Quantity": 2}], Attendees=[GRACE])

    assert response.status_code == 200
    reservation = Reservation.objects.get()
    read = post(client, "/api/account/reservation", {"Token": token, "Id": reservation.pk})
    assert response.json() == {"Success": True, "Reservation": read.json()["Reservation"]}
    shown = response.json()["Reservation"]
    creator, grace = reservation.attendees.order_by("pk")
    # The other fields are those of the room and the center (see test_get_reservation.py).
    assert {
        **shown,
        "Center": shown["Center"]["Id"],
        "MeetingRoom": shown["MeetingRoom"]["Id"],
    } == {
        "Id": reservation.pk,
        "Start": "2027-03-03T09:00:00-07:00",
        "End": "2027-03-03T12:00:00-07:00",
        "Center": room.center_id,
        "MeetingRoom": room.pk,
        "Services": [
            {
                "ServiceId": coffee.pk,
                "ServiceName": "Coffee",
                "Selected": True,
                "NeedsDuration": False,
                "NeedsQuantity": True,
                "Quantity": 2,
            }
        ],
        "Attendees": [
            {
                "Id": creator.pk,
                "Name": "Ada Lovelace",
                "EmailAddress": "ada@example.com",
                "CompanyName": "Engines Ltd",
                "IsCreator": True,
            },
            {"Id": grace.pk, **GRACE, "IsCreator": False},
        ],
        "TotalCost": 105,
        "LineItems": [
            {
                "Amount": "$75.00",
                "Description": "Boardroom, 3 hours",
                "Total": 75,
                "Type": "Room",
                "Rate": "$25.00/hour",
            },
            {
                "Amount": "$30.00",
                "Description": "Coffee, 2 pieces",
                "Total": 30,
                "Type": "Service",
                "Rate": "$15.00 flat",
                "ServiceId": coffee.pk,
            },
        ],
        "NumberOfAttendees": 2,
        "Allowances": [],
        "CanApplyAllowances": False,
        "UsableAllowances": [],
        "RoomCost": 75,
        "Status": "New",
    }
    assert (reservation.user, reservation.created_by) == (ada, None)
    assert reservation.currency == "USD"


def test_create_accepts_and_returns_csv_and_jsonp(client, token, room):
    row = {
        "Token": token,
        "MeetingRoomId": room.pk,
        **NINE_TO_TWELVE,
        "Attendees.0.Name": "Grace",
        "NumberOfAttendees": "5",
    }
    header, line = table(post_csv(client, f"{PATH}.csv", row))
    cells = dict(zip(header, line, strict=True))
    assert cells["Reservation.NumberOfAttendees"] == "5"
    assert cells["Reservation.Attendees.1.Name"] == "Grace"
    assert cells["Reservation.TotalCost"] == "75.0"

    body = {"Token": token, "MeetingRoomId": room.pk, **NINE_TO_TWELVE}
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", body), "cb")
    assert wrapped["Reservation"]["Status"] == "New"


def test_created_draft_holds_the_room_for_15_minutes(create, room):
    create()
    row = Reservation.objects.get()
    assert (row.holds_slot, row.hold_until) == (True, NOW + 15 * MINUTE)


def test_created_draft_costs_the_same_as_reservation_cost(client, created, token, room):
    Rate.objects.filter(pk=room.rate_id).update(setup_fee="12.34")
    room.center.tax_rate = "8.81"
    room.center.save()
    service = ServiceFactory(center=room.center)
    body = {
        "Token": token,
        "MeetingRoomId": room.pk,
        **NINE_TO_TWELVE,
        "ServiceOptions": [{"ServiceId": service.pk}],
    }
    said = post(client, "/api/reservations/cost", body).json()["Total"]
    assert created(ServiceOptions=[{"ServiceId": service.pk}])["TotalCost"] == said


def test_create_applies_automatic_allowances(created, ada):
    AllowanceFactory(user=ada, hours=2)
    shown = created()
    assert [each["NumberOfHours"] for each in shown["Allowances"]] == [2]
    assert shown["TotalCost"] == 25


def test_times_with_offset_are_independent_of_the_center(created):
    shown = created(StartDate="2027-03-03T17:00:00+01:00", EndDate="2027-03-03T12:00:00-05:00")
    assert (shown["Start"], shown["End"]) == (
        "2027-03-03T09:00:00-07:00",
        "2027-03-03T10:00:00-07:00",
    )


# --- Attendees -----------------------------------------------------------------------------------


def test_caller_is_added_as_first_attendee_if_not_listed(created):
    names = [(each["Name"], each["IsCreator"]) for each in created(Attendees=[GRACE])["Attendees"]]
    assert names == [("Ada Lovelace", True), ("Grace", False)]


def test_caller_listed_by_email_in_any_case_is_not_added_again(created):
    listed = [GRACE, {"Name": "A. L.", "EmailAddress": "ADA@example.com"}]
    attendees = created(Attendees=listed)["Attendees"]
    assert [(each["Name"], each["IsCreator"]) for each in attendees] == [
        ("Grace", False),
        ("A. L.", True),
    ]


def test_submitted_creator_is_ignored(created):
    sent = [{**GRACE, "Id": 7, "IsCreator": True}, {"Name": "Joan", "IsCreator": True}]
    attendees = created(Attendees=sent)["Attendees"]
    assert [each["IsCreator"] for each in attendees] == [True, False, False]


def test_number_of_attendees_is_at_least_the_number_listed(create, created):
    assert created()["NumberOfAttendees"] == 1
    assert created(Attendees=[GRACE])["NumberOfAttendees"] == 2
    assert created(Attendees=[GRACE], NumberOfAttendees=8)["NumberOfAttendees"] == 8
    for number, reason in (
        (1, "Fewer than the attendees listed."),
        (9, "The room holds 8 people."),
    ):
        response = create(Attendees=[GRACE], NumberOfAttendees=number)
        assert response.status_code == 400
        assert response.json()["Error"]["Details"] == f"NumberOfAttendees: {reason}"


# --- Refused, and nothing is made ----------------------------------------------------------------


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


def test_expired_hold_is_released_for_a_new_draft(created, room):
    old = make_draft(room=room, now=NOW - 15 * MINUTE)
    created()
    old.refresh_from_db()
    assert (old.status, old.holds_slot) == (Status.NEW, False)


def test_new_draft_takes_over_the_hold_of_an_own_draft(created, ada, room):
    apart = make_draft(ada, room, start=START + 5 * HOUR, hours=1)
    earlier = make_draft(ada, room, start=START - HOUR, hours=2)
    shown = created()
    for row in (apart, earlier):
        row.refresh_from_db()
        assert row.status == Status.NEW
    assert (earlier.holds_slot, apart.holds_slot) == (False, True)
    assert Reservation.objects.get(pk=shown["Id"]).holds_slot


def test_draft_above_the_limit_releases_the_oldest_hold(created, ada, room, settings):
    settings.HELD_DRAFTS_MAX = 2
    made_by_staff = make_draft(
        ada, room, start=START + 24 * HOUR, created_by=UserFactory(is_staff=True)
    )
    oldest = make_draft(ada, room, start=START + 48 * HOUR)
    older = make_draft(ada, room, start=START + 72 * HOUR, now=NOW + MINUTE)

    created()

    for reservation in (made_by_staff, oldest, older):
        reservation.refresh_from_db()
    assert [made_by_staff.holds_slot, oldest.holds_slot, older.holds_slot] == [True, False, True]
    assert oldest.status == Status.NEW


def test_draft_is_not_held_beyond_its_start(created, time_machine):
    time_machine.move_to(START - 5 * MINUTE, tick=False)

    created()

    assert Reservation.objects.get().hold_until == START


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


def test_query_count_is_independent_of_services(created, room, django_assert_num_queries):
    services = [ServiceFactory(center=room.center) for _ in range(20)]

    def build_body(options, day):
        start = START + day * timedelta(days=1)
        return {
            "ServiceOptions": [{"ServiceId": each.pk} for each in options],
            "StartDate": start.isoformat(),
            "EndDate": (start + HOUR).isoformat(),
        }

    with CaptureQueriesContext(connection) as one:
        created(**build_body(services[:1], 0), Attendees=[GRACE])
    with django_assert_num_queries(len(one)):
        created(**build_body(services, 1), Attendees=[GRACE] * 7)


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"MeetingRoomId": 1, **NINE_TO_TWELVE}).status_code == 401
