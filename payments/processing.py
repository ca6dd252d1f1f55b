"""What is done with money and cards.

Asking the gateway and writing what it said are separate steps, because no transaction may be open
while the gateway is asked. A checkout is: `open_payment` inside its first transaction, `authorize`
with none, `record` inside its second, `capture` with none. Every step may be repeated.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet, Sum

from accounts.actions import lock_user
from accounts.limits import CARD_DECLINED
from accounts.models import User
from payments import gateways
from payments.cards import Card, parse_card
from payments.gateways.base import Gateway, GatewayPayment, GatewayRefused
from payments.models import (
    COMPLETED_REFUND_STATES,
    InvalidPaymentTransition,
    Payment,
    PaymentState,
    Refund,
    RefundState,
    SavedCard,
)
from roombook.address import ADDRESS_FIELDS
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined, InvalidRequest, NoSavedCard, ServiceUnavailable

logger = logging.getLogger(__name__)


# --- Saved cards ---------------------------------------------------------------------------------


def update_saved_card(user: User, payment_info: Mapping[str, Any], *, now: datetime) -> SavedCard:
    """Check a card, keep it at the gateway, and let it take the place of the one before."""
    card = parse_card(payment_info, now=now)
    # Taken before the gateway is asked, so that rivals cannot try more cards than the limit says.
    CARD_DECLINED.attempt(user.pk, now=now)
    try:
        saved = save_card(user, card, now=now)
    except CardDeclined:
        raise
    except BaseException:
        CARD_DECLINED.forgive(user.pk)
        raise
    CARD_DECLINED.forgive(user.pk)
    return saved


def save_card(user: User, card: Card, *, now: datetime) -> SavedCard:
    """Keep a card at the gateway as the account's one saved card. Raises CardDeclined."""
    gateway = gateways.get_current_gateway()
    try:
        reference = gateway.store_card(card, customer=str(user.pk))
    except ServiceUnavailable as error:
        raise ServiceUnavailable(
            "The card could not be saved because the payment service cannot be reached."
            " Nothing was charged. Please try again."
        ) from error
    try:
        saved, old = _replace_saved_card(user, card, gateway.name, reference, now)
    except BaseException:
        delete_card_at_gateway(gateway.name, reference)
        raise
    if old:
        delete_card_at_gateway(old.gateway, old.reference)
    return saved


def save_charged_card(user: User, card: Card, *, now: datetime) -> SavedCard | None:
    """Keep a card that has just paid; the booking stands whether or not that works."""
    try:
        return save_card(user, card, now=now)
    except (CardDeclined, ServiceUnavailable) as error:
        logger.warning("The card of account %s could not be saved: %s", user.pk, error)
        return None


def remove_saved_card(user: User) -> None:
    """Take the saved card off the account and out of the gateway; none there is fine."""
    old = _delete_saved_card(user)
    if old:
        delete_card_at_gateway(old.gateway, old.reference)


