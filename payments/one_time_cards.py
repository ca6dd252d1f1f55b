"""Cards that pay for one reservation, and are never saved with an account (B26.7).

The payer enters the card at the gateway, in a payment setup of the reservation. The card is deleted
there once it has paid or was declined.
"""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from payments import gateways, saved_cards, setups
from payments.models import PaymentSetup, SavedCard
from roombook.errors import CardDeclined, NotFound


def get_setup(reservation_id: int, key: UUID) -> PaymentSetup:
    """Return the setup of this reservation with the key, or raise NotFound."""
    setup = (
        PaymentSetup.objects.select_related("user")
        .filter(reservation=reservation_id, key=key)
        .first()
    )
    if setup is None:
        raise NotFound
    return setup


def fetch_card(setup: PaymentSetup, *, now: datetime) -> SavedCard:
    """Return the card that the payer has entered, as a card that is not stored here.

    Raises CardDeclined, also if it was discarded, PaymentSetupNotComplete or ServiceUnavailable.
    """
    found = setups.require_success(setup, now=now)
    if found is None or found.card is None:  # Another request has resolved it.
        found = gateways.get_gateway(setup.gateway).find_setup(setup.reference)
    if not setup.card_reference or found.card is None:
        raise CardDeclined(setup.message or setups.EXPIRED, is_new=False)
    # The card is as old as its setup: a decline after that is a decline of this card.
    return setups.build_saved_card(setup.user, setup.gateway, found.card, now=setup.created_at)


def discard(setup: PaymentSetup, *, message: str = "") -> None:
    """Delete the card at the gateway; `message` says why it did not pay. May be repeated."""
    reference = setup.card_reference
    PaymentSetup.objects.filter(pk=setup.pk).update(card_reference="", message=message[:255])
    if reference:
        saved_cards.delete_card_at_gateway(setup.gateway, reference)


def get_kept() -> QuerySet[PaymentSetup]:
    """Return the setups whose card is still stored at the gateway."""
    return PaymentSetup.objects.filter(reservation__isnull=False).exclude(card_reference="")
