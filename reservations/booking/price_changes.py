"""Price changes of paid bookings, and the refunds that they cause (B15.4, B27).

The price of a booking rises only if its customer pays the difference: that is a payment of its own
(rescheduling.py, changes.py). A reduction is added to `reduced_by` in the same transaction that
creates the refunds. The gateway is called afterwards. If the worker dies in between,
`reconcile_payments` executes the refunds. At any time

    amounts charged = total cost + reduced by

`verify_integrity` checks this.
"""

import datetime as dt
from decimal import Decimal

from payments import refunds
from payments.models import Payment, PaymentState
from reservations.booking.payment_recovery import CaptureDue, lock_booked_payments
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import money
from roombook.errors import ReservationNotOpen

MORE_EXPENSIVE = "It costs {} more. Choose how the customer pays that, or waive it."
MORE_EXPENSIVE_REQUEST = (
    "It would cost {} more, and a request's money is taken as it was reserved. Approve it first,"
    " or waive the difference."
)
CHEAPER_REQUEST = (
    "It would cost {} less, and a request's money is taken as it was reserved. Approve it first:"
    " then the difference is refunded."
)


class ExtraCharge(ReservationNotOpen):
    """A booking would cost more, and the difference is neither paid nor waived."""

    def __init__(self, difference: Decimal) -> None:
        super().__init__(MORE_EXPENSIVE.format(money.format_amount(difference)))
        self.difference = difference


def require_no_extra_charge(reservation: Reservation, *, old_total: Decimal) -> None:
    """Raise ReservationNotOpen if what was paid cannot cover the new price of a booking.

    Raises its subclass ExtraCharge if the customer can pay the difference.
    """
    difference = reservation.total_cost - old_total
    if difference > 0 and reservation.status == Status.PENDING:
        raise ReservationNotOpen(MORE_EXPENSIVE_REQUEST.format(money.format_amount(difference)))
    if difference > 0:
        raise ExtraCharge(difference)
    if difference < 0 and reservation.status == Status.PENDING:
        raise ReservationNotOpen(CHEAPER_REQUEST.format(money.format_amount(-difference)))


def require_expected(label: str, amount: Decimal, *, expected: Decimal | None) -> None:
    """Raise ReservationNotOpen if an amount differs from the one that the user has confirmed.

    So a change that is confirmed twice is applied once. `expected` is None if no amount was shown.
    """
    if expected is not None and amount != expected:
        raise ReservationNotOpen(
            f"The {label} has changed: it comes to {money.format_amount(amount)} now. Nothing was"
            " done. Please look again."
        )


def refund_reduction(
    reservation: Reservation, *, old_total: Decimal, reason: str, now: dt.datetime
) -> tuple[Decimal, list[Payment]]:
    """Record by how much the price of a booking was reduced, and create the refunds.

    Returns the refunded amount and the payments, for `fulfils_obligations`. The caller holds the
    lock of the reservation, and has called `require_no_extra_charge` and made all other checks.
    """
    reduction = old_total - reservation.total_cost
    if not reduction:
        return money.ZERO, []
    reservation.reduced_by += reduction
    reservation.save(update_fields=["reduced_by"])
    payments = lock_booked_payments(reservation)
    if due := [each for each in payments if each.state != PaymentState.CAPTURED]:
        raise CaptureDue(due)
    # Less than the reduction if the gateway's dashboard has refunded something already.
    return refunds.create_refunds(payments, amount=reduction, reason=reason, now=now), payments
