"""What a gateway tells of its own accord: things that happened to money without us.

A message is only a hint to look again: it may come late, twice or out of order, so what is written
down is what the gateway says when it is asked. Nothing here touches a reservation: a payment that
is in doubt is handed to whoever settles those.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, UUID, uuid5

from payments import gateways
from payments.gateways.base import GatewayDispute, GatewayRefund
from payments.models import (
    Dispute,
    GatewayEvent,
    InvalidPaymentTransition,
    Payment,
    PaymentState,
    Refund,
    RefundState,
)
from payments.processing import is_fully_refunded, lock_payment, record_gateway_result
from roombook.db.transactions import in_transaction

logger = logging.getLogger(__name__)

# A gateway repeats a message for three days at most.
EVENT_RETENTION = timedelta(days=30)


def is_processed(reference: str) -> bool:
    """Whether a message was dealt with already."""
    return GatewayEvent.objects.filter(reference=reference).exists()


def mark_processed(reference: str, type_: str, *, now: datetime) -> None:
    """A message is dealt with; those that nobody will repeat any more are cleared away."""
    event = GatewayEvent(reference=reference, type=type_, received_at=now)
    GatewayEvent.objects.bulk_create([event], ignore_conflicts=True)
    GatewayEvent.objects.filter(received_at__lt=now - EVENT_RETENTION).delete()


def refresh(payment: Payment, *, now: datetime) -> Payment:
    """Write down what became of a payment; one in doubt may be settled by anybody from now on."""
    if payment.state == PaymentState.STARTED:
        Payment.objects.filter(
            pk=payment.pk, state=PaymentState.STARTED, lease_until__gt=now
        ).update(lease_until=now)
        return payment
    outcome = gateways.get_gateway(payment.gateway).find_payment(payment.key)
    if outcome is None:
        return payment
    try:
        recorded = record_gateway_result(payment, outcome, now=now)
    except InvalidPaymentTransition as error:
        logger.error("The gateway's books are not ours: %s", error)
        return payment
    if recorded.state != payment.state:
        logger.warning(
            "Payment %s of reservation %s is %s: done at the gateway, not by us.",
            payment.key,
            payment.reservation_id,
            recorded.state,
        )
    return recorded


@in_transaction
def record_refunds(payment: Payment, refunds: Iterable[GatewayRefund], *, now: datetime) -> Payment:
    """Make our refunds the gateway's: those that staff made over there, and those that failed."""
    locked = lock_payment(payment.pk)
    for told in refunds:
        _record_refund(locked, told, now)
    whole = is_fully_refunded(locked)
    if whole and locked.state == PaymentState.CAPTURED:
        locked.transition_to(PaymentState.REFUNDED, now=now)
    elif not whole and locked.state == PaymentState.REFUNDED:
        locked.transition_to(PaymentState.CAPTURED, now=now)
    locked.save(update_fields=["state", "captured_at", "settled_at"])
    return locked


def _record_refund(payment: Payment, told: GatewayRefund, now: datetime) -> None:
    refund = payment.refunds.filter(key=told.key or external_idempotency_key(told)).first()
    if refund is None:
        if not told.failed:
            Refund.objects.create(
                payment=payment,
                key=told.key or external_idempotency_key(told),
                amount=told.amount,
                reason=f"Made at the gateway ({told.reference})",
                state=RefundState.DONE,
                created_at=now,
                done_at=now,
            )
    elif told.failed and refund.state in {RefundState.STARTED, RefundState.DONE}:
        refund.state = RefundState.REFUSED
        refund.save(update_fields=["state"])
        logger.error(
            "The bank sent the refund %s of payment %s back: %s has to be paid another way.",
            told.reference,
            payment.key,
            refund.amount,
        )
    elif not told.failed and refund.state == RefundState.STARTED:
        refund.close(RefundState.DONE, now=now)
        refund.save(update_fields=["state", "done_at"])


def external_idempotency_key(refund: GatewayRefund) -> UUID:
    """The key of a refund that we did not ask for: always the same, so that it is kept once."""
    return uuid5(NAMESPACE_URL, f"refund:{refund.reference}")


@in_transaction
def record_dispute(payment: Payment, told: GatewayDispute, *, now: datetime) -> Dispute:
    """Write down where a dispute stands, and tell the log, which staff are told by."""
    # In the payment's lock, so that two messages at once do not both say that it is new.
    lock_payment(payment.pk)
    dispute, is_new = Dispute.objects.get_or_create(
        reference=told.reference,
        defaults={
            "payment": payment,
            "amount": told.amount,
            "currency": told.currency,
            "reason": told.reason,
            "status": told.status,
            "opened_at": told.opened_at,
            "respond_by": told.respond_by,
            "closed_at": now if told.is_closed else None,
        },
    )
    if is_new or dispute.status != told.status:
        logger.error(
            "The customer of payment %s (reservation %s) disputes %s %s: %s, %s; answer until %s.",
            payment.key,
            payment.reservation_id,
            told.amount,
            told.currency,
            told.reason,
            told.status,
            told.respond_by or "-",
        )
    if not is_new:
        dispute.status = told.status
        dispute.respond_by = told.respond_by
        dispute.closed_at = (dispute.closed_at or now) if told.is_closed else None
        dispute.save(update_fields=["status", "respond_by", "closed_at"])
    return dispute
