"""Resolves payments whose outcome is unknown, and executes due captures, voids and refunds (B16).

A worker can die, or the gateway can fail to answer, at any step of a checkout, a cancellation or a
price change. The next request calls these functions: the customer's retry, a cancellation, or the
command `reconcile_payments`, which runs every minute. Repeated calls are safe.
"""

import datetime as dt
import logging
from typing import Protocol

from django.db.models import QuerySet
from django.dispatch import receiver

from accounts.models import User
from payments import lifecycle, refunds
from payments.gateway_events import customer_acted
from payments.gateway_results import lock_payment
from payments.gateways.base import GatewayPayment, GatewayRefused, GatewayUnavailable
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import (
    InvalidPaymentTransition,
    Payment,
    PaymentPurpose,
    PaymentState,
    Refund,
)
from reservations.booking.authorization import FUNDED_STATES, apply_authorization
from reservations.booking.integrity.money import captured_after_cancellation
from reservations.models import Reservation
from reservations.models.changes import pays_for_nothing
from reservations.models.status import Status
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.db.transactions import in_transaction

logger = logging.getLogger(__name__)


class Conclude(Protocol):
    """The second transaction of a payment: what it pays for, and the payment, as they are then."""

    def __call__(
        self, payment: Payment, result: GatewayPayment, /, *, now: dt.datetime
    ) -> tuple[Reservation, Payment]: ...


# Only the status of the reservation decides what is due for an authorized payment.
CAPTURE_DUE_STATUSES = frozenset({Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW})
NOT_BOOKED_STATUSES = frozenset({Status.DECLINED, Status.EXPIRED, Status.NEW})
VOID_DUE_STATUSES = NOT_BOOKED_STATUSES | {Status.CANCELLED}

# What applies the gateway's answer to a payment, by its purpose. differences.py adds the changes.
CONCLUDE: dict[PaymentPurpose, Conclude] = {PaymentPurpose.BOOKING: apply_authorization}


# --- Payments whose outcome is unknown -----------------------------------------------------------


def resolve_payments(
    reservation_id: int, *, user: User | None, calls_off: bool = False, now: dt.datetime
) -> bool:
    """Resolve the reservation's payments that no worker is at; return whether there were any.

    Their lease has expired, or they wait for the customer (B21.3): those are called off if
    `calls_off`. A payment that cannot be resolved is not changed, and `reconcile_payments` reports
    it. If `user` is given, only a reservation of this customer is processed.
    """
    rows = Payment.objects.resolvable(now).filter(reservation=reservation_id)
    if user is not None:
        rows = rows.filter(reservation__user=user)
    payments = list(rows.select_related("reservation"))
    for payment in payments:
        try:
            resolve_payment(payment, calls_off=calls_off, now=now)
        except GatewayUnavailable:
            logger.warning("Payment %s is unresolved: the gateway does not answer.", payment.key)
        except (GatewayRefused, InvalidPaymentTransition):
            logger.exception("Payment %s cannot be resolved.", payment.key)
    return bool(payments)


def resolve_payment(payment: Payment, *, calls_off: bool = False, now: dt.datetime) -> Payment:
    """Fetch the status of an unresolved payment from the gateway, and apply it.

    A payment that still waits for its customer is not changed.
    """
    result = lifecycle.fetch_gateway_status(payment, calls_off=calls_off, now=now)
    return finish_payment(payment, result, now=now)


def finish_payment(payment: Payment, result: GatewayPayment, *, now: dt.datetime) -> Payment:
    """Apply the gateway's answer to an unresolved payment, and execute what is due."""
    if result.state == "action_required" and payment.action_until is not None:
        # It still waits for its customer, and there is no need to lock the room.
        return payment
    conclude = CONCLUDE[PaymentPurpose(payment.purpose)]
    reservation, payment = conclude(payment, result, now=now)
    payment = lifecycle.record_reported_refunds(payment, result, now=now)
    try_fulfil_obligations(payment, reservation.status, now=now)
    return payment