@in_transaction
def _replace_saved_card(
    user: User, card: Card, gateway: str, reference: str, now: datetime
) -> tuple[SavedCard, SavedCard | None]:
    old = _delete_saved_card(user)
    saved = SavedCard.objects.create(
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
    return saved, old


@in_transaction
def _delete_saved_card(user: User) -> SavedCard | None:
    lock_user(user)
    old = SavedCard.objects.filter(user=user).first()
    if old:
        SavedCard.objects.filter(pk=old.pk).delete()
    # What the account object remembers of its card is over.
    user._state.fields_cache.pop("saved_card", None)
    return old


def delete_card_at_gateway(gateway: str, reference: str) -> None:
    """Delete a card at the gateway; that this fails harms nobody but the gateway's disk."""
    try:
        gateways.get_gateway(gateway).delete_card(reference)
    except Exception:
        logger.exception("The card %s could not be deleted at %s.", reference, gateway)


# --- Paying --------------------------------------------------------------------------------------


def get_payment_source(
    user: User,
    *,
    use_saved: bool,
    payment_info: Mapping[str, Any] | None,
    now: datetime,
) -> Card | SavedCard:
    """What to pay with: the saved card or the one supplied, not both and not neither."""
    if use_saved and payment_info:
        raise InvalidRequest(
            {"payment_info": "Must be left out when the saved card is to be used."}
        )
    if use_saved:
        return get_usable_saved_card(user, now=now)
    if not payment_info:
        raise InvalidRequest({"payment_info": "A card is needed, here or by UseSavedPaymentInfo."})
    return parse_card(payment_info, now=now)


def get_usable_saved_card(user: User, *, now: datetime) -> SavedCard:
    saved = saved_card_by_user.first(user=user.pk)
    if saved is None or saved.gateway != gateways.get_current_gateway().name:
        raise NoSavedCard
    if saved.has_expired(now):
        raise NoSavedCard("Your saved card has expired. Please enter another card.")
    return saved


@compiled_query(keep_plan=True)
def saved_card_by_user() -> "QuerySet[SavedCard]":
    return SavedCard.objects.filter(user=int_param("user"))


def to_gateway_source(source: Card | SavedCard) -> Card | str:
    """A card as the gateway takes it: itself, or the reference to what the gateway keeps."""
    return source.reference if isinstance(source, SavedCard) else source


def check_card(source: Card | SavedCard) -> None:
    """Judge a card at the gateway; nothing is kept or charged. Raises CardDeclined."""
    gateways.get_current_gateway().check_card(to_gateway_source(source))


def create_payment(
    *,
    reservation_id: int,
    amount: Decimal,
    currency: str,
    gateway: Gateway,
    now: datetime,
    lease: timedelta,
) -> Payment:
    """Write down that a payment begins. Belongs into the transaction that takes the room.

    The database refuses a second one while another is open (`payment_one_open_per_reservation`).
    """
    return Payment.objects.create(
        reservation_id=reservation_id,
        amount=amount,
        currency=currency,
        gateway=gateway.name,
        is_live=gateway.is_live,
        lease_until=now + lease,
        created_at=now,
    )


def authorize_payment(
    payment: Payment, source: Card | SavedCard, *, description: str
) -> GatewayPayment:
    """Ask the gateway to reserve the money. Raises GatewayUnavailable when nobody knows."""
    return gateways.get_gateway(payment.gateway).authorize(
        key=payment.key,
        amount=payment.amount,
        currency=payment.currency,
        source=to_gateway_source(source),
        description=description,
    )


def fetch_gateway_status(payment: Payment) -> GatewayPayment:
    """Ask the gateway what became of a payment in doubt.

    One that it never heard of is fenced off first, so that a request that was only slow cannot
    charge the card after all. That is written down before it is done: a worker that hears of its
    authorization between our question and our fence must not book on money that we let go.
    """
    gateway = gateways.get_gateway(payment.gateway)
    told = None
    if not payment.is_called_off:
        told = gateway.find_payment(payment.key)
        if told is None and not _mark_called_off(payment):
            # Its worker went on meanwhile, and wrote down what it heard.
            told = gateway.find_payment(payment.key)
    return told or gateway.void(payment.key)


def _mark_called_off(payment: Payment) -> bool:
    """Decide that a payment in doubt ends without money; False where it is in doubt no more."""
    in_doubt = Payment.objects.filter(pk=payment.pk, state=PaymentState.STARTED)
    return bool(in_doubt.update(is_called_off=True))


# What is no news: the gateway said it before it said what we already know.
LATER_STATES = {
    PaymentState.AUTHORIZED: {
        PaymentState.CAPTURED,
        PaymentState.VOIDED,
        PaymentState.REFUNDED,
    },
    PaymentState.CAPTURED: {PaymentState.REFUNDED},
}
# The columns of a payment that news may change.
GATEWAY_RESULT_FIELDS = (
    *("state", "authorized_at", "captured_at", "settled_at"),
    *("reference", "card_brand", "card_last4", "authorized_until", "message"),
)


@in_transaction
def record_gateway_result(payment: Payment, outcome: GatewayPayment, *, now: datetime) -> Payment:
    """Write down what the gateway said, and return the payment as it now is, locked."""
    locked = lock_payment(payment.pk)
    apply_gateway_result(locked, outcome, now=now)
    return locked


def apply_gateway_result(locked: Payment, outcome: GatewayPayment, *, now: datetime) -> None:
    """`record` for a payment that the caller has locked.

    Repeated or overtaken news change nothing; news that contradict our books raise IllegalMove.
    """
    state = PaymentState(outcome.state)
    if locked.state == state or locked.state in LATER_STATES.get(state, ()):
        return
    holds_money = state in {PaymentState.AUTHORIZED, PaymentState.CAPTURED}
    if holds_money and outcome.amount != locked.amount:
        raise InvalidPaymentTransition(
            f"Payment {locked.key}: the gateway has another amount than was asked."
        )
    locked.transition_to(state, now=now)
    locked.reference = outcome.reference
    locked.card_brand = outcome.brand
    locked.card_last4 = outcome.last4
    locked.authorized_until = outcome.authorized_until
    locked.message = outcome.message[:255]
    locked.save(update_fields=GATEWAY_RESULT_FIELDS)


def lock_payment(payment_id: int) -> Payment:
    """The payment as it is now; nobody else changes it until the transaction ends."""
    [payment] = locked_payment_by_id(payment=payment_id)
    return payment


@compiled_query(keep_plan=True)
def locked_payment_by_id() -> "QuerySet[Payment]":
    return Payment.objects.select_for_update().filter(pk=int_param("payment"))


def capture_payment(payment: Payment, *, now: datetime) -> Payment:
    """Take the money that was reserved.

    The caller looks at the state: it is not captured where the reservation of money had lapsed.
    """
    return record_gateway_result(
        payment, gateways.get_gateway(payment.gateway).capture(payment.key), now=now
    )


def void_payment(payment: Payment, *, now: datetime) -> Payment:
    """Let go of money that was reserved; the caller looks at the state."""
    return record_gateway_result(
        payment, gateways.get_gateway(payment.gateway).void(payment.key), now=now
    )


# Reserved money that goes back by itself so soon is somebody's business now.
AUTHORIZATION_EXPIRY_NOTICE = timedelta(hours=24)


def get_expiring_authorizations(now: datetime) -> QuerySet[Payment]:
    """Reserved money that the customer's bank gives back within a day; what is back already too.

    Take it, let it go, or ask for another card: `find_out` and `record` tell what became of it.
    """
    return Payment.objects.authorized().filter(
        authorized_until__lte=now + AUTHORIZATION_EXPIRY_NOTICE
    )


# --- Giving back ---------------------------------------------------------------------------------


def create_refund(payment: Payment, *, amount: Decimal, reason: str, now: datetime) -> Refund:
    """Write down that money is owed back. Belongs into the transaction that cancels.

    Never more than was taken: the payment's row is locked, and refunds under way count.
    """
    locked = lock_payment(payment.pk)
    if locked.state != PaymentState.CAPTURED:
        raise InvalidPaymentTransition(
            f"Payment {locked.key} is {locked.state} and cannot be refunded."
        )
    if amount <= 0 or amount > get_refundable_amount(locked):
        raise InvalidPaymentTransition(
            f"Payment {locked.key}: no more can be given back than was taken."
        )
    return Refund.objects.create(payment=locked, amount=amount, reason=reason, created_at=now)


def get_refundable_amount(payment: Payment) -> Decimal:
    """What is left of a payment after all refunds, those under way included."""
    return payment.amount - get_refunded_amount(Payment.objects.filter(pk=payment.pk))


def get_refunded_amount(payments: QuerySet[Payment]) -> Decimal:
    """What these payments have given back, refunds under way included."""
    refunds = Refund.objects.filter(payment__in=payments).exclude(state=RefundState.REFUSED)
    given: Decimal | None = refunds.aggregate(total=Sum("amount"))["total"]
    return given or Decimal(0)


def execute_refund(refund: Refund, *, now: datetime) -> Refund:
    """Ask the gateway to give the money back, and write that down. Safe to repeat."""
    payment = refund.payment
    try:
        gateways.get_gateway(payment.gateway).refund(
            key=payment.key, refund_key=refund.key, amount=refund.amount
        )
    except GatewayRefused:
        _close_refund(refund, RefundState.REFUSED, now)
        raise
    return _close_refund(refund, RefundState.DONE, now)


@in_transaction
def _close_refund(refund: Refund, state: RefundState, now: datetime) -> Refund:
    payment = lock_payment(refund.payment_id)
    locked = Refund.objects.get(pk=refund.pk)
    if locked.state != RefundState.STARTED:
        return locked
    locked.close(state, now=now)
    locked.save(update_fields=["state", "done_at"])
    _mark_refunded_if_complete(payment, now)
    return locked


def _mark_refunded_if_complete(payment: Payment, now: datetime) -> None:
    if is_fully_refunded(payment) and payment.state == PaymentState.CAPTURED:
        payment.transition_to(PaymentState.REFUNDED, now=now)
        payment.save(update_fields=["state", "settled_at"])


def is_fully_refunded(payment: Payment) -> bool:
    """Whether all of it is back with the customer, refunds under way not included."""
    given = payment.refunds.filter(state__in=COMPLETED_REFUND_STATES)
    total: Decimal | None = given.aggregate(total=Sum("amount"))["total"]
    return total == payment.amount


@in_transaction
def create_retry_refund(refund: Refund, *, now: datetime) -> Refund:
    """Write down that a refused refund is tried again, with a key that nobody has refused yet.

    Raises IllegalMove where it has been seen to, or nothing is left. `pay_back` comes after.
    """
    locked = _lock_refused_refund(refund)
    left = min(locked.amount, get_refundable_amount(locked.payment))
    again = create_refund(locked.payment, amount=left, reason=locked.reason, now=now)
    again.again = locked
    again.save(update_fields=["again"])
    return again


@in_transaction
def mark_refunded_manually(refund: Refund, *, reason: str, now: datetime) -> Refund:
    """Write down that staff gave a refused refund back another way. Raises IllegalMove."""
    locked = _lock_refused_refund(refund)
    if locked.amount > get_refundable_amount(locked.payment):
        raise InvalidPaymentTransition("Other refunds gave back what this one was to.")
    locked.close(RefundState.OUTSIDE, now=now)
    locked.reason = (f"{reason} ({locked.reason})" if locked.reason else reason)[:255]
    locked.save(update_fields=["state", "done_at", "reason"])
    _mark_refunded_if_complete(locked.payment, now)
    return locked


def _lock_refused_refund(refund: Refund) -> Refund:
    """A refused refund that nobody has seen to, in the lock of its payment."""
    payment = lock_payment(refund.payment_id)
    locked = Refund.objects.get(pk=refund.pk)
    locked.payment = payment
    if locked.state != RefundState.REFUSED:
        raise InvalidPaymentTransition(f"It is {locked.state}, not refused.")
    if Refund.objects.filter(again=locked).exists():
        raise InvalidPaymentTransition("It was tried again already: see the refund after it.")
    return locked
