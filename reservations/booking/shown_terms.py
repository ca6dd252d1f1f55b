"""The terms of cancellation that customers are shown: of a reservation, or before one is made."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from accounts.models import User
from centers.requested_span import resolve_start
from centers.rooms import get_room
from reservations.booking.cancellation import get_outcome
from reservations.models import Reservation
from reservations.models.reservation import get_own_reservation
from reservations.models.status import Status
from reservations.notifications.cancellation_terms import (
    can_be_cancelled,
    describe_cancellation,
    describe_terms,
)
from reservations.pricing.terms import (
    ALL,
    UnbookedTime,
    get_present_terms,
    get_terms,
    split_payment,
)
from roombook.errors import NotFound


@dataclass(frozen=True, slots=True)
class ShownStep:
    """Until when a percentage comes back, and how much that is; None if nothing was charged yet."""

    until: dt.datetime | None
    refund_percent: int
    refund: Decimal | None = None


@dataclass(frozen=True, slots=True)
class ShownTerms:
    """The steps that have not ended, in local time; `grace_until` while the grace lasts."""

    name: str
    text: str
    steps: list[ShownStep]
    grace_until: dt.datetime | None = None


def show_room_terms(room_id: int, start: dt.datetime, *, now: dt.datetime) -> ShownTerms:
    """Return the terms of a room for a booking that starts then. Raises NotFound."""
    room = get_room(room_id)
    center = room.center
    if not (room.is_active and center.is_active):
        raise NotFound
    booking, terms = UnbookedTime(resolve_start(center, start)), get_present_terms(room)
    steps = [
        ShownStep(until and until.astimezone(center.zone), percent)
        for until, percent in terms.list_periods_from(booking, now)
    ]
    return ShownTerms(terms.name, describe_terms(terms, booking, center, now=now), steps)


def show_reservation_terms(reservation_id: int, user: User, *, now: dt.datetime) -> ShownTerms:
    """Return the terms of the user's reservation, with what cancelling it would give back."""
    reservation = get_own_reservation(reservation_id, user)
    terms, zone = get_terms(reservation), reservation.room.center.zone
    is_open = can_be_cancelled(reservation, now)
    grace_until = terms.get_grace_end(reservation) if is_open else None
    return ShownTerms(
        terms.name,
        describe_cancellation(reservation, now=now),
        list(_list_steps(reservation, now=now)) if is_open else [ShownStep(None, 0)],
        grace_until.astimezone(zone) if grace_until and now < grace_until else None,
    )


def _list_steps(reservation: Reservation, *, now: dt.datetime) -> Iterator[ShownStep]:
    left = _get_charged_amount(reservation, now=now)
    if reservation.status == Status.PENDING:  # It is returned in full.
        yield ShownStep(None, ALL, left)
        return
    zone = reservation.room.center.zone
    for until, percent in get_terms(reservation).list_periods_from(reservation, now):
        refund = None
        if left is not None:
            refund = split_payment(reservation.total_cost, left, percent).refund
        yield ShownStep(until and until.astimezone(zone), percent, refund)


def _get_charged_amount(reservation: Reservation, *, now: dt.datetime) -> Decimal | None:
    """Return what is left of the charged amount; None if nothing was charged yet."""
    if reservation.status not in {Status.PENDING, Status.CONFIRMED}:
        return None
    payments = reservation.paid_payments
    # A confirmed booking is charged, even if its capture is only due.
    if reservation.status == Status.PENDING:
        payments = [each for each in payments if each.captured_at]
    return get_outcome(reservation, now=now).left if payments else None
