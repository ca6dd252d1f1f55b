"""The one saved card of an account: stored at the gateway, described in our database (B5).

The gateway is never called inside a transaction. A new card is therefore stored at the gateway
first; only then does its row replace the old one, and the old card is deleted at its gateway.
"""

import logging
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet

from accounts.limits import CARD_DECLINED
from accounts.models import User
from payments import gateways
from payments.cards import Card, CardFields, parse_card
from payments.models import SavedCard, StripeCustomer
from roombook.address import ADDRESS_FIELDS
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined, NoSavedCard, ServiceUnavailable

logger = logging.getLogger(__name__)


def update_saved_card(user: User, payment_info: CardFields, *, now: datetime) -> SavedCard:
    """Validate a card and save it in place of the account's current one.

    Raises InvalidRequest, CardDeclined, TooManyRequests or ServiceUnavailable.
    """
    card = parse_card(payment_info, now=now)
    with CARD_DECLINED.count_failure(user.pk, CardDeclined, now=now):
        return save_card(user, card, now=now)


def save_card(user: User, card: Card, *, now: datetime) -> SavedCard:
    """Store a card at the gateway as the account's only saved card. Raises CardDeclined."""
    gateway = gateways.get_current_gateway()
    try:
        reference = gateway.store_card(card, customer=str(user.pk))
    except ServiceUnavailable as error:
        raise ServiceUnavailable(
            "The card could not be saved because the payment service cannot be reached."
            " Nothing was charged. Please try again."
        ) from error
    saved = _build_saved_card(user, card, gateway.name, reference, now)
    try:
        previous = replace_saved_card(saved)
    except BaseException:
        delete_card_at_gateway(gateway.name, reference)
        raise
    if previous:
        delete_card_at_gateway(previous.gateway, previous.reference)
    return saved


def save_charged_card(user: User, card: Card, *, now: datetime) -> SavedCard | None:
    """Save a card that has just paid for a booking. A failure is logged and not raised."""
    try:
        return save_card(user, card, now=now)
    except (CardDeclined, ServiceUnavailable) as error:
        logger.warning("The card of account %s could not be saved: %s", user.pk, error)
        return None


def remove_saved_card(user: User) -> None:
    """Delete the account's saved card here and at its gateway. Does nothing if there is none."""
    previous = _delete_saved_card(user)
    if previous:
        delete_card_at_gateway(previous.gateway, previous.reference)


def _build_saved_card(
    user: User, card: Card, gateway: str, reference: str, now: datetime
) -> SavedCard:
    return SavedCard(
        user=user,
        gateway=gateway,
        reference=reference,
        brand=card.brand,
        last4=card.last4,
        exp_year=card.exp_year,
        exp_month=card.exp_month,
        first_name=card.first_name,
        last_name=card.last_name,
        company_name=card.company_name,
        has_cvv=card.has_cvv,
        created_at=now,
        **{
            name: value
            for name, value in card.billing_address.items()
            if name in ADDRESS_FIELDS and value is not None
        },
    )


@in_transaction
def replace_saved_card(saved: SavedCard) -> SavedCard | None:
    """Store the card in place of the account's current one, and return that one."""
    User.objects.lock_active(saved.user_id)
    previous = _delete_row(saved.user)
    saved.pk = None  # The transaction may run a second time.
    saved.save(force_insert=True)
    return previous


@in_transaction
def _delete_saved_card(user: User) -> SavedCard | None:
    User.objects.lock(user.pk)
    return _delete_row(user)


def _delete_row(user: User) -> SavedCard | None:
    """Delete the row of the account's saved card and return it as it was. The account is locked."""
    previous = SavedCard.objects.filter(user=user).first()
    if previous:
        SavedCard.objects.filter(pk=previous.pk).delete()
    # Django caches the card of a one-to-one relation on the user.
    user.refresh_from_db(fields=["saved_card"])
    return previous


def delete_card_at_gateway(gateway: str, reference: str) -> None:
    """Delete a card at its gateway. A failure is only logged: an unused card harms nobody."""
    try:
        gateways.get_gateway(gateway).delete_card(reference)
    except Exception:
        logger.exception("The card %s could not be deleted at %s.", reference, gateway)


def delete_cards_of_erased_account(user_id: int) -> None:
    """Delete what gateways store of an account, and then the rest of its card's row (B22.7).

    Raises GatewayUnavailable, or another error of the gateway. Nothing is lost: call it again.
    """
    account = str(user_id)
    saved = SavedCard.objects.filter(user=user_id)
    for card in saved:
        gateways.get_gateway(card.gateway).delete_card(card.reference)
    # Without customers at Stripe, its SDK need not be loaded.
    names = {"stripe"} if StripeCustomer.objects.filter(account=account).exists() else set()
    for name in {settings.PAYMENT_GATEWAY, *names}:
        gateways.get_gateway(name).delete_customer(account)
    saved.delete()


def get_usable_saved_card(user: User, *, now: datetime) -> SavedCard:
    """The saved card if the current gateway stores it and it has not expired.

    Raises NoSavedCard otherwise.
    """
    saved = saved_card_by_user.first(user=user.pk)
    if saved is None or saved.gateway != gateways.get_current_gateway().name:
        raise NoSavedCard
    if saved.has_expired(now):
        raise NoSavedCard("Your saved card has expired. Please enter another card.")
    return saved


@compiled_query(keep_plan=True)
def saved_card_by_user() -> QuerySet[SavedCard]:
    return SavedCard.objects.filter(user=int_param("user"))
