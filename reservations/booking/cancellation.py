"""Cancelling: what it gives back by the policy that the reservation was booked under (B15.4)."""

import datetime as dt
import logging
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from payments import processing as payments
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import Payment, PaymentState
from reservations.booking import checkout, price_changes
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.status import Status, may_move
from reservations.notifications import emails
from reservations.notifications.confirmation import card
from reservations.pricing import bill
from roombook import money
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen, ServiceUnavailable

if TYPE_CHECKING:
    from accounts.models import User


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
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
    terms = terms_of(reservation, now=now)
    return Cancellation(reservation, terms.refund, f"If you cancel now: {terms.sentence}")


def cancel(
    reservation_id: int,
    *,
    user: "User | None" = None,
    by: "User | None" = None,
    agreed: Decimal | None = None,
    now: dt.datetime,
) -> Cancellation:
    """Cancel a reservation (staff: any, customers: their own) and pay back what its policy says.

    `user` is the customer, where it is theirs to cancel; `by` the member of staff, where one does.
    `agreed` is the refund that whoever decided has seen: at another one nothing is done.
    Cancelling again gives the same answer. Raises ReservationNotOpen where it is too late, and
    ServiceUnavailable where the payment is not settled yet and the gateway cannot be asked.
    """
    checkout.settle_left_behind(reservation_id, user=user, now=now)
    settle_capture(reservation_id, user=user, now=now)
    cancellation, payment = _cancel(
        reservation_id, user=user, by=by or user, agreed=agreed, now=now
    )
    if payment is not None:
        checkout.pay_dues(payment, now=now)
    return cancellation


@in_transaction
def _cancel(
    reservation_id: int,
    *,
    user: "User | None",
    by: "User | None",
    agreed: Decimal | None,
    now: dt.datetime,
) -> tuple[Cancellation, Payment | None]:
    reservation = lock_reservation(reservation_id, of_user=user)
    if reservation.status == Status.CANCELLED:
        return _done(reservation), None
    _require_cancellable(reservation, now)
    terms = terms_of(reservation, now=now)
    price_changes.require_as_shown("refund", terms.refund, shown=agreed)
    payment = open_payment_of(reservation)
    was_confirmed = reservation.status == Status.CONFIRMED
    if was_confirmed and payment is not None and payment.state == PaymentState.AUTHORIZED:
        raise ServiceUnavailable(
            "The payment is still being settled. Nothing was changed. Please try again."
        )
    reservation.move_to(
        Status.CANCELLED, by=by, now=now, cancelled_at=now, refund_promised=terms.refund
    )
    bill.give_back_benefits(reservation, now=now)
    if payment is not None and terms.refund:
        payments.open_refund(payment, amount=terms.refund, reason="Cancelled", now=now)
    emails.cancelled(reservation, terms, now=now)
    return Cancellation(reservation, terms.refund, CANCELLED + terms.sentence), payment


def terms_of(reservation: Reservation, *, now: dt.datetime) -> Terms:
    """By the reservation's own policy: all is refunded up to its notice before the start, and
    within its grace after booking; else nothing. What is no booking yet is never paid for."""
    payment = open_payment_of(reservation)
    paid = _paid(reservation, payment)
    if payment is None or not paid:
        return Terms(money.zero, money.zero, _nothing_to_refund(reservation))
    if reservation.status != Status.CONFIRMED or now <= reservation.free_until:
        return Terms(paid, money.zero, _refunded(payment, paid))
    # No fee is more than the price: what is owed back of an older, higher one is owed all the same.
    return Terms(money.zero, min(paid, reservation.total_cost), _too_late(reservation))


def _paid(reservation: Reservation, payment: Payment | None) -> Decimal:
    """What the customer has paid and not got back; of a booking also what is about to be taken."""
    if payment is None:
        return money.zero
    is_owed = reservation.status == Status.CONFIRMED and payment.state == PaymentState.AUTHORIZED
    if payment.state == PaymentState.CAPTURED or is_owed:
        return payments.refundable(payment)
    return money.zero


def open_payment_of(reservation: Reservation) -> Payment | None:
    """The payment that holds or has taken the reservation's money."""
    return reservation.payments.open().first()


def _require_cancellable(reservation: Reservation, now: dt.datetime) -> None:
    if reservation.status == Status.PROCESSING:
        raise ReservationNotOpen("A payment is under way. Please try again in a minute.")
    if not may_move(reservation.status, Status.CANCELLED):
        raise ReservationNotOpen
    if reservation.status != Status.NEW and reservation.start <= now:
        raise ReservationNotOpen("The meeting has begun; it can no longer be cancelled.")


def settle_capture(reservation_id: int, *, user: "User | None" = None, now: dt.datetime) -> None:
    """A booking whose money is not taken yet: take it first, so that it can be paid back."""
    owed = Payment.objects.authorized().filter(
        reservation=reservation_id, reservation__status=Status.CONFIRMED
    )
    if user is not None:
        owed = owed.filter(reservation__user=user)
    for payment in owed:
        try:
            checkout.settle_dues(payment, now=now)
        except GatewayUnavailable:
            logger.warning("Payment %s: the gateway does not answer.", payment.key)
        except GatewayRefused:
            # It can never be taken: a booking must not be stuck for that.
            logger.exception("Payment %s cannot be captured; it is let go.", payment.key)
            payments.void(payment, now=now)


def _done(reservation: Reservation) -> Cancellation:
    """The answer that cancelling gave, from what is stored."""
    refund = reservation.refund_promised or money.zero
    paid = _last_captured(reservation)
    if paid is not None and refund:
        sentence = _refunded(paid, refund)
    elif paid is None or not payments.refundable(paid):
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
    return f"{money.display(amount)} is refunded to {card(payment)}."


def _too_late(reservation: Reservation) -> str:
    notice = reservation.cancellation_notice_hours
    return f"it is less than {notice} hours before its start, so nothing is refunded."
