"""Refunds: created as due, executed at the gateway, reported by it, retried or made manually.

A refund is created in the transaction that makes it due, and executed after that transaction: a
refund that a crash interrupts stays due until `reconcile_payments` executes it.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from uuid import NAMESPACE_URL, UUID, uuid5

from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from payments import gateways
from payments.gateway_results import lock_payment
from payments.gateways.base import GatewayRefund, GatewayRefused
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import (
    COMPLETED_REFUND_STATES,
    InvalidPaymentTransition,
    Payment,
    PaymentPurpose,
    PaymentState,
    Refund,
    RefundState,
)
from roombook import money
from roombook.db.sums import sum_of_related
from roombook.db.transactions import in_transaction

logger = logging.getLogger(__name__)

# In these states the money was not returned, as far as we know.
UNCONFIRMED_STATES = frozenset({RefundState.STARTED, RefundState.REFUSED})


def create_refund(payment: Payment, *, amount: Decimal, reason: str, now: datetime) -> Refund:
    """Create a refund that is due. Call it in the transaction that makes it due, which posts it.

    What the customer has not paid yet of a payment on account is credited at once: there is no
    money to return (B26.5).

    Raises InvalidPaymentTransition beyond what is left of the captured amount. Refunds that are
    not executed yet count: the payment's row is locked.
    """
    locked = lock_payment(payment.pk)
    if locked.captured_at is None:
        raise InvalidPaymentTransition(
            f"Payment {locked.key} is {locked.state} and cannot be refunded."
        )
    if amount <= 0 or amount > get_refundable_amount(locked):
        raise InvalidPaymentTransition(
            f"Payment {locked.key}: no more can be refunded than was captured."
        )
    refund = Refund(payment=locked, amount=amount, reason=reason, created_at=now)
    is_credit = locked.is_receivable
    if is_credit:
        refund.close(RefundState.DONE, now=now)
    refund.save(force_insert=True)
    if is_credit:
        _update_refunded_state(locked, now)
    return refund


def create_refunds(
    payments: Iterable[Payment], *, amount: Decimal, reason: str, now: datetime
) -> Decimal:
    """Spread a refund over the payments, in their order; return how much of it they can bear."""
    parts = split_refund(payments, amount)
    for payment, part in parts:
        create_refund(payment, amount=part, reason=reason, now=now)
    return sum((part for _, part in parts), money.ZERO)


def split_refund(payments: Iterable[Payment], amount: Decimal) -> list[tuple[Payment, Decimal]]:
    """Return the payments that a refund of this amount is taken from, and its parts."""
    parts, left = [], amount
    for payment in payments:
        if part := min(left, get_refundable_amount(payment)):
            parts.append((payment, part))
            left -= part
    return parts


def find_refunded(payments: Sequence[Payment], amount: Decimal) -> list[Payment]:
    """Return the payments that the last refunds, of this amount together, were taken from.

    All of them if there is no refund.
    """
    if len(payments) == 1:
        return [*payments]
    found, left = set(), amount
    refunds = Refund.objects.filter(payment__in=payments, again=None).order_by("-pk")
    for payment, part in refunds.values_list("payment", "amount"):
        if left > 0:
            found.add(payment)
            left -= part
    return [each for each in payments if each.pk in found] or [*payments]


def get_refundable_amount(payment: Payment) -> Decimal:
    """What is left of a payment after all its refunds, pending ones included.

    Never below 0: what was refunded at the gateway can make a pending refund impossible.
    """
    refunded = get_refunded_amount(Payment.objects.filter(pk=payment.pk))
    return max(Decimal(0), payment.amount - refunded)


def get_refunded_amount(payments: QuerySet[Payment]) -> Decimal:
    """The sum of all refunds of these payments, pending ones included."""
    refunds = Refund.objects.not_refused().filter(payment__in=payments)
    total: Decimal | None = refunds.aggregate(total=Sum("amount"))["total"]
    return total or Decimal(0)


def sum_refunds(payment: str = "pk") -> Coalesce:
    """Return the same amount of one payment as an expression for queries of payments.

    In other queries, `payment` is the column that refers to it.
    """
    return sum_of_related(Refund.objects.not_refused(), "amount", by="payment", to=payment)


def is_fully_refunded(payment: Payment) -> bool:
    """Whether the customer has the whole amount back. Pending refunds do not count."""
    refunds = payment.refunds.filter(state__in=COMPLETED_REFUND_STATES)
    total: Decimal | None = refunds.aggregate(total=Sum("amount"))["total"]
    return total is not None and total >= payment.amount


def execute_refund(refund: Refund, *, now: datetime) -> Refund:
    """Refund the money at the gateway and store the outcome. Safe to repeat.

    Raises GatewayRefused, or GatewayUnavailable if the outcome is unknown.
    """
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
    # The gateway's word that the money was returned also counts after a parallel call was refused.
    may_close = UNCONFIRMED_STATES if state == RefundState.DONE else {RefundState.STARTED}
    if locked.state not in may_close:
        return locked
    locked.close(state, now=now)
    locked.save(update_fields=["state", "done_at"])
    _update_refunded_state(payment, now)
    _post(payment, locked, now=now)
    return locked


def _update_refunded_state(payment: Payment, now: datetime) -> None:
    """Set the state that agrees with the refunds. The payment's row is locked."""
    is_complete = is_fully_refunded(payment)
    if is_complete and payment.state == PaymentState.CAPTURED:
        payment.transition_to(PaymentState.REFUNDED, now=now)
    elif not is_complete and payment.state == PaymentState.REFUNDED and _is_for_a_booking(payment):
        payment.transition_to(PaymentState.CAPTURED, now=now)
    payment.request_fees(now)
    payment.save(update_fields=["state", "captured_at", "closed_at", "fees_due_at"])


