"""The gateways under test: the sandbox, and Stripe's SDK with a fake Stripe server."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import stripe

from payments import gateways
from payments.gateways.base import Gateway
from payments.gateways.sandbox_models import SandboxFault, SandboxPayment
from tests.stripe_server import StripeServer


@pytest.fixture
def stripe_server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[StripeServer]:
    """A fake Stripe server, and PAYMENT_GATEWAY=stripe with a test key."""
    # Requests to this machine must not use a proxy.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # The seconds before the SDK retries a request.
    monkeypatch.setattr(stripe.HTTPClient, "INITIAL_DELAY", 0.01)
    settings.PAYMENT_GATEWAY = "stripe"
    settings.STRIPE_SECRET_KEY = "sk_test_roombook"
    settings.STRIPE_TEST_SECRET_KEY = ""
    settings.STRIPE_PUBLISHABLE_KEY = "pk_test_roombook"
    settings.STRIPE_WEBHOOK_SECRET = "whsec_roombook"
    with StripeServer() as server:
        settings.STRIPE_API_BASE = server.url
        yield server


class SandboxProbe:
    """Reads the data of the gateway, and switches on its faults."""

    def count_captures(self, key: UUID) -> int:
        return sum(SandboxPayment.objects.filter(key=key).values_list("captures", flat=True))

    def refunded_amount(self, key: UUID) -> Decimal:
        return SandboxPayment.objects.get(key=key).refunded

    def fail(self, operation: str, kind: str) -> None:
        SandboxFault.objects.create(operation=operation, kind=kind, times=1)


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
