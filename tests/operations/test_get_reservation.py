"""POST /api/account/reservation"""

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reservations.booking.drafts import apply_promo_code
from reservations.models.status import Status
from tests.factories_centers import FavoriteFactory, ServiceFactory, ServiceTypeFactory
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/account/reservation"


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com")


@pytest.fixture
def read(client, token):
    return lambda pk: post(client, PATH, {"Token": token, "Id": pk})


@pytest.fixture
def rich(ada):
    """A draft of five hours with coffee, two allowances (one in use), a promo code, a fee, tax."""
    room = make_room(capacity=8, provider="Glenarm Ltd")
    center = room.center
    center.tax_rate = Decimal(10)
    center.save()
    room.rate.setup_fee = Decimal(20)
    room.rate.save()
    FavoriteFactory(user=ada, center=center)
    catering = ServiceTypeFactory(name="Catering")
    coffee = ServiceFactory(
        center=center, name="Coffee", resource_type=catering, needs_quantity=True, position=1
    )
    ServiceFactory(
        center=center, name="Projector", resource_type=catering, needs_duration=True, position=2
    )
    MonthlyAllowanceFactory(user=ada, description="Plan", hours=2)
    AllowanceFactory(user=ada, description="Gift", hours=4, is_automatic=False)
    reservation = make_draft(
        ada,
        room,
        hours=5,
        service_options=[{"service_id": coffee.pk, "quantity": 3}],
        number_of_attendees=4,
        attendees=[{"name": "Grace", "email_address": "grace@example.com", "company_name": "Navy"}],
    )
    PromoCodeFactory(code="TEN")
    return apply_promo_code(reservation.pk, "ten", user=ada, now=NOW)


def service_info(pk, name, *, duration=False, quantity=False):
    return {
        "Id": pk,
        "Name": name,
        "Rate": {
            "IsFlatRate": True,
            "FlatRate": 15,
            "BillInBlocks": False,
            "Description": "$15.00 flat",
        },
        "RateDescription": "$15.00 flat",
        "BillAtCenter": False,
        "MinimumBooking": 0,
        "NeedsDuration": duration,
        "NeedsQuantity": quantity,
    }


