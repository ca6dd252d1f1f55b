"""Resolves payments whose outcome is unknown, and does what is still due at the gateway (B16).

A worker can die, or the gateway can fail to answer, at any step of a checkout, a cancellation or a
price change. Whoever comes next calls these functions: the customer's retry, a cancellation, or the
command `reconcile_payments`, which runs every minute. Each of them can be repeated.
"""

import datetime as dt
import logging
from typing import TYPE_CHECKING

from payments import lifecycle, refunds
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import InvalidPaymentTransition, Payment, PaymentState, Refund, RefundState
from reservations.booking import authorization
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.db.compiled_queries import compiled_query, datetime_param, int_param
from roombook.db.transactions import in_transaction

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User

logger = logging.getLogger(__name__)

# What is due for an authorized payment follows from the status of its reservation alone.
CAPTURE_DUE_STATUSES = frozenset({Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW})
NOT_BOOKED_STATUSES = frozenset({Status.DECLINED, Status.EXPIRED, Status.NEW})
VOID_DUE_STATUSES = NOT_BOOKED_STATUSES | {Status.CANCELLED}


# --- Payments whose outcome is unknown -----------------------------------------------------------


def resolve_stale_payments(reservation_id: int, *, user: "User | None", now: dt.datetime) -> bool:
    """Resolve the reservation's payments whose lease has expired; say whether there were any.

    A payment that cannot be resolved stays as it is, and `reconcile_payments` reports it. `user`
    is the customer if only their own reservation may be touched.
    """
    stale = [
        payment
        for payment in stale_payments(reservation=reservation_id, now=now)
        if user is None or payment.reservation.user_id == user.pk
    ]
    for payment in stale:
        try:
            resolve_payment(payment, now=now)
        except GatewayUnavailable:
            logger.warning("Payment %s is unresolved: the gateway does not answer.", payment.key)
        except (GatewayRefused, InvalidPaymentTransition):
            logger.exception("Payment %s cannot be resolved.", payment.key)
    return bool(stale)


@compiled_query(keep_plan=True)
def stale_payments() -> "QuerySet[Payment]":
    rows = Payment.objects.stale(datetime_param("now"))
    return rows.filter(reservation=int_param("reservation")).select_related("reservation")


def resolve_payment(payment: Payment, *, now: dt.datetime) -> Payment:
    """Ask the gateway what became of a payment whose worker is gone, and finish its checkout."""
    result = lifecycle.fetch_gateway_status(payment)
    reservation, payment = authorization.apply_authorization(payment, result, now=now)
    try_fulfil_obligations(payment, reservation.status, now=now)
    return payment


# --- What is due at the gateway ------------------------------------------------------------------


def try_fulfil_obligations(payment: Payment, status: str, *, now: dt.datetime) -> None:
    """Do at the gateway what the reservation's status requires; what fails stays due.

    `payment` and `status` are as the caller has just committed them.
    """
    try:
        _fulfil_obligations(payment, status, now=now)
    except GatewayUnavailable:
        logger.warning("Payment %s stays due: the gateway does not answer.", payment.key)
    except Exception:
        # The booking stands in any case; reconcile_payments reports what is left.
        logger.exception("Payment %s: what is due could not be done.", payment.key)


def fulfil_obligations(payment: Payment, *, now: dt.datetime) -> Payment:
    """Do what the reservation's status requires, read again; raise what the gateway raises."""
    [payment] = payment_with_reservation(payment=payment.pk)
    return _fulfil_obligations(payment, payment.reservation.status, now=now)


def _fulfil_obligations(payment: Payment, status: str, *, now: dt.datetime) -> Payment:
    """Capture or void an authorized payment, and execute the refunds that are due.

    A payment captured without us (in the gateway's dashboard) for no booking is refunded.
    """
    if payment.state == PaymentState.AUTHORIZED:
        if status in CAPTURE_DUE_STATUSES:
            # No refund can be due: only a captured payment has refunds.
            return lifecycle.capture_payment(payment, now=now)
        if status in VOID_DUE_STATUSES:
            payment = lifecycle.void_payment(payment, now=now)
            if payment.state == PaymentState.CAPTURED:
                _create_full_refund(payment, now=now)
    elif payment.state == PaymentState.CAPTURED and status in NOT_BOOKED_STATUSES:
        _create_full_refund(payment, now=now)
    for refund in pending_refunds(payment=payment.pk):
        refunds.execute_refund(refund, now=now)
    return payment


@compiled_query(keep_plan=True)
def payment_with_reservation() -> "QuerySet[Payment]":
    return Payment.objects.select_related("reservation").filter(pk=int_param("payment"))


@compiled_query(keep_plan=True)
def pending_refunds() -> "QuerySet[Refund]":
    rows = Refund.objects.filter(payment=int_param("payment"), state=RefundState.STARTED)
    return rows.select_related("payment").order_by("pk")


@in_transaction
def _create_full_refund(payment: Payment, *, now: dt.datetime) -> None:
    """Record that all of a payment is due back, unless that is already recorded."""
    payment = lifecycle.lock_payment(payment.pk)
    amount = refunds.get_refundable_amount(payment)
    if amount:
        refunds.create_refund(payment, amount=amount, reason="Taken for no booking", now=now)


def capture_outstanding(
    reservation_id: int, *, user: "User | None" = None, now: dt.datetime
) -> None:
    """Capture the authorized payment of a booking, so that a part of it can be refunded."""
    rows = Payment.objects.authorized().filter(
        reservation=reservation_id, reservation__status=Status.CONFIRMED
    )
    if user is not None:
        rows = rows.filter(reservation__user=user)
    for payment in rows:
        try:
            fulfil_obligations(payment, now=now)
        except GatewayUnavailable:
            logger.warning("Payment %s: the gateway does not answer.", payment.key)
        except GatewayRefused:
            # It can never be captured. The booking must not be stuck for that.
            logger.exception("Payment %s cannot be captured; it is voided.", payment.key)
            lifecycle.void_payment(payment, now=now)


def get_open_payment(reservation: Reservation) -> Payment | None:
    """Return the payment that holds or has taken the reservation's money."""
    payment: Payment | None = reservation.payments.open().first()
    return payment
