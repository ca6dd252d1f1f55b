"""The gateways under test: the sandbox, and Stripe's SDK with a fake Stripe server."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from payments import gateways, lifecycle
from payments.gateways.base import Gateway
from payments.gateways.sandbox_models import SandboxPayment
from reservations.booking import charging
from reservations.models import Reservation
from tests.factories_centers import MeetingRoomFactory
from tests.factories_reservations import DEFAULT_TERMS
from tests.gateway_faults import add_fault
from tests.payments.gateway_helpers import MINUTE, NOW, authorized
from tests.stripe_server import StripeServer


class SandboxProbe:
    """Reads the data of the gateway, and switches on its faults."""

    def count_captures(self, key: UUID) -> int:
        return sum(SandboxPayment.objects.filter(key=key).values_list("captures", flat=True))

    def refunded_amount(self, key: UUID) -> Decimal:
        return SandboxPayment.objects.get(key=key).refunded

    def fail(self, operation: str, kind: str) -> None:
        add_fault(operation=operation, kind=kind, times=1)


PATHS = {
    "store": "attach$",
    "forget": "detach$",
    "check": "POST /v1/payment_intents$",
    "authorize": "confirm$",
    "lookup": "GET /v1/payment_intents/",
    "void": "cancel$",
    "capture": "capture$",
    "refund": "POST /v1/refunds",
}
KINDS = {"reset": "reset_after"}


class StripeProbe:
    def __init__(self, server: StripeServer) -> None:
        self.server = server

    def count_captures(self, key: UUID) -> int:
        charges = [c for c in self.server.charges if c["metadata"].get("roombook_key") == str(key)]
        return sum(charge["captured"] for charge in charges)

    def refunded_amount(self, key: UUID) -> Decimal:
        charge = self.server.test.objects[self.server.intent(key)["latest_charge"]]
        return Decimal(charge["amount_refunded"]) / 100

    def fail(self, operation: str, kind: str) -> None:
        seconds = 0.7 if kind.startswith("timeout") else 0
        self.server.fail(KINDS.get(kind, kind), PATHS[operation], seconds=seconds)


@pytest.fixture(params=["sandbox", "stripe"])
def probe(request: pytest.FixtureRequest, db: None) -> Any:
    """The probe of each gateway. Tests with this fixture run for all gateways."""
    if request.param == "sandbox":
        return SandboxProbe()
    return StripeProbe(request.getfixturevalue("stripe_server"))


@pytest.fixture
def gateway(probe: Any) -> Gateway:
    return gateways.get_current_gateway()


@pytest.fixture
def _short_timeout(settings: Any) -> None:
    settings.GATEWAY_TIMEOUT = 0.5


@pytest.fixture
def reservation(ada):
    return Reservation.objects.create(
        user=ada,
        room=MeetingRoomFactory(),
        start=NOW + timedelta(days=7),
        end=NOW + timedelta(days=7, hours=2),
        currency="USD",
        total_cost=Decimal("50.00"),
        cancellation_terms=DEFAULT_TERMS,
        created_at=NOW,
    )


@pytest.fixture
def start(reservation):
    def start(amount="50.00"):
        return charging.create_payment(
            reservation,
            amount=Decimal(amount),
            center_id=reservation.room.center_id,
            is_by_link=False,
            refusal="",
            now=NOW,
        )

    return start


@pytest.fixture
def captured(start, ada):
    """A captured payment of 50."""
    return lifecycle.capture_payment(authorized(start(), ada), now=NOW + 2 * MINUTE)
