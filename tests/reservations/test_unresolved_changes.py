"""Changes that are repeated, or followed by others, before their payment is resolved (B27.5)."""

import pytest

from payments.gateways.base import GatewayUnavailable
from payments.gateways.sandbox import SandboxGateway
from roombook.errors import ReservationNotOpen
from tests.factories_centers import ServiceFactory
from tests.factories_reservations import MINUTE, NOW, make_booking, make_room
from tests.reservations.rescheduling_helpers import change, get_money, make_room_at_rate

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]


def test_change_without_an_answer_of_the_gateway_stays_open_until_it_is_known(monkeypatch):
    booking = make_booking(room=make_room_at_rate(make_room(), 25))
    real = SandboxGateway.authorize

    def lose_answer(*args, **kwargs):
        real(*args, **kwargs)
        raise GatewayUnavailable

    monkeypatch.setattr(SandboxGateway, "authorize", lose_answer)
    wanted = {
        "hours": 5,
        "services": [{"service_id": ServiceFactory(center=booking.room.center).pk}],
        "attendees": [{"name": "Grace", "email_address": "grace@example.com"}],
        "total": 140,
    }
    for _ in range(2):
        outcome = change(booking, **wanted)
        assert (outcome.is_applied, outcome.charge, outcome.refund) == (False, 65, 0)
    for other in (
        {"hours": 6, "total": 150},
        {"hours": 2, "total": 50},
        {"number_of_attendees": 4, "total": 75},
        {**wanted, "attendees": []},
    ):
        with pytest.raises(ReservationNotOpen, match="another change is under way"):
            change(booking, **other)

    assert change(booking, **wanted, now=NOW + 2 * MINUTE).is_applied
    assert get_money() == [(75, 0), (65, 0)]
