"""Marks bookings whose customer did not come, and undoes it (B15.1)."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

from accounts.act import Act
from payments import refunds
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import Payment, PaymentState
from reservations import availability
from reservations.booking.cancellation import CancellationOutcome, give_back
from reservations.booking.charging import lock_booked_payments
from reservations.booking.commands import Obstacle, Unsettled, command
from reservations.booking.holds import release_conflicting_holds
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.changes import NOT_PAID_IN_TIME
from reservations.models.status import Status
from reservations.pricing import bill
from reservations.pricing.terms import ALL, get_terms
from roombook.errors import ReservationNotOpen, SlotUnavailable


@command
def mark_no_show(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that nobody came, and refund what the terms give back. The meeting has begun."""
    reservation = lock_reservation(reservation_id)
    if not reservation.is_confirmed_or_completed or reservation.start > act.now:
        raise ReservationNotOpen("Only a confirmed meeting that has begun can be a no-show.")
    if reservation.is_checked_in:
        raise ReservationNotOpen("The customer is checked in. Undo the check-in first.")
    changes = {}
    if get_terms(reservation).no_show_percent < ALL:
        payments = lock_booked_payments(reservation)
        if due := [each for each in payments if each.state != PaymentState.CAPTURED]:
            return reservation, Unsettled(due)
        outcome = decide_no_show(reservation, payments)
        refunds.create_refunds(payments, amount=outcome.refund, reason="No-show", now=act.now)
        post(reservation.pk, EventKind.PROMISED, by=act.user, now=act.now)
        bill.return_benefits(reservation, share=outcome.share, now=act.now)
        changes = {"refund": (None, outcome.refund or None)}
    reservation.transition_to(Status.NO_SHOW, act, changes=changes)
    reservation.end_waiting_change(message=NOT_PAID_IN_TIME, now=act.now)
    return reservation, None


def decide_no_show(reservation: Reservation, payments: Sequence[Payment]) -> CancellationOutcome:
    """Return what comes back to a customer who did not come, by the terms of the booking.

    Nothing more does if the no-show is undone and recorded again.
    """
    percent = ALL - get_terms(reservation).no_show_percent
    return give_back(reservation, payments, percent, share=Decimal(percent) / ALL)


@command
def undo_no_show(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that the customer came, although the meeting was marked as a no-show (B15.1).

    What came back for the no-show stays with the customer.

    Before its end, the meeting holds its room again. Raises ReservationNotOpen, or SlotUnavailable
    if another reservation has the room.
    """
    now = act.now
    reservation = lock_reservation(reservation_id)
    if reservation.status != Status.NO_SHOW:
        raise ReservationNotOpen("Only a no-show can be undone.")
    status = Status.COMPLETED if reservation.end <= now else Status.CONFIRMED
    if status == Status.CONFIRMED:
        _require_free_room(reservation, now=now)
        release_conflicting_holds(
            reservation.room,
            reservation.span,
            user=reservation.user,
            now=now,
            turnaround_minutes=reservation.turnaround_minutes,
        )
    reservation.transition_to(status, act)
    return reservation, None


def _require_free_room(reservation: Reservation, *, now: dt.datetime) -> None:
    # The other reasons, such as that its start has passed, do not end a meeting that takes place.
    answer = availability.evaluate_reservation(reservation, now=now, for_user=reservation.user)
    for reason in answer.reasons:
        if reason.code == availability.HELD:
            raise SlotUnavailable(
                f"The room has been booked by somebody else meanwhile. {reason.detail}."
            )
