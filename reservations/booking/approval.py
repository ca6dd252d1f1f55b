"""What staff answer and note: approve, decline, no-show; and what time does by itself."""

import datetime as dt
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Q

from payments import lifecycle
from payments.models import Payment
from reservations import availability
from reservations.booking import checkout
from reservations.booking.cancellation import get_open_payment
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen

if TYPE_CHECKING:
    from accounts.models import User

logger = logging.getLogger(__name__)


def approve(reservation_id: int, *, by: "User | None" = None, now: dt.datetime) -> Reservation:
    """Agree to a request: ask the evaluator again, confirm, and take the money that is reserved.

    Raises SlotUnavailable, ReservationNotOpen (also where the reserved money has lapsed: then the
    request expires) or ServiceUnavailable where the gateway cannot be asked.
    """
    _ask_for_the_money(reservation_id, now=now)
    reservation, payment = _approve(reservation_id, by=by, now=now)
    if reservation.status == Status.EXPIRED:
        raise ReservationNotOpen(
            "The money for this request is no longer reserved, so the request has expired."
            " The customer has to book again."
        )
    return _with_dues(reservation, payment, now=now)


def decline(reservation_id: int, *, by: "User | None" = None, now: dt.datetime) -> Reservation:
    """Refuse a request: everything is given back, and the reserved money let go."""
    reservation, payment = _end_request(reservation_id, Status.DECLINED, by=by, now=now)
    return _with_dues(reservation, payment, now=now)


@in_transaction
def mark_no_show(reservation_id: int, *, by: "User | None" = None, now: dt.datetime) -> Reservation:
    """Nobody came. Only once the meeting has begun."""
    reservation = lock_reservation(reservation_id)
    if reservation.status not in {Status.CONFIRMED, Status.COMPLETED} or reservation.start > now:
        raise ReservationNotOpen("Only a confirmed meeting that has begun can be a no-show.")
    reservation.transition_to(Status.NO_SHOW, by=by, now=now)
    return reservation


class ExpiryIncomplete(Exception):
    """Reservations that time asks something of and that could not be dealt with: see the log."""

    def __init__(self, reservations: list[int]) -> None:
        super().__init__(f"Reservations {', '.join(map(str, reservations))}: see the log.")
        self.reservations = reservations


def close_overdue(*, now: dt.datetime) -> Iterator[Reservation]:
    """Do what time asks for, one reservation after the other, and yield each that changed.

    Drafts whose start has passed, and requests that nobody answered in time or before their
    start, become Expired (money that was reserved is let go); confirmed meetings that are over
    become Completed. One that fails keeps no other waiting; after the last one NotAllExpired tells
    of those.
    """
    answer_by = Q(booked_at__lte=now - dt.timedelta(hours=settings.PENDING_HOURS))
    begun = Q(start__lte=now)
    steps: list[tuple[Callable[[int, dt.datetime], list[Reservation]], list[int]]] = [
        (_end_draft, _keys(begun, status=Status.NEW)),
        (_end_unanswered, _keys(begun | answer_by, status=Status.PENDING)),
        (_complete, _keys(Q(end__lte=now), status=Status.CONFIRMED)),
    ]
    failed = []
    for step, keys in steps:
        for pk in keys:
            try:
                changed = step(pk, now)
            except Exception:
                logger.exception("Reservation %s: what time asks for could not be done.", pk)
                failed.append(pk)
            else:
                yield from changed
    if failed:
        raise ExpiryIncomplete(failed)


def _keys(*conditions: Q, **also: Any) -> list[int]:
    """Whose turn it is; each is judged again under its lock, since others may act meanwhile."""
    found = Reservation.objects.filter(*conditions, **also).order_by("start", "pk")
    return list(found.values_list("pk", flat=True))


@in_transaction
def _end_draft(reservation_id: int, now: dt.datetime) -> list[Reservation]:
    reservation = lock_reservation(reservation_id)
    if not reservation.is_new:
        return []
    reservation.transition_to(Status.EXPIRED, by=None, now=now)
    return [reservation]


def _end_unanswered(reservation_id: int, now: dt.datetime) -> list[Reservation]:
    try:
        reservation, payment = _end_request(reservation_id, Status.EXPIRED, by=None, now=now)
    except ReservationNotOpen:
        return []
    return [_with_dues(reservation, payment, now=now)]


@in_transaction
def _complete(reservation_id: int, now: dt.datetime) -> list[Reservation]:
    reservation = lock_reservation(reservation_id)
    if reservation.status != Status.CONFIRMED:
        return []
    reservation.transition_to(Status.COMPLETED, by=None, now=now)
    return [reservation]


def _ask_for_the_money(reservation_id: int, *, now: dt.datetime) -> None:
    """Ask the gateway, before a room is promised, what became of the money that it reserved."""
    payment = (
        Payment.objects.authorized()
        .filter(reservation=reservation_id, reservation__status=Status.PENDING)
        .first()
    )
    if payment is not None:
        lifecycle.record_gateway_result(payment, lifecycle.fetch_gateway_status(payment), now=now)


@in_transaction
def _approve(
    reservation_id: int, *, by: "User | None", now: dt.datetime
) -> tuple[Reservation, Payment | None]:
    reservation = _lock_request(reservation_id)
    payment = get_open_payment(reservation)
    if reservation.total_cost and (payment is None or payment.state not in checkout.FUNDED_STATES):
        # No room is given away: whoever has heard that the money lapsed, the request is over.
        reservation.transition_to(Status.EXPIRED, by=by, now=now)
        bill.return_benefits(reservation, now=now)
        emails.send_authorization_expired(reservation, now=now)
        return reservation, payment
    availability.evaluate_reservation(reservation, now=now).require()
    reservation.transition_to(Status.CONFIRMED, by=by, now=now)
    emails.send_request_answered(reservation, now=now)
    return reservation, payment


@in_transaction
def _end_request(
    reservation_id: int, status: Status, *, by: "User | None", now: dt.datetime
) -> tuple[Reservation, Payment | None]:
    reservation = _lock_request(reservation_id)
    reservation.transition_to(status, by=by, now=now)
    bill.return_benefits(reservation, now=now)
    emails.send_request_answered(reservation, now=now)
    return reservation, get_open_payment(reservation)


def _lock_request(reservation_id: int) -> Reservation:
    reservation = lock_reservation(reservation_id)
    if reservation.status != Status.PENDING:
        raise ReservationNotOpen("Only a pending request can be answered.")
    return reservation


def _with_dues(
    reservation: Reservation, payment: Payment | None, *, now: dt.datetime
) -> Reservation:
    if payment is not None:
        checkout.try_fulfil_obligations(payment, now=now)
    return reservation