def body_of(reservation):
    """The expected response for `rich`."""
    room = reservation.room
    coffee, projector = room.center.services.order_by("position")
    plan, gift = reservation.user.allowances.order_by("pk")
    creator, grace = reservation.attendees.order_by("pk")
    brief = {
        "Id": reservation.pk,
        "Start": "2027-03-03T09:00:00-07:00",
        "End": "2027-03-03T14:00:00-07:00",
    }
    room_info = {
        "Id": room.pk,
        "Name": "Boardroom",
        "AvailableServices": [
            service_info(coffee.pk, "Coffee", quantity=True),
            service_info(projector.pk, "Projector", duration=True),
        ],
        "Rate": {
            "IsFlatRate": False,
            "Hourly": 25,
            "HalfDay": 90,
            "FullDay": 160,
            "SetupFee": 20,
            "BillInBlocks": False,
            "Description": "$25.00/hour, $90.00/half day, $160.00/day; set-up $20.00",
        },
        "LowestRate": "$25.00/hour",
        "Capacity": 8,
        "IsLiveInventory": True,
        "Provider": "Glenarm Ltd",
    }
    return {
        **brief,
        "Center": {
            "Id": room.center_id,
            "Name": "Glenarm",
            "Address": {
                "Street1": "1600 Glenarm Place",
                "City": "Denver",
                "State": "CO",
                "PostalCode": "80202",
                "Country": "US",
                "Latitude": 39.7433,
                "Longitude": -104.9903,
                "TimeZoneId": "America/Denver",
                "HasStreet2": False,
                "CityStatePostalCode": "Denver, CO 80202",
            },
            "CenterHours": [
                {"Value": "Mo-Su 08:00-18:00", "DisplayValue": "Mon-Sun 8:00 AM - 6:00 PM"}
            ],
            "CenterHoursConcatenated": "Mon-Sun 8:00 AM - 6:00 PM",
            "LowestRate": "$25.00/hour",
            "IsFavorite": True,
            "IsLiveInventory": True,
            "IsAfterHoursSupportEnabled": False,
            "IsNotFavorite": False,
            "MeetingRooms": [room_info],
            "Landmarks": [],
            "Images": [],
            "IsNewLocation": False,
            "IsNewLowPrice": False,
        },
        "MeetingRoom": room_info,
        "Services": [
            {
                "ServiceId": coffee.pk,
                "ServiceName": "Coffee",
                "Selected": True,
                "NeedsDuration": False,
                "NeedsQuantity": True,
                "Quantity": 3,
            },
            {
                "ServiceId": projector.pk,
                "ServiceName": "Projector",
                "Selected": False,
                "NeedsDuration": True,
                "NeedsQuantity": False,
            },
        ],
        "Attendees": [
            {
                "Id": creator.pk,
                "Name": "Ada Lovelace",
                "EmailAddress": "ada@example.com",
                "IsCreator": True,
            },
            {
                "Id": grace.pk,
                "Name": "Grace",
                "EmailAddress": "grace@example.com",
                "CompanyName": "Navy",
                "IsCreator": False,
            },
        ],
        "TotalCost": 132.66,
        "LineItems": [
            {
                "Amount": "$115.00",
                "Description": "Boardroom, 5 hours: half day + 1 hour",
                "Total": 115,
                "Type": "Room",
                "Rate": "$90.00/half day + $25.00/hour",
            },
            {
                "Amount": "$20.00",
                "Description": "Boardroom, set-up",
                "Total": 20,
                "Type": "SetupFee",
            },
            {
                "Amount": "$45.00",
                "Description": "Coffee, 3 pieces",
                "Total": 45,
                "Type": "Service",
                "Rate": "$15.00 flat",
                "ServiceId": coffee.pk,
            },
            {
                "Amount": "-$46.00",
                "Description": "Plan, 2 hours",
                "Total": -46,
                "Type": "Allowance",
                "AllowanceId": plan.pk,
            },
            {
                "Amount": "-$13.40",
                "Description": "Promo code TEN, 10% off",
                "Total": -13.4,
                "Type": "Promotion",
            },
            {"Amount": "$12.06", "Description": "Tax, 10%", "Total": 12.06, "Type": "Tax"},
        ],
        "NumberOfAttendees": 4,
        "Allowances": [
            {
                "Reservation": {**brief, "Status": "New"},
                "Allowance": {"Description": "Plan", "Id": plan.pk},
                "NumberOfHours": 2,
                "DiscountApplied": 46,
                "InUse": True,
            }
        ],
        "CanApplyAllowances": True,
        "UsableAllowances": [
            {
                "Reservation": {**brief, "Status": "New"},
                "Allowance": {"Description": "Gift", "Id": gift.pk},
                "NumberOfHours": 4,
                "DiscountApplied": 92,
                "InUse": False,
            }
        ],
        "RoomCost": 115,
        "Promotion": "TEN",
        "Status": "New",
    }


def test_response_has_the_whole_reservation(read, rich):
    response = read(rich.pk)

    assert response.status_code == 200
    assert response.json() == {"Success": True, "Reservation": body_of(rich)}
    # In the order of the contract.
    assert list(response.json()) == ["Success", "Reservation"]
    assert list(response.json()["Reservation"]) == list(body_of(rich))


def test_request_and_response_can_be_csv(client, token, rich):
    header, row = table(post_csv(client, PATH + ".csv", {"Token": token, "Id": rich.pk}))

    cells = dict(zip(header, row, strict=True))
    assert cells["Success"] == "true"
    assert cells["Reservation.Start"] == "2027-03-03T09:00:00-07:00"
    assert cells["Reservation.Center.MeetingRooms.0.AvailableServices.1.Name"] == "Projector"
    assert cells["Reservation.Services.0.Quantity"] == "3"
    assert cells["Reservation.LineItems.3.Type"] == "Allowance"
    # Text that a spreadsheet would execute gets an apostrophe prefix; a number does not.
    assert cells["Reservation.LineItems.3.Amount"] == "'-$46.00"
    assert cells["Reservation.LineItems.3.Total"] == "-46.0"
    assert cells["Reservation.TotalCost"] == "132.66"
    assert cells["Reservation.UsableAllowances.0.Reservation.Status"] == "New"


