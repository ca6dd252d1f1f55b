"""POST /api/reservations/create: the draft"""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.models import Rate
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import HOUR, MINUTE, NOW, START, AllowanceFactory, make_draft
from tests.http import jsonp, post, post_csv, table
from tests.operations.create_reservation.helpers import GRACE, NINE_TO_TWELVE, PATH

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


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


# --- Holds ----------------------------------------------------------------------------------------


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
