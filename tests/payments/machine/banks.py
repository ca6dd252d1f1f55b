"""What customers and their banks do at a gateway, and what money has moved there."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol
from uuid import UUID

from payments import gateway_events, gateways
from payments.gateways import sandbox
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, SavedCard
from tests.factories_people import SandboxCardFactory, SavedCardFactory
from tests.payments.machine.world import Customer

# The outcomes of a payment with a card that a setup has saved.
CARDS = {
    "good": "succeeds",
    "asks": "requires_action",
    "asks, then declines": "action_then_declined",
    "declines": "declined_when_charged",
}


@dataclass(frozen=True)
class Money:
    """What the gateway says of one payment."""

    state: str
    captures: int
    amount: Decimal
    refunded: Decimal

    @property
    def kept(self) -> Decimal:
        return self.amount * bool(self.captures) - self.refunded


class Bank(Protocol):
    gateway: type

    def reset(self) -> None:
        """Forget everything at the beginning of an example."""

    def save_card(self, customer: Customer, kind: str) -> None:
        """Save a card as a payment setup does."""

    def confirm(self, key: UUID) -> None: ...

    def refuse(self, key: UUID) -> None: ...

    def get_money(self, key: UUID) -> Money | None: ...

    def get_keys(self) -> set[UUID]:
        """The keys of all payments with money, authorized or captured."""

    def send_event(self, payment: Payment, now: object) -> None:
        """Report a change of the payment, whether there was one or not."""


class SandboxBank:
    gateway = sandbox.SandboxGateway

    def reset(self) -> None:
        """Its tables are rolled back with the others."""

    def save_card(self, customer: Customer, kind: str) -> None:
        SavedCard.objects.filter(user=customer.user).delete()
        stored = SandboxCardFactory(outcome=CARDS[kind], customer=str(customer.user.pk))
        SavedCardFactory(user=customer.user, stored=stored, saved_by_setup=True)

    def confirm(self, key: UUID) -> None:
        if secret := self._get_secret(key):
            sandbox.confirm_payment(secret)

    def refuse(self, key: UUID) -> None:
        if secret := self._get_secret(key):
            sandbox.refuse_payment(secret)

    def _get_secret(self, key: UUID) -> str:
        return SandboxPayment.objects.filter(key=key).values_list("secret", flat=True).first() or ""

    def get_money(self, key: UUID) -> Money | None:
        row = SandboxPayment.objects.filter(key=key).first()
        return Money(row.state, row.captures, row.amount, row.refunded) if row else None

    def get_keys(self) -> set[UUID]:
        rows = SandboxPayment.objects.filter(state__in=["authorized", "captured"])
        return set(rows.values_list("key", flat=True))

    def send_event(self, payment: Payment, now: object) -> None:
        assert gateways.get_current_gateway().name == "sandbox"
        gateway_events.refresh(payment, now=now)
