"""What gateways charge for payments and refunds (B18).

A gateway may not know a fee at the capture, and nothing that moves money waits for it. So a capture
and a refund only store that the fees are due. `reconcile_payments` fetches them afterwards, at
first each minute, then after ever longer times, and for MAX_AGE at most.
"""

import logging
from datetime import datetime, timedelta
from decimal import Decimal

from payments import gateways
from payments.gateway_results import lock_payment
from payments.gateways.base import GatewayFees
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import Payment, RefundState
from payments.refunds import get_refund_key
from roombook.db.transactions import in_transaction
from roombook.money import ZERO

logger = logging.getLogger(__name__)

MIN_DELAY = timedelta(minutes=1)
MAX_AGE = timedelta(days=30)


def fetch_fees(payment: Payment, *, now: datetime) -> None:
    """Fetch the fees of a payment and its refunds, and store those that the gateway knows.

    Raises GatewayUnavailable or GatewayRefused. The next attempt is due later in any case.
    """
    if _postpone(payment, now=now):
        fees = gateways.get_gateway(payment.gateway).fetch_fees(payment.key)
        _store_fees(payment, fees, now=now)


def _postpone(payment: Payment, *, now: datetime) -> bool:
    """Store when the next attempt is due; False if another process makes this one.

    The fees have been due since the capture or the last refund. The delay is as long as that.
    """
    done = payment.refunds.filter(state=RefundState.DONE).order_by("-done_at")
    last_refund = done.values_list("done_at", flat=True).first()
    age = now - max(filter(None, (payment.captured_at, last_refund)), default=now)
    rows = Payment.objects.filter(pk=payment.pk, fees_due_at=payment.fees_due_at)
    next_due = now + max(age, MIN_DELAY) if age < MAX_AGE else None
    return bool(rows.update(fees_due_at=next_due))


@in_transaction
def _store_fees(payment: Payment, fees: GatewayFees, *, now: datetime) -> None:
    locked = lock_payment(payment.pk)
    if locked.fee is None:
        locked.fee = limit_fee(fees.payment, payment)
    fees_by_key = {get_refund_key(refund): fee for refund, fee in fees.refunds}
    is_complete = locked.fee is not None
    for refund in locked.refunds.filter(state=RefundState.DONE, fee=None):
        refund.fee = limit_fee(fees_by_key.get(refund.key), payment)
        refund.save(update_fields=["fee"])
        is_complete = is_complete and refund.fee is not None
    if is_complete:
        locked.fees_due_at = None
    locked.save(update_fields=["fee", "fees_due_at"])
    post(locked.reservation_id, EventKind.FEES, cause=f"payment {locked.pk}", now=now)


def limit_fee(fee: Decimal | None, payment: Payment) -> Decimal | None:
    """Return 0 for a fee that the gateway gives back: the books only know fees that it takes."""
    if fee is None or fee >= ZERO:
        return fee
    logger.warning(
        "The gateway gives back %s of its fees for payment %s. Please add that to the books.",
        *(-fee, payment.pk),
    )
    return ZERO
