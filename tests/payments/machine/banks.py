"""What customers and their banks do at a gateway, and what money has moved there."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from payments import gateway_events, gateways, setups
from payments.gateways import sandbox
from payments.gateways.sandbox_models import SandboxCard, SandboxPayment, SandboxSetup
from payments.models import Payment, PaymentSetup, SavedCard
from tests.factories_people import SandboxCardFactory, SavedCardFactory
from tests.payments.gateway_helpers import card
from tests.payments.machine.world import Customer

# The outcomes of a payment with a card that a setup has saved.
CARDS = {
    "good": "succeeds",
    "asks": "requires_action",
    "asks, then declines": "action_then_declined",
    "declines": "declined_when_charged",
}
# The numbers that customers enter for a setup.
NUMBERS = {
    "good": "4242424242424242",
    "asks": "4000002760003184",
    "asks, then declines": "4000008400001629",
    "declines": "4000000000000341",
    "refused": "4000000000000002",
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


class Bank:
    """Those of the sandbox; stripe_bank.py has the same at the stand-in for Stripe."""

    gateway: type = sandbox.SandboxGateway
    # The cards that customers enter for a setup.
    numbers = NUMBERS
    # Whether all that happens at the gateway is written to the database of the service.
    is_in_database = True

    def reset(self) -> None:
        """Forget everything at the beginning of an example, as the database does."""

    def save_card(self, customer: Customer, kind: str) -> None:
        """Save a card as a payment setup does."""
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

    def read_money(self) -> dict[UUID, Money]:
        """What the gateway says of all payments, by their keys."""
        rows = SandboxPayment.objects.values_list("key", "state", "captures", "amount", "refunded")
        return {key: Money(*columns) for key, *columns in rows}

    def send_event(self, payment: Payment, now: dt.datetime) -> None:
        """Report a change of the payment twice, whether there was one or not."""
        # The sandbox has no webhook: this is what one does.
        assert gateways.get_current_gateway().name == "sandbox"
        for _ in range(2):
            gateway_events.refresh(payment, now=now)
            payment.refresh_from_db()

    def repeat_events(self, now: dt.datetime) -> None:
        for payment in Payment.objects.order_by("-pk")[:2]:
            self.send_event(payment, now)

    # --- Payment setups --------------------------------------------------------------------------

    def enter_card(self, setup: PaymentSetup, kind: str) -> None:
        if secret := self._get_setup_secret(setup):
            sandbox.confirm_setup(secret, card(NUMBERS[kind]))

    def refuse_setup(self, setup: PaymentSetup) -> None:
        if secret := self._get_setup_secret(setup):
            sandbox.refuse_setup(secret)

    def _get_setup_secret(self, setup: PaymentSetup) -> str:
        rows = SandboxSetup.objects.filter(key=setup.key)
        return rows.values_list("secret", flat=True).first() or ""

    def send_setup_event(self, setup: PaymentSetup, now: dt.datetime) -> None:
        for _ in range(2):
            setups.resolve_setup(setup, now=now)
            setup.refresh_from_db()

    def get_setup_state(self, setup: PaymentSetup) -> str:
        """The state as GatewaySetup has it, but succeeded even if the card was deleted since."""
        return SandboxSetup.objects.get(key=setup.key).state

    def has_card(self, reference: str) -> bool:
        return SandboxCard.objects.filter(reference=reference).exists()
