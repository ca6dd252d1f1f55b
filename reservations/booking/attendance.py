"""Records whether customers came: check-ins (B18.1) and no-shows (B15.1), and undoes both."""

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
from reservations.booking.locks import lock_reservation, lock_with_account, require_account
from reservations.models import Reservation, history
from reservations.models.changes import NOT_PAID_IN_TIME
from reservations.models.reservation import CHECK_IN_OPENS_BEFORE
from reservations.models.status import Status
from reservations.pricing import bill
from reservations.pricing.terms import ALL, get_terms
from roombook.errors import ReservationNotOpen, SlotUnavailable


def can_check_in(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether the customer can be checked in; after the end, too, if it was forgotten."""
    return (
        reservation.is_confirmed_or_completed
        and not reservation.is_checked_in
        and now >= reservation.start - CHECK_IN_OPENS_BEFORE
    )


@command
def check_in(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that the customer has arrived. Checking in twice keeps the first time.

    Raises ReservationNotOpen if `can_check_in` does not allow it.
    """
    reservation = lock_reservation(reservation_id)
    if reservation.is_checked_in:
        return reservation, None
    if not can_check_in(reservation, now=act.now):
        raise ReservationNotOpen(
            "Only a confirmed meeting can be checked in, from 12 hours before its start on."
        )
    return _set_time(reservation, act.now, act)


@command
def undo_check_in(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that the customer has not arrived after all. Without a check-in, nothing changes."""
    reservation = lock_reservation(reservation_id)
    return _set_time(reservation, None, act)


def _set_time(
    reservation: Reservation, at: dt.datetime | None, act: Act
) -> tuple[Reservation, Obstacle]:
    changes = {"checked_in_at": (reservation.checked_in_at, at)}
    reservation.checked_in_at = at
    reservation.save(update_fields=["checked_in_at"])
    history.record_changes(reservation, changes, act)
    return reservation, None


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
    reservation, _ = lock_with_account(reservation_id)
    require_account(reservation)
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