def test_response_can_be_jsonp(client, token, rich):
    body = {"Token": token, "Id": rich.pk}
    wrapped = jsonp(post(client, f"{PATH}?callback=app.show", body), "app.show")
    assert wrapped == {"Success": True, "Reservation": body_of(rich)}


def test_line_items_add_up_to_the_total(read, rich):
    shown = read(rich.pk).json()["Reservation"]
    total = sum(Decimal(str(line["Total"])) for line in shown["LineItems"])
    assert total == Decimal(str(shown["TotalCost"]))


@pytest.mark.parametrize("status", list(Status))
def test_any_status_is_shown_and_only_new_accepts_allowances(read, ada, status):
    AllowanceFactory(user=ada)
    row = ReservationFactory(user=ada, status=status)
    shown = read(row.pk).json()["Reservation"]
    assert shown["Status"] == status
    assert shown["CanApplyAllowances"] == (status == Status.NEW)
    assert [each["NumberOfHours"] for each in shown["UsableAllowances"]] == [0]


def test_allowance_without_hours_left_is_not_usable(read, ada):
    AllowanceFactory(user=ada, hours=3)
    reservation = make_booking(ada)
    shown = read(reservation.pk).json()["Reservation"]
    assert [each["NumberOfHours"] for each in shown["Allowances"]] == [3]
    assert shown["UsableAllowances"] == []
    assert shown["CanApplyAllowances"] is False


def test_times_are_local_times_of_the_center(read, ada):
    reservation = make_draft(
        ada, make_room(time_zone_id="Asia/Kolkata"), start=NOW.replace(hour=4, day=3)
    )
    shown = read(reservation.pk).json()["Reservation"]
    assert (shown["Start"], shown["End"]) == (
        "2027-03-03T09:30:00+05:30",
        "2027-03-03T12:30:00+05:30",
    )


def test_inactive_room_is_still_shown(read, ada):
    reservation = make_draft(ada)
    reservation.room.is_active = False
    reservation.room.save()
    shown = read(reservation.pk).json()["Reservation"]
    assert shown["MeetingRoom"]["Name"] == "Boardroom"
    assert shown["Center"]["MeetingRooms"] == []


def test_reservation_of_another_account_is_not_found(read, token):
    strangers = make_draft()

    answers = [read(pk) for pk in (strangers.pk, 2**31 - 1)]

    assert [each.status_code for each in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert answers[0].json() == {
        "Success": False,
        "Error": {"Summary": "NotFound", "Message": "Not found."},
    }


def test_staff_user_has_the_access_of_a_customer(client):
    staff = UserFactory(is_staff=True, is_superuser=True)
    body = {"Token": issue_token(staff), "Id": make_draft().pk}
    assert post(client, PATH, body).status_code == 404


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({}, "Id: Required."),
        ({"Id": None}, "Id: Required."),
        ({"Id": "1"}, "Id: Must be a whole number."),
        ({"Id": True}, "Id: Must be a whole number."),
        ({"Id": 1.5}, "Id: Must be a whole number."),
        ({"Id": 0}, "Id: Must be at least 1."),
        ({"Id": 2**31}, f"Id: Must be at most {2**31 - 1}."),
        ({"Id": [1]}, "Id: Must be a whole number."),
    ],
)
def test_invalid_request_names_the_wrong_fields(client, token, fields, details):
    response = post(client, PATH, {"Token": token, **fields})
    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"] == details


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"Id": 1}).status_code == 401


def test_query_count_is_independent_of_content(read, ada, django_assert_num_queries):
    AllowanceFactory(user=ada, is_automatic=False)
    service = ServiceFactory(center=make_room().center)
    alone = make_draft(
        ada, service.center.rooms.get(), service_options=[{"service_id": service.pk}]
    )
    with CaptureQueriesContext(connection) as one:
        read(alone.pk)

    room = make_room()
    for _ in range(20):
        ServiceFactory(center=room.center)
        AllowanceFactory(user=ada, hours=1, is_automatic=False)
    many = make_draft(
        ada,
        room,
        service_options=[{"service_id": each.pk} for each in room.center.services.all()],
        attendees=[{"name": f"Guest {n}"} for n in range(7)],
    )
    with django_assert_num_queries(len(one)):
        shown = read(many.pk).json()["Reservation"]
    assert len(shown["Services"]) == 20
    assert len(shown["UsableAllowances"]) == 21
