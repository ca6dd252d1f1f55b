"""POST /api/reservations/cost"""

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.models import Center, MeetingRoom, Rate
from reservations.models import Reservation
from tests.factories_centers import FlatRateFactory, RateFactory, ServiceFactory
from tests.factories_people import issue_token
from tests.factories_reservations import NOW, AllowanceFactory, make_booking
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservations/cost"
NINE_TO_TWO = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T14:00:00"}


@pytest.fixture
def ask(client, ada, room):
    token = issue_token(ada)

    def ask(*options, path=PATH, **fields):
        body = {"Token": token, "MeetingRoomId": room.pk, **NINE_TO_TWO, **fields}
        return post(client, path, body | ({"ServiceOptions": list(options)} if options else {}))

    return ask


@pytest.fixture
def total(ask):
    def total(*options, **fields):
        response = ask(*options, **fields)
        assert response.status_code == 200, response.content
        return response.json()["Total"]

    return total


@pytest.fixture
def coffee(room):
    return ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)


@pytest.fixture
def projector(room):
    rate = RateFactory(center=room.center, hourly=Decimal(10))
    return ServiceFactory(center=room.center, name="Projector", needs_duration=True, rate=rate)


def test_cost_is_the_room_price_for_the_span(ask):
    response = ask()
    assert response.status_code == 200
    assert response.json() == {"Success": True, "Total": 115}


def test_cost_accepts_and_returns_csv_and_jsonp(client, ada, room, coffee, projector):
    row = {
        "Token": issue_token(ada),
        "MeetingRoomId": room.pk,
        **NINE_TO_TWO,
        "ServiceOptions.0.ServiceId": coffee.pk,
        "ServiceOptions.0.Quantity": "2",
        "ServiceOptions.1.ServiceId": projector.pk,
        "ServiceOptions.1.Selected": "FALSE",
    }
    assert table(post_csv(client, f"{PATH}?format=csv", row)) == [
        ["Success", "Total"],
        ["true", "145.0"],
    ]

    body = {"Token": issue_token(ada), "MeetingRoomId": room.pk, **NINE_TO_TWO}
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", body), "cb")
    assert wrapped == {"Success": True, "Total": 115}


def test_cost_is_an_exact_decimal_number(ask, room):
    Rate.objects.filter(pk=room.rate_id).update(hourly="0.10", half_day=None, full_day=None)
    response = ask(EndDate="2027-03-03T12:00:00")
    assert b'"Total":0.3}' in response.content.replace(b" ", b"")


def test_cost_is_the_cheapest_combination_of_each_local_day(total):
    assert total(EndDate="2027-03-03T12:00:00") == 75
    assert total(EndDate="2027-03-03T13:00:00") == 90
    assert total(EndDate="2027-03-03T17:00:00") == 160
    # 15 hours of one day, 12 of the next.
    assert total(EndDate="2027-03-04T12:00:00") == 320


def test_flat_rate_is_charged_once(total, room):
    MeetingRoom.objects.filter(pk=room.pk).update(rate=FlatRateFactory(center=room.center))
    assert total() == 50
    assert total(EndDate="2027-03-10T12:00:00") == 50


def test_setup_fee_and_tax_are_included(total, room):
    Rate.objects.filter(pk=room.rate_id).update(setup_fee=20)
    Center.objects.filter(pk=room.center_id).update(tax_rate="8.25")
    assert total() == 146.14  # 135 + 11.1375


def test_services_are_selected_unless_marked_unselected(total, coffee, projector):
    coffee_3 = {"ServiceId": coffee.pk, "Quantity": 3}
    assert total(coffee_3) == 160
    assert total({**coffee_3, "Selected": True}) == 160
    assert total({**coffee_3, "Selected": False}) == 115
    assert total(coffee_3, {"ServiceId": projector.pk, "DurationHours": 1.5}) == 175


def test_service_duration_defaults_to_the_duration_of_the_booking(total, projector):
    assert total({"ServiceId": projector.pk}) == 165
    assert total({"ServiceId": projector.pk, "DurationHours": None}) == 165


def test_service_duration_is_billed_in_started_quarters(total, projector):
    assert total({"ServiceId": projector.pk, "DurationHours": 0.01}) == 117.5
    assert total({"ServiceId": projector.pk, "DurationHours": 1.26}) == 130
    Rate.objects.filter(pk=projector.rate_id).update(bill_in_blocks=True)
    assert total({"ServiceId": projector.pk, "DurationHours": 0.01}) == 125


@pytest.mark.parametrize("path", [PATH, "/api/reservations/create"])
def test_service_duration_longer_than_the_booking_is_refused(ask, room, projector, path):
    # The clock is put forward that night: from 00:30 to 04:30 local time are three hours.
    times = {"StartDate": "2027-03-14T00:30:00", "EndDate": "2027-03-14T04:30:00"}
    Center.objects.filter(pk=room.center_id).update(is_after_hours_support_enabled=True)

    def send(hours):
        option = {"ServiceId": projector.pk, "DurationHours": hours}
        return ask(option, path=path, **times)

    response = send(3.01)
    assert response.status_code == 400
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "InvalidRequest",
            "Message": "The request is not valid.",
            "Details": "ServiceOptions.0.DurationHours: Must not be longer than the booking.",
        },
    }
    assert send(3).status_code == 200


