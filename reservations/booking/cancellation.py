"""Cancelling: what it gives back by the policy that the reservation was booked under (B15.4)."""

import datetime as dt
import logging
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from payments import lifecycle, refunds
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import Payment, PaymentState
from reservations.booking import checkout, price_changes
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.status import Status, can_transition
from reservations.notifications import emails
from reservations.notifications.confirmation import describe_card
from reservations.pricing import bill
from roombook import money
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen, ServiceUnavailable

if TYPE_CHECKING:
    from accounts.models import User


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CancellationTerms:
    """What cancelling means for the money: what comes back, what is kept, and the words for it."""

    refund: Decimal
    fee: Decimal
    sentence: str


@dataclass(frozen=True, slots=True)
class Cancellation:
    reservation: Reservation
    refund: Decimal
    message: str


def preview(reservation: Reservation, *, now: dt.datetime) -> Cancellation:
    """What cancelling at this moment would do; raises as cancelling would."""
    if reservation.status == Status.CANCELLED:
        return _done(reservation)
    _require_cancellable(reservation, now)
    terms = get_terms(reservation, now=now)
    return Cancellation(reservation, terms.refund, f"If you cancel now: {terms.sentence}")


def cancel(
    reservation_id: int,
    *,
    user: "User | None" = None,
    by: "User | None" = None,
    expected_refund: Decimal | None = None,
    now: dt.datetime,
) -> Cancellation:
    """Cancel a reservation (staff: any, customers: their own) and pay back what its policy says.

    `user` is the customer, where it is theirs to cancel; `by` the member of staff, where one does.
    `agreed` is the refund that whoever decided has seen: at another one nothing is done.
    Cancelling again gives the same answer. Raises ReservationNotOpen where it is too late, and
    ServiceUnavailable where the payment is not settled yet and the gateway cannot be asked.
    """
    checkout.resolve_stale_payments(reservation_id, user=user, now=now)
    capture_outstanding(reservation_id, user=user, now=now)
    cancellation, payment = _cancel(
        reservation_id, user=user, by=by or user, expected_refund=expected_refund, now=now
    )
    if payment is not None:
        checkout.try_fulfil_obligations(payment, now=now)
    return cancellation


@in_transaction
def _cancel(
    reservation_id: int,
    *,
    user: "User | None",
    by: "User | None",
    expected_refund: Decimal | None,
    now: dt.datetime,
) -> tuple[Cancellation, Payment | None]:
    reservation = lock_reservation(reservation_id, owner=user)
    if reservation.status == Status.CANCELLED:
        return _done(reservation), None
    _require_cancellable(reservation, now)
    terms = get_terms(reservation, now=now)
    price_changes.require_expected("refund", terms.refund, shown=expected_refund)
    payment = get_open_payment(reservation)
    was_confirmed = reservation.status == Status.CONFIRMED
    if was_confirmed and payment is not None and payment.state == PaymentState.AUTHORIZED:
        raise ServiceUnavailable(
            "The payment is still being settled. Nothing was changed. Please try again."
        )
    reservation.transition_to(
        Status.CANCELLED, by=by, now=now, cancelled_at=now, refund_promised=terms.refund
    )
    bill.return_benefits(reservation, now=now)
    if payment is not None and terms.refund:
        refunds.create_refund(payment, amount=terms.refund, reason="Cancelled", now=now)
    emails.send_cancelled(reservation, terms, now=now)
    return Cancellation(reservation, terms.refund, CANCELLED + terms.sentence), payment


def get_terms(reservation: Reservation, *, now: dt.datetime) -> CancellationTerms:
    """By the reservation's own policy: all is refunded up to its notice before the start, and
    within its grace after booking; else nothing. What is no booking yet is never paid for."""
    payment = get_open_payment(reservation)
    paid = _paid(reservation, payment)
    if payment is None or not paid:
        return CancellationTerms(money.ZERO, money.ZERO, _nothing_to_refund(reservation))
    if reservation.status != Status.CONFIRMED or now <= reservation.free_cancellation_until:
        return CancellationTerms(paid, money.ZERO, _refunded(payment, paid))
    # No fee is more than the price: what is owed back of an older, higher one is owed all the same.
    return CancellationTerms(money.ZERO, min(paid, reservation.total_cost), _too_late(reservation))


def _paid(reservation: Reservation, payment: Payment | None) -> Decimal:
    """What the customer has paid and not got back; of a booking also what is about to be taken."""
    if payment is None:
        return money.ZERO
    is_owed = reservation.status == Status.CONFIRMED and payment.state == PaymentState.AUTHORIZED
    if payment.state == PaymentState.CAPTURED or is_owed:
        return refunds.get_refundable_amount(payment)
    return money.ZERO


def get_open_payment(reservation: Reservation) -> Payment | None:
    """The payment that holds or has taken the reservation's money."""
    return reservation.payments.open().first()


def _require_cancellable(reservation: Reservation, now: dt.datetime) -> None:
    if reservation.status == Status.PROCESSING:
        raise ReservationNotOpen("A payment is under way. Please try again in a minute.")
    if not can_transition(reservation.status, Status.CANCELLED):
        raise ReservationNotOpen
    if reservation.status != Status.NEW and reservation.start <= now:
        raise ReservationNotOpen("The meeting has begun; it can no longer be cancelled.")


def capture_outstanding(
    reservation_id: int, *, user: "User | None" = None, now: dt.datetime
) -> None:
    """A booking whose money is not taken yet: take it first, so that it can be paid back."""
    owed = Payment.objects.authorized().filter(
        reservation=reservation_id, reservation__status=Status.CONFIRMED
    )
    if user is not None:
        owed = owed.filter(reservation__user=user)
    for payment in owed:
        try:
            checkout.fulfil_obligations(payment, now=now)
        except GatewayUnavailable:
            logger.warning("Payment %s: the gateway does not answer.", payment.key)
        except GatewayRefused:
            # It can never be taken: a booking must not be stuck for that.
            logger.exception("Payment %s cannot be captured; it is let go.", payment.key)
            lifecycle.void_payment(payment, now=now)


def _done(reservation: Reservation) -> Cancellation:
    """The answer that cancelling gave, from what is stored."""
    refund = reservation.refund_promised or money.ZERO
    paid = _last_captured(reservation)
    if paid is not None and refund:
        sentence = _refunded(paid, refund)
    elif paid is None or not refunds.get_refundable_amount(paid):
        sentence = _nothing_to_refund(reservation)
    else:
        sentence = _too_late(reservation)
    return Cancellation(reservation, refund, CANCELLED + sentence)


NOTHING_CHARGED = "nothing was charged."
PAID_BACK = "what was charged has been paid back already."
CANCELLED = "The reservation is cancelled: "


def _last_captured(reservation: Reservation) -> Payment | None:
    return reservation.payments.filter(captured_at__isnull=False).order_by("pk").last()


def _nothing_to_refund(reservation: Reservation) -> str:
    return PAID_BACK if _last_captured(reservation) else NOTHING_CHARGED


def _refunded(payment: Payment, amount: Decimal) -> str:
    return f"{money.format_amount(amount)} is refunded to {describe_card(payment)}."


def _too_late(reservation: Reservation) -> str:
    notice = reservation.cancellation_notice_hours
    return f"it is less than {notice} hours before its start, so nothing is refunded."