def _is_for_a_booking(payment: Payment) -> bool:
    """Whether a payment whose refund the bank returned pays for its reservation again.

    It stays refunded if the reservation was never booked, or was paid again: a booking has one open
    payment, and a draft can still be paid. `get_unhandled` finds its refund.
    """
    if payment.reservation.booked_at is None:
        return False
    open_payments = Payment.objects.open().filter(reservation=payment.reservation_id)
    return (
        payment.purpose == PaymentPurpose.CHANGE
        or not open_payments.filter(purpose=PaymentPurpose.BOOKING).exists()
    )


@in_transaction
def confirm_refund_by_hand(refund: Refund, reference: str, *, now: datetime) -> Refund:
    """Record that staff have returned the money of a payment without a gateway (B26.5).

    Raises InvalidPaymentTransition if the refund does not wait for that.
    """
    payment = lock_payment(refund.payment_id)
    locked = Refund.objects.due_by_hand().filter(pk=refund.pk).first()
    if locked is None:
        raise InvalidPaymentTransition("This refund does not wait for a confirmation.")
    locked.close(RefundState.DONE, now=now)
    locked.reference = reference
    locked.save(update_fields=["state", "done_at", "reference"])
    _update_refunded_state(payment, now)
    _post(payment, locked, now=now)
    return locked


def _post(
    payment: Payment,
    refund: Refund | None = None,
    *,
    kind: EventKind = EventKind.RETURNED,
    now: datetime,
) -> None:
    """Post what has changed of the refunds of a payment to the ledger."""
    cause = f"refund {refund.pk}" if refund else f"payment {payment.pk}"
    post(payment.reservation_id, kind, cause=cause, now=now)


# --- Refunds that the gateway reports ------------------------------------------------------------


@in_transaction
def record_refunds(payment: Payment, refunds: Iterable[GatewayRefund], *, now: datetime) -> Payment:
    """Store the refunds that the gateway has of a payment; return the updated row.

    These can be new to us (made in its dashboard, or lost by a restore), completed, or failed.
    """
    locked = lock_payment(payment.pk)
    # Failed ones first: another one can be the retry of a failed one.
    for refund in sorted(refunds, key=lambda each: not each.failed):
        _record_refund(locked, refund, now)
    _update_refunded_state(locked, now)
    _post(locked, now=now)
    return locked