def test_submitted_name_and_needs_are_ignored(total, coffee):
    sent = {"ServiceName": "Champagne", "NeedsQuantity": False, "NeedsDuration": True}
    assert total({"ServiceId": coffee.pk, "Quantity": 1, "DurationHours": 9, **sent}) == 130


def test_service_minimum_is_billed(total, coffee):
    coffee.minimum_booking = 10
    coffee.save()
    assert total({"ServiceId": coffee.pk, "Quantity": 2}) == 265


def test_service_paid_at_the_center_adds_nothing(total, coffee):
    coffee.bill_at_center = True
    coffee.save()
    assert total({"ServiceId": coffee.pk, "Quantity": 2}) == 115


def test_cost_ignores_allowances_and_availability(total, ada, room):
    AllowanceFactory(user=ada)
    make_booking(room=room)
    assert total() == 115
    assert total(StartDate="2020-03-03T03:07:00", EndDate="2020-03-03T03:08:00") == 6.25
    MeetingRoom.objects.filter(pk=room.pk).update(is_active=False, is_blocked=True)
    assert total() == 115


def test_cost_request_stores_nothing(total):
    total()
    assert not Reservation.objects.exists()


def test_room_or_service_without_a_rate_returns_409(ask, room, coffee):
    Rate.objects.filter(pk=coffee.rate_id).update(flat_rate=None)
    response = ask({"ServiceId": coffee.pk, "Quantity": 1})
    assert response.status_code == 409
    assert response.json()["Error"] == {
        "Summary": "RateNotConfigured",
        "Message": "Coffee has no price yet. Please ask the center.",
    }

    MeetingRoom.objects.filter(pk=room.pk).update(rate=None)
    response = ask()
    assert response.status_code == 409
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "RateNotConfigured",
            "Message": "This room has no price yet. Please ask the center.",
        },
    }


def test_rate_of_zero_is_free(total, room):
    Rate.objects.filter(pk=room.rate_id).update(hourly=0)
    assert total() == 0


def test_unknown_room_is_not_found(ask):
    response = ask(MeetingRoomId=2**31 - 1)
    assert response.status_code == 404
    assert response.json()["Error"]["Summary"] == "NotFound"


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"MeetingRoomId": None}, "MeetingRoomId: Required."),
        ({"StartDate": None}, "StartDate: Required."),
        ({"EndDate": "2027-03-03T09:00:00"}, "EndDate: The end must be after the start."),
        ({"EndDate": "2027-04-30T09:00:00"}, "EndDate: At most 31 days after the start."),
        ({"ServiceOptions": {}}, "ServiceOptions: Must be a list."),
        ({"ServiceOptions": [1]}, "ServiceOptions.0: Must be an object."),
        ({"ServiceOptions": [{}] * 101}, "ServiceOptions: Must have at most 100 elements."),
        ({"ServiceOptions": [{}]}, "ServiceOptions.0.ServiceId: Required."),
        (
            {"ServiceOptions": [{"ServiceId": 2**31 - 1}]},
            "ServiceOptions.0.ServiceId: This center does not offer this service.",
        ),
        (
            {"ServiceOptions": [{"ServiceId": 1, "Quantity": -1}]},
            "ServiceOptions.0.Quantity: Must be at least 0.",
        ),
        (
            {"ServiceOptions": [{"ServiceId": 1, "Quantity": 1001, "Selected": False}]},
            "ServiceOptions.0.Quantity: Must be at most 1000.",
        ),
        (
            {"ServiceOptions": [{"ServiceId": 1, "DurationHours": -1}]},
            "ServiceOptions.0.DurationHours: Must be at least 0.",
        ),
        (
            {"ServiceOptions": [{"ServiceId": 1, "DurationHours": 0.125}]},
            "ServiceOptions.0.DurationHours: Must have at most 2 decimal places.",
        ),
        (
            {"ServiceOptions": [{"ServiceId": 1, "Selected": "yes"}]},
            "ServiceOptions.0.Selected: Must be true or false.",
        ),
    ],
)
def test_invalid_request_names_the_wrong_fields(ask, fields, details):
    response = ask(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"] == details


def test_invalid_service_options_are_all_named(ask, coffee):
    elsewhere = ServiceFactory()
    once = {"ServiceId": coffee.pk, "Quantity": 1}
    response = ask({"ServiceId": coffee.pk}, once, {"ServiceId": elsewhere.pk})
    assert response.json()["Error"]["Details"].splitlines() == [
        "ServiceOptions.0.Quantity: This service needs a quantity of 1 or more.",
        "ServiceOptions.1.ServiceId: Each service can be chosen once.",
        "ServiceOptions.2.ServiceId: This center does not offer this service.",
    ]


def test_query_count_is_independent_of_services(total, room, django_assert_num_queries):
    services = [ServiceFactory(center=room.center) for _ in range(20)]
    with CaptureQueriesContext(connection) as one:
        assert total({"ServiceId": services[0].pk}) == 130
    with django_assert_num_queries(len(one)):
        assert total(*({"ServiceId": each.pk} for each in services)) == 415


def test_request_without_token_is_refused(client, room):
    assert post(client, PATH, {"MeetingRoomId": room.pk, **NINE_TO_TWO}).status_code == 401
