"""Gateways to test with: the sandbox, and Stripe by its SDK against a stand-in on this machine."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import stripe

from payments.gateways.sandbox_models import SandboxFault, SandboxPayment
from tests.stripe_server import StripeServer


@pytest.fixture
def stripe_server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[StripeServer]:
    """PAYMENT_GATEWAY=stripe with a test key, and somebody who answers."""
    # A proxy of this machine's is none for this machine.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # How long the SDK waits before it repeats a request.
    monkeypatch.setattr(stripe.HTTPClient, "INITIAL_DELAY", 0.01)
    settings.PAYMENT_GATEWAY = "stripe"
    settings.STRIPE_SECRET_KEY = "sk_test_roombook"
    settings.STRIPE_TEST_SECRET_KEY = ""
    settings.STRIPE_WEBHOOK_SECRET = "whsec_roombook"
    with StripeServer() as server:
        settings.STRIPE_API_BASE = server.url
        yield server


class SandboxBooks:
    """What a test looks up and breaks on the other side of the port."""

    def captures(self, key: UUID) -> int:
        return sum(SandboxPayment.objects.filter(key=key).values_list("captures", flat=True))

    def given_back(self, key: UUID) -> Decimal:
        return SandboxPayment.objects.get(key=key).refunded

    def fail(self, operation: str, kind: str) -> None:
        SandboxFault.objects.create(operation=operation, kind=kind, times=1)


PATHS = {
    "store": "attach$",
    "forget": "detach$",
    "check": "POST /v1/payment_intents$",
    "authorize": "confirm$",
    "lookup": "GET /v1/payment_intents",
    "void": "cancel$",
    "capture": "capture$",
    "refund": "POST /v1/refunds",
}
KINDS = {"reset": "reset_after"}


class StripeBooks:
    def __init__(self, server: StripeServer) -> None:
        self.server = server

    def captures(self, key: UUID) -> int:
        mine = [c for c in self.server.charges if c["metadata"].get("roombook_key") == str(key)]
        return sum(charge["captured"] for charge in mine)

    def given_back(self, key: UUID) -> Decimal:
        charge = self.server.test.objects[self.server.intent(key)["latest_charge"]]
        return Decimal(charge["amount_refunded"]) / 100

    def fail(self, operation: str, kind: str) -> None:
        seconds = 0.7 if kind.startswith("timeout") else 0
        self.server.fail(KINDS.get(kind, kind), PATHS[operation], seconds=seconds)


@pytest.fixture(params=["sandbox", "stripe"])
def books(request: pytest.FixtureRequest, db: None) -> Any:
    """The other side of each gateway; the tests that ask for it run for all of them."""
    if request.param == "sandbox":
        return SandboxBooks()
    return StripeBooks(request.getfixturevalue("stripe_server"))
