"""Stores the gateway's answers about a payment.

A repeated or outdated answer changes nothing, so every caller may be late.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from payments.gateways.base import GatewayPayment
from payments.ledger.posting import post_payment
from payments.models import TRANSITIONS, InvalidPaymentTransition, Payment, PaymentState
from roombook.db.compiled_queries import RowQuerySet, compiled_query, int_param
from roombook.db.transactions import in_transaction

GATEWAY_RESULT_FIELDS = (
    *("state", "counts", "authorized_at", "captured_at", "closed_at", "fees_due_at"),
    *("reference", "card_brand", "card_last4", "authorized_until", "message"),
    "has_unreported_decline",
)


@in_transaction
def record_gateway_result(payment: Payment, result: GatewayPayment, *, now: datetime) -> Payment:
    """Lock the payment, store the gateway's answer, and return the updated row."""
    locked = lock_payment(payment.pk)
    apply_gateway_result(locked, result, now=now)
    return locked


def apply_gateway_result(
    locked: Payment, result: GatewayPayment, *, counts: bool | None = None, now: datetime
) -> None:
    """Store the gateway's answer on a payment that the caller has locked, and post a capture.

    `counts` says whether the payment pays for something if it is authorized now; None leaves that
    as it is. A repeated or outdated answer changes nothing. An answer that contradicts the row
    raises InvalidPaymentTransition.
    """
    if result.state == "action_required":
        # Only the booking module `charging` lets a payment wait for its customer.
        return
    state = PaymentState(result.state)
    # An answer is outdated if the payment has moved on from it. Nothing comes after refunded: only
    # a refund that the bank returns leads back, and `record_refunds` stores that.
    is_outdated = state != PaymentState.REFUNDED and locked.state in TRANSITIONS[state]
    if locked.state == state or is_outdated:
        return
    holds_money = state in {PaymentState.AUTHORIZED, PaymentState.CAPTURED}
    if holds_money and result.amount != locked.amount:
        raise InvalidPaymentTransition(
            f"Payment {locked.key}: the gateway has another amount than was requested."
        )
    is_capture = locked.captured_at is None and state in {
        PaymentState.CAPTURED,
        PaymentState.REFUNDED,
    }
    if is_capture:
        # Read in a statement of its own: it began after the wait for the lock.
        [(cancelled_at, center_id, time_zone_id)] = booking_by_payment(payment=locked.pk)
        if cancelled_at is not None and state == PaymentState.CAPTURED:
            now = max(now, cancelled_at + timedelta(microseconds=1))
    locked.transition_to(state, now=now)
    if counts is not None:
        locked.counts = counts and holds_money
    locked.reference = result.reference
    locked.card_brand = result.brand
    locked.card_last4 = result.last4
    locked.authorized_until = result.authorized_until
    locked.message = result.message[:255]
    is_declined, has_waited = state == PaymentState.DECLINED, locked.action_until is not None
    locked.has_unreported_decline = is_declined and has_waited
    locked.save(update_fields=GATEWAY_RESULT_FIELDS)
    if is_capture:
        post_payment(locked, center_id=center_id, time_zone_id=time_zone_id, now=now)


def lock_payment(payment_id: int) -> Payment:
    """Read the payment again and lock its row until the transaction ends."""
    [payment] = locked_payment_by_id(payment=payment_id)
    return payment


@compiled_query(keep_plan=True)
def locked_payment_by_id() -> QuerySet[Payment]:
    return Payment.objects.select_for_update().filter(pk=int_param("payment"))


@compiled_query(keep_plan=True)
def booking_by_payment() -> RowQuerySet:
    rows = Payment.objects.filter(pk=int_param("payment"))
    center = "reservation__room__center"
    return rows.values_list("reservation__cancelled_at", center, f"{center}__time_zone_id")
