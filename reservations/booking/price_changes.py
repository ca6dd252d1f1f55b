"""A booking whose price changes once it is paid (B15.4): what that means for the money.

The card was charged once, and it is not charged again: the customer agreed to one price, and no
card is kept for more. So a booking may stay at its price or become cheaper. What it became cheaper
by is written into `reduced_by`, and with it a refund of so much, in one transaction; the gateway is
asked afterwards, and what a crash leaves owed `reconcile_payments` pays. At every moment

    what was charged = total cost + reduced by

which `verify_integrity` checks.
"""

import datetime as dt
from decimal import Decimal

from payments import refunds
from payments.models import Payment, PaymentState
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import money
from roombook.errors import ReservationNotOpen, ServiceUnavailable

MORE_EXPENSIVE = (
    "It would cost {} more. The card is not charged again: choose what costs no more, or waive the"
    " difference."
)
CHEAPER_REQUEST = (
    "It would cost {} less, and a request's money is taken as it was reserved. Approve it first:"
    " then the difference is refunded."
)
PAYMENT_NOT_SETTLED = "The payment is still being settled. Nothing was changed. Please try again."


def require_no_extra_charge(reservation: Reservation, *, old_total: Decimal) -> None:
    """Raise where the new price of what is booked cannot be had from the card that paid."""
    difference = reservation.total_cost - old_total
    if difference > 0:
        raise ReservationNotOpen(MORE_EXPENSIVE.format(money.format_amount(difference)))
    if difference < 0 and reservation.status == Status.PENDING:
        raise ReservationNotOpen(CHEAPER_REQUEST.format(money.format_amount(-difference)))


def require_expected(what: str, amount: Decimal, *, shown: Decimal | None) -> None:
    """Raise where a sum is another one by now than whoever decided has seen; None: they saw none.

    What is confirmed twice is so done once, and what was shown is done or nothing is.
    """
    if shown is not None and amount != shown:
        raise ReservationNotOpen(
            f"The {what} has changed: it comes to {money.format_amount(amount)} now."
            " Nothing was done. Please look again."
        )


def refund_reduction(
    reservation: Reservation, *, old_total: Decimal, reason: str, now: dt.datetime
) -> tuple[Decimal, Payment | None]:
    """Write down what a booking became cheaper by, and that it is owed back: how much, of what.

    The caller holds the reservation's lock, has asked `require_no_extra_charge`, and calls
    `try_fulfil_obligations` for the payment once its transaction is over.
    """
    cheaper_by = old_total - reservation.total_cost
    if not cheaper_by:
        return money.ZERO, None
    reservation.reduced_by += cheaper_by
    reservation.save(update_fields=["reduced_by"])
    payment = reservation.payments.open().first()
    if payment is None:
        # All of it was given back already, as a favour.
        return money.ZERO, None
    if payment.state != PaymentState.CAPTURED:
        raise ServiceUnavailable(PAYMENT_NOT_SETTLED)
    amount = min(cheaper_by, refunds.get_refundable_amount(payment))
    if amount:
        refunds.create_refund(payment, amount=amount, reason=reason, now=now)
    return amount, payment
