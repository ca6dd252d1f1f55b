"""Payments that staff take without a gateway: in cash, at a card terminal or on account (B26)."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import QuerySet, Sum

from accounts.models import User
from payments import gateways
from payments.gateway_results import lock_payment
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS, TERMINAL
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post, post_payment
from payments.models import InvalidPaymentTransition, Payment, PaymentPurpose, PaymentState
from payments.refunds import get_refundable_amount, get_refunded_amount
from roombook import money
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest

NO_CREDIT = "This customer may not pay on account. Set a limit on the customer's page first."


def record_manual_payment(
    *,
    reservation_id: int,
    reservation_uid: UUID,
    center_id: int,
    time_zone_id: str,
    gateway: str,
    amount: Decimal,
    currency: str,
    reference: str,
    by: User,
    purpose: PaymentPurpose,
    now: datetime,
) -> Payment:
    """Create a payment that staff have taken, captured at once (B26.2).

    Call it in the transaction that books or changes the reservation, after `require_credit` if it
    is on account. The database refuses a second open payment for a booking
    (`payment_one_open_for_booking`).

    Raises InvalidRequest if the reference is missing.
    """
    if missing := find_missing_reference(gateway, reference):
        raise InvalidRequest({"reference": missing})
    payment = Payment.objects.create(
        reservation_id=reservation_id,
        reservation_uid=reservation_uid,
        cash_center_id=center_id,
        purpose=purpose,
        counts=True,
        gateway=MANUAL_GATEWAYS[gateway].name,
        # Whether the money is real is a matter of the installation.
        is_live=gateways.get_current_gateway().is_live,
        amount=amount,
        currency=currency,
        state=PaymentState.CAPTURED,
        reference=reference,
        taken_by=by,
        # No worker waits for an answer of a gateway.
        lease_until=now,
        created_at=now,
        captured_at=now,
        received_at=None if gateway == ACCOUNT.name else now,
    )
    post_payment(payment, center_id=center_id, time_zone_id=time_zone_id, by=by, now=now)
    return payment


def find_missing_reference(gateway: str, reference: str) -> str:
    """Say that a payment at the terminal needs the number of its slip; empty if it has one."""
    has_reference = any(map(str.isalnum, reference))
    if gateway == TERMINAL.name and not has_reference:
        return "Enter the number of the terminal's slip."
    return ""


def get_receivables(user: User) -> QuerySet[Payment]:
    """The payments on account whose money this customer still owes."""
    return Payment.objects.receivable().filter(reservation__user=user)


def get_owed_amount(user: User) -> Decimal:
    """What the customer owes: payments on account that are not received, without their refunds."""
    receivables = get_receivables(user)
    total: Decimal | None = receivables.aggregate(total=Sum("amount"))["total"]
    return (total or money.ZERO) - get_refunded_amount(receivables)


def require_credit(user: User, amount: Decimal) -> None:
    """Lock the customer's account, and raise InvalidRequest beyond their limit (B26.4).

    Call it before the locks of the room and the reservation (see booking/locks.py).
    """
    refusal = get_credit_refusal(User.objects.lock(user.pk), amount)
    if refusal:
        raise InvalidRequest({"gateway": refusal})


def get_credit_refusal(user: User, amount: Decimal) -> str:
    """Say why the customer cannot owe this amount too; empty if they can."""
    if not user.credit_limit:
        return NO_CREDIT
    owed = get_owed_amount(user)
    if owed + amount <= user.credit_limit:
        return ""
    return (
        f"This customer owes {money.format_amount(owed)} of at most"
        f" {money.format_amount(user.credit_limit)}. Choose another way of payment."
    )


@in_transaction
def mark_received(payment: Payment, *, now: datetime) -> tuple[Payment, Decimal]:
    """Record that the money of a payment on account has come in; return how much that is.

    Raises InvalidPaymentTransition if nothing is owed for the payment.
    """
    locked = lock_payment(payment.pk)
    if not locked.is_receivable:
        raise InvalidPaymentTransition(f"Nothing is owed for payment {locked.pk}.")
    locked.received_at = now
    locked.save(update_fields=["received_at"])
    post(locked.reservation_id, EventKind.RECEIVED, cause=f"payment {locked.pk}", now=now)
    return locked, get_refundable_amount(locked)