def _record_refund(payment: Payment, reported: GatewayRefund, now: datetime) -> None:
    key = get_refund_key(reported)
    refund = payment.refunds.filter(key=key).first()
    if refund is None:
        if not reported.failed:
            # Staff can refund in the dashboard what the gateway refused to refund for us.
            refused = payment.refunds.filter(UNHANDLED, amount=reported.amount).order_by("pk")
            Refund.objects.create(
                payment=payment,
                again=refused.first(),
                key=key,
                amount=reported.amount,
                reason=f"Made at the gateway ({reported.reference})",
                state=RefundState.DONE,
                created_at=now,
                done_at=now,
            )
    elif reported.failed and refund.state in {RefundState.STARTED, RefundState.DONE}:
        refund.close(RefundState.REFUSED, now=now)
        refund.save(update_fields=["state", "done_at"])
        logger.error(
            "The bank returned the refund %s of payment %s: %s must be refunded another way.",
            reported.reference,
            payment.key,
            refund.amount,
        )
    elif not reported.failed and refund.state in UNCONFIRMED_STATES:
        refund.close(RefundState.DONE, now=now)
        refund.save(update_fields=["state", "done_at"])


def get_refund_key(refund: GatewayRefund) -> UUID:
    """Its key. One that we did not create has always the same, so that it is stored once."""
    return refund.key or uuid5(NAMESPACE_URL, f"refund:{refund.reference}")


# --- Refunds that the gateway refused ------------------------------------------------------------


@in_transaction
def create_retry_refund(refund: Refund, *, now: datetime) -> Refund:
    """Create a second attempt at a refused refund, with a new key. Execute it afterwards.

    Raises InvalidPaymentTransition if the refund is not refused, was retried already, or nothing
    is left to refund.
    """
    refused = _lock_refused_refund(refund)
    amount = min(refused.amount, get_refundable_amount(refused.payment))
    retry = create_refund(refused.payment, amount=amount, reason=refused.reason, now=now)
    retry.again = refused
    retry.save(update_fields=["again"])
    _post(refused.payment, retry, kind=EventKind.PROMISED, now=now)
    return retry


@in_transaction
def mark_refunded_manually(refund: Refund, reason: str, *, now: datetime) -> Refund:
    """Record that staff returned the money of a refused refund in another way.

    Raises InvalidPaymentTransition as `create_retry_refund` does.
    """
    refused = _lock_refused_refund(refund)
    if refused.amount > get_refundable_amount(refused.payment):
        raise InvalidPaymentTransition("Other refunds have already returned this amount.")
    refused.close(RefundState.OUTSIDE, now=now)
    refused.reason = (f"{reason} ({refused.reason})" if refused.reason else reason)[:255]
    refused.save(update_fields=["state", "done_at", "reason"])
    _update_refunded_state(refused.payment, now)
    _post(refused.payment, refused, now=now)
    return refused


# Refused, and not retried.
UNHANDLED = Q(state=RefundState.REFUSED, retry__isnull=True)


def get_unhandled() -> QuerySet[Refund]:
    """Refused refunds that were neither retried nor made in another way."""
    rows = Refund.objects.filter(UNHANDLED).annotate(given=sum_refunds("payment"))
    return rows.filter(given__lt=F("payment__amount") - money.ROUNDING_TOLERANCE)


def _lock_refused_refund(refund: Refund) -> Refund:
    """The refund as it is now, with its payment locked. It must be refused and not yet retried."""
    payment = lock_payment(refund.payment_id)
    locked = Refund.objects.get(pk=refund.pk)
    locked.payment = payment
    if locked.state != RefundState.REFUSED:
        raise InvalidPaymentTransition(f"The refund is {locked.state}, not refused.")
    if Refund.objects.filter(again=locked).exists():
        raise InvalidPaymentTransition("This refund was already retried: see the refund after it.")
    return locked
