"""The payment setups of the sandbox: a page of ours plays the gateway's card form (B21)."""

import secrets
from datetime import datetime
from uuid import UUID, uuid5

from payments.cards import Card, CardBrand
from payments.gateways import declines
from payments.gateways.base import GatewayCard, GatewaySetup
from payments.gateways.sandbox_cards import create_card
from payments.gateways.sandbox_models import SandboxCard, SandboxSetup
from payments.gateways.sandbox_operations import operation
from roombook.errors import CardDeclined

# States in which the customer can still enter a card.
OPEN_STATES = {"open", "failed"}


class SandboxSetupOperations:
    """What the sandbox does with payment setups."""

    @operation
    def create_setup(
        self, *, key: UUID, customer: str, return_url: str, expires_at: datetime
    ) -> GatewaySetup:
        setup, _ = SandboxSetup.objects.get_or_create(
            key=key,
            defaults={
                "reference": f"setup_{key.hex}",
                "secret": secrets.token_hex(32),
                "customer": customer,
                "return_url": return_url,
                "expires_at": expires_at,
            },
        )
        return to_gateway_setup(setup)

    @operation
    def find_setup(self, reference: str) -> GatewaySetup:
        setup = SandboxSetup.objects.filter(reference=reference).first()
        return to_gateway_setup(setup) if setup else GatewaySetup("expired", reference)

    @operation
    def cancel_setup(self, reference: str) -> GatewaySetup:
        setup = SandboxSetup.objects.select_for_update().filter(reference=reference).first()
        if setup is None:
            return GatewaySetup("expired", reference)
        if setup.state in OPEN_STATES:
            setup.state = "expired"
            setup.save(update_fields=["state"])
        return to_gateway_setup(setup)


@operation
def confirm_setup(secret: str, card: Card) -> GatewaySetup:
    """Store the card that the customer entered. Does nothing if the setup has ended."""
    setup = SandboxSetup.objects.select_for_update().get(secret=secret)
    if setup.state in OPEN_STATES:
        try:
            stored = create_card(card, customer=setup.customer, is_set_up=True)
            setup.card_reference = stored.reference
        except CardDeclined as error:
            setup.state, setup.message = "failed", error.message
        else:
            setup.state, setup.message = "succeeded", ""
            setup.exp_year, setup.exp_month = card.exp_year, card.exp_month
        setup.save()
    return to_gateway_setup(setup)


@operation
def refuse_setup(secret: str) -> GatewaySetup:
    """The customer did not confirm the card at the bank. Another card can still be entered."""
    setup = SandboxSetup.objects.select_for_update().get(secret=secret)
    if setup.state in OPEN_STATES:
        setup.state, setup.message = "failed", declines.NOT_CONFIRMED
        setup.save(update_fields=["state", "message"])
    return to_gateway_setup(setup)


def to_gateway_setup(setup: SandboxSetup) -> GatewaySetup:
    """Translate a row of the sandbox."""
    is_open = setup.state in OPEN_STATES
    card = None
    if setup.exp_year and setup.exp_month:
        stored = SandboxCard.objects.filter(reference=setup.card_reference).first()
        if stored is None:
            # It was deleted since.
            return GatewaySetup("expired", setup.reference)
        card = GatewayCard(
            reference=stored.reference,
            brand=CardBrand(stored.brand),
            last4=stored.last4,
            exp_year=setup.exp_year,
            exp_month=setup.exp_month,
            has_cvv=True,
        )
    return GatewaySetup(
        state=setup.state,  # type: ignore[arg-type]
        reference=setup.reference,
        customer=f"customer_{setup.customer}",
        client_secret=setup.secret if is_open else "",
        url=f"/sandbox/setups/{setup.secret}" if is_open else "",
        card=card,
        message=setup.message,
        # The sandbox does not number attempts: a refusal for another reason is another one.
        refused_attempts=(uuid5(setup.key, setup.message).hex,) if setup.message else (),
    )