@receiver(customer_acted)
def resolve_confirmed_payment(payment: Payment, now: dt.datetime, **kwargs: object) -> None:
    """Finish the checkout as soon as the gateway reports that the customer has acted."""
    try:
        resolve_payment(payment, now=now)
    except InvalidPaymentTransition:
        logger.exception("Payment %s cannot be resolved.", payment.key)


# --- Obligations at the gateway ------------------------------------------------------------------


def try_fulfil_obligations(payment: Payment, status: str, *, now: dt.datetime) -> None:
    """Execute the capture, void or refunds that are due. If that fails, they stay due.

    `payment` and `status` have the values that the caller has just committed.
    """
    try:
        _fulfil_obligations(payment, status, now=now)
    except GatewayUnavailable:
        logger.warning("Payment %s stays due: the gateway does not answer.", payment.key)
    except Exception:
        # The booking is valid in any case. reconcile_payments tries again and reports failures.
        logger.exception("Payment %s: what is due could not be done.", payment.key)


def fulfil_obligations(payment: Payment, *, now: dt.datetime) -> Payment:
    """Read the payment again and execute what is due. Raises the errors of the gateway."""
    payment = Payment.objects.select_related("reservation").get(pk=payment.pk)
    return _fulfil_obligations(payment, payment.reservation.status, now=now)


def _fulfil_obligations(payment: Payment, status: str, *, now: dt.datetime) -> Payment:
    """Capture or void an authorized payment, and execute the refunds that are due.

    A payment that is called off is voided. One that was captured in the gateway's own dashboard,
    for no booking, is refunded.
    """
    is_for_nothing = pays_for_nothing(payment)
    if payment.state == PaymentState.STARTED and payment.is_called_off:
        return resolve_payment(payment, now=now)
    if payment.state == PaymentState.AUTHORIZED:
        if status in CAPTURE_DUE_STATUSES and not is_for_nothing:
            # Only a captured payment has refunds, so none can be due here.
            return lifecycle.capture_payment(payment, now=now)
        if status in VOID_DUE_STATUSES or is_for_nothing:
            payment = lifecycle.void_payment(payment, now=now)
            if payment.state == PaymentState.CAPTURED:
                _create_full_refund(payment, now=now)
    elif payment.state == PaymentState.CAPTURED and (
        is_for_nothing or _is_without_booking(payment, status)
    ):
        _create_full_refund(payment, now=now)
    for refund in pending_refunds(payment=payment.pk):
        refunds.execute_refund(refund, now=now)
    return payment


def _is_without_booking(payment: Payment, status: str) -> bool:
    """Return whether a captured payment is for no booking, nor for a cancellation fee."""
    if status != Status.CANCELLED:
        return status in NOT_BOOKED_STATUSES
    return Payment.objects.filter(captured_after_cancellation(), pk=payment.pk).exists()


@compiled_query(keep_plan=True)
def pending_refunds() -> QuerySet[Refund]:
    rows = Refund.objects.due().filter(payment=int_param("payment"))
    return rows.select_related("payment").order_by("pk")


@in_transaction
def _create_full_refund(payment: Payment, *, now: dt.datetime) -> None:
    """Create a refund of the whole payment, unless there is one already."""
    payment = lock_payment(payment.pk)
    amount = refunds.get_refundable_amount(payment)
    if amount:
        refunds.create_refund(payment, amount=amount, reason="Taken for no booking", now=now)
        post(payment.reservation_id, EventKind.PROMISED, cause=f"payment {payment.pk}", now=now)


def get_booked_payments(reservation: Reservation) -> list[Payment]:
    """Return the payments for the booking and for its changes, the latest first.

    They are authorized or captured. A payment of a change that was not applied is not among them.
    """
    return _find_booked(reservation.payments.all())


def lock_booked_payments(reservation: Reservation) -> list[Payment]:
    """Return the same payments, locked: no event changes them or their refunds meanwhile.

    The caller is in a transaction and holds the lock of the reservation.
    """
    return _find_booked(reservation.payments.select_for_update())


def _find_booked(payments: QuerySet[Payment]) -> list[Payment]:
    rows = payments.filter(state__in=sorted(FUNDED_STATES)).order_by("-pk")
    return [each for each in rows if not pays_for_nothing(each)]
