"""POST /api/reservations/cost"""

import pytest

from centers.models import MeetingRoom, Rate
from reservations.models import Reservation
from tests.factories_centers import ServiceFactory
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


def test_cost_is_the_room_price_for_the_span_and_stores_nothing(ask):
    response = ask()
    assert response.status_code == 200
    assert response.json() == {"Success": True, "Total": 115}
    assert not Reservation.objects.exists()


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
