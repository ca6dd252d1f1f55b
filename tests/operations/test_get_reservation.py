"""POST /api/account/reservation"""

from decimal import Decimal

import pytest

from reservations.actions import apply_promo_code
from reservations.status import Status
from tests.factories_centers import FavoriteFactory, ServiceFactory, ServiceTypeFactory
from tests.factories_people import UserFactory, token_of
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    a_room,
    booked,
    draft,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/account/reservation"


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com")


@pytest.fixture
def token(ada):
    return token_of(ada)


@pytest.fixture
def read(client, token):
    return lambda pk: post(client, PATH, {"Token": token, "Id": pk})


@pytest.fixture
def rich(ada):
    """Five hours with coffee, an allowance in use and one beside it, a promo code, a fee, tax."""
    room = a_room(capacity=8, provider="Glenarm Ltd")
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
    reservation = draft(
        ada,
        room,
        hours=5,
        service_options=[{"service_id": coffee.pk, "quantity": 3}],
        number_of_attendees=4,
        attendees=[{"name": "Grace", "email_address": "grace@example.com", "company_name": "Navy"}],
    )
    PromoCodeFactory(code="TEN")
    return apply_promo_code(reservation.pk, "ten", user=ada, now=NOW)


def test_shows_the_whole_reservation(read, rich):
    import json
    response = read(rich.pk)
    print(json.dumps(response.json(), indent=1))
    assert response.status_code == 200
    assert False
