"""The interface of payment gateways. It knows payments and cards, and no HTTP.

Every payment has a random key that we create and store before the first call, so every call may be
repeated: the same key gives the same answer and never moves money twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, Literal, Protocol
from uuid import UUID

from django.db import transaction

from payments.cards import Card, CardBrand
from roombook.errors import ServiceUnavailable

GatewayState = Literal[
    "action_required", "authorized", "captured", "declined", "voided", "refunded"
]
GatewaySetupState = Literal["open", "succeeded", "failed", "expired"]


class GatewayUnavailable(ServiceUnavailable):
    """The gateway did not answer. The outcome is unknown until `find_payment` returns it."""

    default_message = "The payment service cannot be reached right now."


class GatewayRefused(Exception):
    """The gateway will never do this. Staff have to look at it; the customer is not at fault."""


@dataclass(frozen=True, slots=True)
class GatewayAction:
    """What the customer has to do at their bank: by the gateway's SDK, or at `url`.

    Both values are secrets: they are neither logged nor stored.
    """

    client_secret: str = field(repr=False)
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class GatewayPayment:
    """The state of a payment at the gateway."""

    state: GatewayState
    reference: str
    amount: Decimal
    refunded: Decimal = Decimal(0)
    brand: str = ""
    last4: str = ""
    # Why the card was declined, in words for the customer.
    message: str = ""
    # When the authorization expires; None if it does not, or the gateway does not say.
    authorized_until: datetime | None = None
    currency: str = ""
    description: str = ""
    created_at: datetime | None = None
    # Only if the state is action_required.
    action: GatewayAction | None = None

    @property
    def held(self) -> Decimal:
        """The amount that is authorized, or captured and not refunded."""
        holds_money = self.state in {"authorized", "captured"}
        return self.amount - self.refunded if holds_money else Decimal(0)


@dataclass(frozen=True, slots=True)
class GatewayCard:
    """A card that the gateway has stored, with what may be shown of it."""

    reference: str
    # None if it is none that we accept.
    brand: CardBrand | None
    last4: str
    exp_year: int
    exp_month: int
    # As far as the gateway knows them.
    name: str = ""
    billing_address: Mapping[str, str] = field(default_factory=dict)
    has_cvv: bool = False


@dataclass(frozen=True, slots=True)
class GatewaySetup:
    """The state of a payment setup at the gateway: how it collects a card that we never see.

    `client_secret` and `url` are secrets, and empty once the setup has ended.
    """

    state: GatewaySetupState
    reference: str
    customer: str = ""
    client_secret: str = field(default="", repr=False)
    url: str = field(default="", repr=False)
    # The card, if the setup succeeded.
    card: GatewayCard | None = None
    # Why the setup, or the last card that was tried, failed, in words for the customer.
    message: str = ""
    # The gateway's names of the latest attempts that were refused, so that each counts once.
    refused_attempts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayRefund:
    """A refund at the gateway. `key` is None if staff created it in the gateway's dashboard."""

    reference: str
    amount: Decimal
    key: UUID | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class GatewayFees:
    """What the gateway charges for a payment and for its refunds.

    None, and a refund that is missing: the gateway does not know it yet.
    """

    payment: Decimal | None = None
    refunds: Sequence[tuple[GatewayRefund, Decimal]] = ()


@dataclass(frozen=True, slots=True)
class GatewayDispute:
    """A dispute at the gateway: a customer contests a payment at their bank."""

    reference: str
    amount: Decimal
    currency: str
    reason: str
    status: str
    opened_at: datetime
    is_closed: bool
    respond_by: datetime | None = None
    # None if no money was withdrawn.
    fee: Decimal | None = None


class Gateway(Protocol):
    """What a gateway must do.

    Every method may raise GatewayUnavailable: the outcome is then unknown, which is no failure.
    None may be called inside a transaction: a slow gateway must not hold locks or connections.
    """

    name: ClassVar[str]
    # Whether the gateway moves real money. IsLive of a reservation shows it.
    is_live: bool
    # With which apps start the gateway's SDK. It is no secret.
    publishable_key: str

    def store_card(self, card: Card, *, customer: str) -> str:
        """Store a card and return its reference. Raises CardDeclined."""

    def delete_card(self, reference: str) -> None:
        """Delete a stored card. Does nothing if it is not there."""

    def delete_customer(self, customer: str) -> None:
        """Delete everything that is stored of an account, except payments. Can be repeated."""

    def check_card(self, source: Card | str, *, on_session: bool = False) -> None:
        """Validate a card without storing or charging it, as `authorize`. Raises CardDeclined."""

    def create_setup(
        self, *, key: UUID, customer: str, return_url: str, expires_at: datetime
    ) -> GatewaySetup:
        """Let the customer enter a card at the gateway, which stores it.

        `return_url` is where the gateway's page leads back to; empty if there is none.
        """

    def find_setup(self, reference: str) -> GatewaySetup:
        """The present state of a setup; expired if the gateway does not know it."""

    def cancel_setup(self, reference: str) -> GatewaySetup:
        """End a setup, and all ways to enter a card for it. One that has succeeded stays so."""

    def authorize(
        self,
        *,
        key: UUID,
        amount: Decimal,
        currency: str,
        source: Card | str,
        description: str,
        on_session: bool = False,
    ) -> GatewayPayment:
        """Authorize an amount: authorized or declined, or voided if the key was voided before.

        With `on_session`, the customer is present: the payment is action_required if the bank wants
        a confirmation. Without it, the payment is declined then.
        """

    def find_payment(self, key: UUID) -> GatewayPayment | None:
        """The payment with this key, None if the gateway does not know the key."""

    def void(self, key: UUID) -> GatewayPayment:
        """Void an authorization, or a payment that is action_required.

        An unknown key becomes voided, so it can never be authorized.

        A payment that can no longer be voided (captured, declined) is returned unchanged.
        """

    def capture(self, key: UUID) -> GatewayPayment:
        """Capture an authorization. A payment that cannot be captured is returned unchanged."""

    def refund(self, *, key: UUID, refund_key: UUID, amount: Decimal) -> None:
        """Refund an amount once per `refund_key`.

        Raises GatewayRefused if the amount exceeds what is left of the captured amount.
        """

    def list_refunds(self, key: UUID) -> list[GatewayRefund]:
        """All refunds of a payment, those made in the gateway's dashboard included."""

    def fetch_fees(self, key: UUID) -> GatewayFees:
        """What the gateway charges for a captured payment and its refunds, as far as it knows."""

    def list_payments(self, since: datetime) -> Iterator[tuple[UUID, GatewayPayment]]:
        """The payments with our keys that were created `since`, and hold or held money, or wait for
        their customer to confirm them.

        Afterwards the other methods know these keys, even if a restored backup lacks them.
        """

    def list_recent_refunds(self, since: datetime) -> list[tuple[UUID, GatewayRefund]]:
        """The refunds that were created `since`, in any way, with the keys of their payments."""


def require_no_open_transaction() -> None:
    """Raise if a transaction is open. The one around a test case does not count."""
    with transaction.atomic(durable=True, savepoint=False):
        pass
