"""The life of a payment: created, authorized, captured or voided.

A call to the gateway and the transaction that stores its answer are separate steps, because the
gateway is never called inside a transaction. A checkout creates the payment in its first
transaction, and calls `authorize_payment` outside any, `apply_gateway_result` in its second, and
`capture_payment` outside again. Every step may be repeated.
"""

from datetime import datetime, timedelta
from typing import TypeGuard

from django.conf import settings

from accounts.models import User
from payments import gateways
from payments.cards import Card, CardFields, parse_card
from payments.gateway_results import record_gateway_result
from payments.gateways.base import GatewayPayment
from payments.models import Payment, PaymentState, SavedCard
from payments.refunds import record_refunds
from payments.saved_cards import get_usable_saved_card
from roombook.errors import InvalidRequest

# --- The card that pays --------------------------------------------------------------------------


def get_payment_source(
    user: User,
    *,
    use_saved: bool,
    payment_info: CardFields | None,
    now: datetime,
) -> Card | SavedCard:
    """The card to charge: either the saved one or the one in the request, never both.

    Raises InvalidRequest or NoSavedCard.
    """
    if use_saved and payment_info:
        raise InvalidRequest(
            {"payment_info": "Must be left out when the saved card is to be used."}
        )
    if use_saved:
        return get_usable_saved_card(user, now=now)
    if not payment_info:
        raise InvalidRequest({"payment_info": "A card is needed, here or by UseSavedPaymentInfo."})
    return parse_card(payment_info, now=now)


def is_confirmable(source: Card | SavedCard | None) -> TypeGuard[SavedCard]:
    """Whether the customer can confirm a payment with this card at the bank (B21.3)."""
    return isinstance(source, SavedCard) and source.saved_by_setup


def to_gateway_source(source: Card | SavedCard) -> Card | str:
    """The card as gateways take it: a new card itself, a saved card by its reference."""
    return source.reference if isinstance(source, SavedCard) else source


def check_card(source: Card | SavedCard) -> None:
    """Ask the gateway to validate a card without storing or charging it. Raises CardDeclined."""
    gateways.get_current_gateway().check_card(
        to_gateway_source(source), on_session=is_confirmable(source)
    )


# --- Authorizing, capturing and voiding ----------------------------------------------------------


def authorize_payment(
    payment: Payment, source: Card | SavedCard, *, description: str, on_session: bool
) -> GatewayPayment:
    """Authorize the amount at the gateway.

    With `on_session`, for a card that `is_confirmable`, the answer can be action_required.

    Raises GatewayUnavailable if the outcome is unknown.
    """
    return gateways.get_gateway(payment.gateway).authorize(
        key=payment.key,
        amount=payment.amount,
        currency=payment.currency,
        source=to_gateway_source(source),
        description=description,
        on_session=on_session,
    )


def capture_payment(payment: Payment, *, now: datetime) -> Payment:
    """Capture an authorized payment and store the gateway's answer.

    Check the state of the result: it is voided if the authorization had expired.
    """
    result = gateways.get_gateway(payment.gateway).capture(payment.key)
    return store_gateway_status(payment, result, now=now)


def void_payment(payment: Payment, *, now: datetime) -> Payment:
    """Void an authorized payment and store the gateway's answer. Check the result's state."""
    result = gateways.get_gateway(payment.gateway).void(payment.key)
    return store_gateway_status(payment, result, now=now)


# --- The gateway's answers -----------------------------------------------------------------------


def fetch_gateway_status(
    payment: Payment, *, calls_off: bool = False, now: datetime
) -> GatewayPayment:
    """Ask the gateway for the outcome of a payment whose outcome is unknown.

    A key that the gateway does not know is voided there, so that a delayed request can no longer
    charge the card. So is a payment that the customer has not confirmed in time, or has not been
    charged for yet if `calls_off`. The row is marked as called off first: a worker whose
    authorization succeeds between the two calls must not book on an authorization that is about to
    be voided.
    """
    gateway = gateways.get_gateway(payment.gateway)
    result = None
    if not payment.is_called_off:
        result = gateway.find_payment(payment.key)
        if _is_to_be_voided(payment, result, calls_off=calls_off, now=now):
            # If it cannot be marked, another process has stored the outcome meanwhile.
            result = None if _mark_called_off(payment) else gateway.find_payment(payment.key)
    return result or gateway.void(payment.key)


def _is_to_be_voided(
    payment: Payment, result: GatewayPayment | None, *, calls_off: bool, now: datetime
) -> bool:
    if result is None:
        return True
    if calls_off and payment.state == PaymentState.STARTED:
        return result.state in {"action_required", "authorized"}
    return result.state == "action_required" and get_action_deadline(payment) <= now


def get_action_deadline(payment: Payment) -> datetime:
    """The time until which the customer can confirm the payment at the bank."""
    minutes = timedelta(minutes=settings.PAYMENT_ACTION_MINUTES)
    return payment.action_until or payment.created_at + minutes


def _mark_called_off(payment: Payment) -> bool:
    """Decide that a started payment ends without a charge. False if it is no longer started."""
    started = Payment.objects.filter(pk=payment.pk, state=PaymentState.STARTED)
    return bool(started.update(is_called_off=True))


def store_gateway_status(payment: Payment, status: GatewayPayment, *, now: datetime) -> Payment:
    """Store the gateway's answer and the refunds that it mentions; return the updated row."""
    return record_reported_refunds(record_gateway_result(payment, status, now=now), status, now=now)


def record_reported_refunds(payment: Payment, status: GatewayPayment, *, now: datetime) -> Payment:
    """Store the gateway's refunds if its answer mentions any.

    They were made in its dashboard, or by us before our database was restored.
    """
    if not status.refunded:
        return payment
    reported = gateways.get_gateway(payment.gateway).list_refunds(payment.key)
    return record_refunds(payment, reported, now=now)
