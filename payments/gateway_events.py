"""Changes at the gateway that we did not cause: late results, refunds, disputes.

An event is only a hint to look: it may come late, twice or out of order. What is stored is the
gateway's current answer. Nothing here changes a reservation: a payment whose outcome is unknown is
left to `resolve_payment`.
"""

import logging
from datetime import datetime, timedelta

from django.dispatch import Signal

from payments import gateways
from payments.fees import limit_fee
from payments.gateway_results import lock_payment
from payments.gateways.base import GatewayDispute
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.lifecycle import store_gateway_status
from payments.models import (
    Dispute,
    GatewayEvent,
    InvalidPaymentTransition,
    Payment,
    PaymentState,
)
from payments.refunds import record_refunds
from roombook.db.transactions import in_transaction

logger = logging.getLogger(__name__)

# The customer has confirmed or refused a payment at the bank, or may have. Sent with `payment` and
# `now`; the receiver resolves the payment.
customer_acted = Signal()
# Staff have made a refund due. Sent with `payment` and `now`; the receiver executes what is due.
refund_became_due = Signal()

# A gateway repeats an event for three days at most.
EVENT_RETENTION = timedelta(days=30)


def is_processed(reference: str) -> bool:
    """Whether the event was processed before."""
    return GatewayEvent.objects.filter(reference=reference).exists()


def mark_processed(reference: str, type_: str, *, now: datetime) -> bool:
    """Remember that the event was processed, and delete events older than EVENT_RETENTION.

    Returns False if it was processed before.
    """
    _, is_new = GatewayEvent.objects.get_or_create(
        reference=reference, defaults={"type": type_, "received_at": now}
    )
    GatewayEvent.objects.filter(received_at__lt=now - EVENT_RETENTION).delete()
    return is_new


def refresh(payment: Payment, *, now: datetime) -> Payment:
    """Fetch the payment from the gateway, store its state, and return the updated row.

    A started payment is not changed: only its lease ends, so that it can be resolved now. One that
    waits for its customer is resolved at once, because no worker is at it.
    """
    if payment.state == PaymentState.STARTED and payment.action_until is not None:
        customer_acted.send(sender=Payment, payment=payment, now=now)
        payment.refresh_from_db()
        return payment
    if payment.state == PaymentState.STARTED:
        Payment.objects.filter(
            pk=payment.pk, state=PaymentState.STARTED, lease_until__gt=now
        ).update(lease_until=now)
        return payment
    result = gateways.get_gateway(payment.gateway).find_payment(payment.key)
    if result is None:
        return payment
    try:
        updated = store_gateway_status(payment, result, now=now)
    except InvalidPaymentTransition as error:
        logger.error("The gateway's records contradict ours: %s", error)
        return payment
    if updated.state != payment.state:
        logger.warning(
            "Payment %s of reservation %s is %s: changed at the gateway, not by us.",
            payment.key,
            payment.reservation_id,
            updated.state,
        )
    return updated


def refresh_with_refunds(payment: Payment, *, now: datetime) -> Payment:
    """Do the same, and store all refunds that the gateway has, failed ones included."""
    payment = refresh(payment, now=now)
    if payment.state == PaymentState.STARTED:
        return payment
    reported = gateways.get_gateway(payment.gateway).list_refunds(payment.key)
    return record_refunds(payment, reported, now=now)


@in_transaction
def record_dispute(payment: Payment, reported: GatewayDispute, *, now: datetime) -> Dispute:
    """Store the state of a dispute. A new state is logged as an error, which alerts staff."""
    # Under the payment's lock, so that two parallel events do not both report a new dispute.
    lock_payment(payment.pk)
    known = Dispute.objects.filter(reference=reported.reference).first()
    closed_at = (known.closed_at if known else None) or now
    present = {
        "status": reported.status,
        "respond_by": reported.respond_by,
        "fee": limit_fee(reported.fee, payment),
        "closed_at": closed_at if reported.is_closed else None,
    }
    first = {
        "payment": payment,
        "amount": reported.amount,
        "currency": reported.currency,
        "reason": reported.reason,
        "opened_at": reported.opened_at,
    }
    dispute, _ = Dispute.objects.update_or_create(
        reference=reported.reference, defaults=present, create_defaults=first | present
    )
    if known is None or known.status != reported.status:
        logger.error(
            "The customer of payment %s (reservation %s) disputes %s %s: %s, %s; respond by %s.",
            *(payment.key, payment.reservation_id, reported.amount, reported.currency),
            *(reported.reason, reported.status, reported.respond_by or "-"),
        )
    post(payment.reservation_id, EventKind.DISPUTE, cause=f"dispute {dispute.pk}", now=now)
    return dispute
