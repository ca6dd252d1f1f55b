"""POST /api/reservations/cost"""

from decimal import Decimal

import pytest

from centers.models import Center, MeetingRoom, Rate
from reservations.models import Reservation
from tests.factories_centers import FlatRateFactory, RateFactory, ServiceFactory
from tests.factories_reservations import NOW, AllowanceFactory, make_booking
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservations/cost"
NINE_TO_TWO = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T14:00:00"}


@pytest.fixture
def ask(call, room):
    def ask(*options, path=PATH, **fields):
        services = {"ServiceOptions": list(options)} if options else {}
        return call(path, **{"MeetingRoomId": room.pk, **NINE_TO_TWO, **services, **fields})

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


def test_cost_is_the_room_price_for_the_span_and_stores_nothing(ask):
    response = ask()
    assert response.status_code == 200
    assert response.json() == {"Success": True, "Total": 115}
    assert not Reservation.objects.exists()


def test_cost_is_an_exact_decimal_number(ask, room):
    Rate.objects.filter(pk=room.rate_id).update(hourly="0.10", half_day=None, full_day=None)
    response = ask(EndDate="2027-03-03T12:00:00")
    assert b'"Total":0.3}' in response.content.replace(b" ", b"")


def test_cost_is_the_cheapest_combination_of_each_local_day(total, room):
    for end, expected in (
        ("2027-03-03T12:00:00", 75),
        ("2027-03-03T13:00:00", 90),
        ("2027-03-03T17:00:00", 160),
        ("2027-03-04T12:00:00", 320),  # 15 hours of one day, 12 of the next.
    ):
        assert total(EndDate=end) == expected
    Rate.objects.filter(pk=room.rate_id).update(hourly=0)
    assert total() == 0


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
    # What the app sends of a service beyond its choice is ignored.
    sent = {"ServiceName": "Champagne", "NeedsQuantity": False, "NeedsDuration": True}
    assert total({"ServiceId": coffee.pk, "Quantity": 1, "DurationHours": 9, **sent}) == 130


def test_service_duration_is_billed_in_started_quarters_or_blocks(total, projector):
    for hours, expected in ((None, 165), (0.01, 117.5), (1.26, 130)):
        assert total({"ServiceId": projector.pk, "DurationHours": hours}) == expected
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

    assert refused(send(3.01), 400, "InvalidRequest")["Details"] == (
        "ServiceOptions.0.DurationHours: Must not be longer than the booking."
    )
    assert send(3).status_code == 200


@pytest.mark.parametrize(
    ("fields", "expected"), [({"minimum_booking": 10}, 265), ({"bill_at_center": True}, 115)]
)
def test_service_minimum_is_billed_and_what_the_center_bills_is_not(
    total, coffee, fields, expected
):
    type(coffee).objects.update(**fields)
    assert total({"ServiceId": coffee.pk, "Quantity": 2}) == expected


def test_cost_ignores_allowances_and_availability(total, ada, room):
    AllowanceFactory(user=ada)
    make_booking(room=room)
    assert total() == 115
    assert total(StartDate="2020-03-03T03:07:00", EndDate="2020-03-03T03:08:00") == 6.25
    MeetingRoom.objects.filter(pk=room.pk).update(is_active=False, is_blocked=True)
    assert total() == 115


def test_room_or_service_without_a_rate_returns_409(ask, room, coffee):
    Rate.objects.filter(pk=coffee.rate_id).update(flat_rate=None)
    error = refused(ask({"ServiceId": coffee.pk, "Quantity": 1}), 409, "RateNotConfigured")
    assert error["Message"] == "Coffee has no price yet. Please ask the center."

    MeetingRoom.objects.filter(pk=room.pk).update(rate=None)
    for path in (PATH, "/api/reservations/create"):
        error = refused(ask(path=path), 409, "RateNotConfigured")
        assert error["Message"] == "This room has no price yet. Please ask the center."


def test_invalid_service_options_are_all_named(ask, coffee):
    elsewhere = ServiceFactory()
    once = {"ServiceId": coffee.pk, "Quantity": 1}
    response = ask({"ServiceId": coffee.pk}, once, {"ServiceId": elsewhere.pk})
    assert response.json()["Error"]["Details"].splitlines() == [
        "ServiceOptions.0.Quantity: This service needs a quantity of 1 or more.",
        "ServiceOptions.1.ServiceId: Each service can be chosen once.",
        "ServiceOptions.2.ServiceId: This center does not offer this service.",
    ]
