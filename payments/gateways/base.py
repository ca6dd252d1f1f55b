"""The port to whoever moves the money. It speaks of money and cards, never of HTTP.

Everything is asked by a random key that we chose and stored before asking, so every call may be
repeated: the same key gives the same answer and never moves money twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, Literal, Protocol
from uuid import UUID

from django.db import connection

from payments.cards import Card
from roombook.errors import ServiceUnavailable

GatewayState = Literal["authorized", "captured", "declined", "voided", "refunded"]


class GatewayUnavailable(ServiceUnavailable):
    """The gateway did not answer: what it did is unknown until `lookup` tells."""

    default_message = "The payment service cannot be reached right now."


class GatewayRefused(Exception):
    """The gateway will never do what was asked: a person has to look. Not the customer's fault."""


@dataclass(frozen=True, slots=True)
class GatewayPayment:
    """What the gateway says of one payment."""

    state: GatewayState
    reference: str
    amount: Decimal
    captured: Decimal = Decimal(0)
    refunded: Decimal = Decimal(0)
    # What is in our books of each refund, by its key; for settling refunds in doubt.
    refunds: Mapping[UUID, Decimal] | None = None
    brand: str = ""
    last4: str = ""
    # Why it was declined, fit to be read by the customer.
    message: str = ""
    # When reserved money goes back by itself; None where nobody knows, or never.
    authorized_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class GatewayRefund:
    """One refund in the gateway's books; `key` is ours, None where staff made it over there."""

    reference: str
    amount: Decimal
    key: UUID | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class GatewayDispute:
    """A customer who asks their bank for the money back, as the gateway tells it."""

    reference: str
    amount: Decimal
    currency: str
    reason: str
    status: str
    opened_at: datetime
    is_closed: bool
    respond_by: datetime | None = None


class Gateway(Protocol):
    """Every method may raise GatewayUnavailable: then the outcome is unknown, not a failure.

    None may be called with a transaction open: a slow gateway must not hold rows or connections.
    """

    name: ClassVar[str]
    # Whether real money moves; what IsLive of a booking is made of.
    is_live: bool

    def store_card(self, card: Card, *, customer: str) -> str:
        """Keep a card for later and return its reference. Raises CardDeclined."""

    def delete_card(self, reference: str) -> None:
        """Delete a kept card; one that is not there is no error."""

    def check_card(self, source: Card | str) -> None:
        """Judge a card without keeping or charging anything. Raises CardDeclined."""

    def authorize(
        self, *, key: UUID, amount: Decimal, currency: str, source: Card | str, description: str
    ) -> GatewayPayment:
        """Reserve money on a card: authorized or declined; voided when the key was fenced off."""

    def find_payment(self, key: UUID) -> GatewayPayment | None:
        """What became of a key; None when the gateway never heard of it."""

    def void(self, key: UUID) -> GatewayPayment:
        """Let go of reserved money. An unknown key is fenced off: authorizing it later is voided.

        A payment that can no longer be voided (captured, declined) is returned as it is.
        """

    def capture(self, key: UUID) -> GatewayPayment:
        """Take the reserved money. What cannot be captured (voided, ...) is returned as it is."""

    def refund(self, *, key: UUID, refund_key: UUID, amount: Decimal) -> GatewayPayment:
        """Give money back, once a `refund_key`. Raises GatewayRefused beyond what was taken."""


def require_no_open_transaction() -> None:
    """Raise when a transaction is open; the one that a test case wraps itself in is none."""
    blocks = connection.atomic_blocks
    if blocks and not getattr(blocks[-1], "_from_testcase", False):
        raise RuntimeError("A gateway is never asked while a transaction is open.")
