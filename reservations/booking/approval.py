"""Approves and declines requests, marks no-shows, and expires or completes reservations."""

import datetime as dt
import functools
import logging
from collections.abc import Callable, Iterator

from django.conf import settings
from django.db.models import Q

from accounts.act import Act
from payments import lifecycle
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import Payment
from reservations import availability
from reservations.booking.charging import lock_booked_payments, release
from reservations.booking.commands import Obstacle, command
from reservations.booking.holds import release_conflicting_holds
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.querysets import ReservationQuerySet
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen, SlotUnavailable

logger = logging.getLogger(__name__)

NOT_PAID_IN_TIME = "The payment link has ended."

# --- Requests ------------------------------------------------------------------------------------


def approve(act: Act, reservation_id: int) -> Reservation:
    """Approve a request: check availability again, confirm it, and capture the authorized money.

    Raises:
        SlotUnavailable, ReservationNotOpen: also if the authorization has expired; then the request
            expires, too.
        ServiceUnavailable: the gateway does not answer.
    """
    _refresh_authorization(reservation_id, now=act.now)
    reservation = confirm_or_expire(act, reservation_id)
    if reservation.status == Status.EXPIRED:
        raise ReservationNotOpen(
            "The money for this request is no longer reserved, so the request has expired."
            " The customer has to book again."
        )
    return reservation


@command
def decline(act: Act, reservation_id: int, *, message: str = "") -> tuple[Reservation, Obstacle]:
    """Decline a request, return its promo use and hours, and void its authorization.

    The `message` of staff is added to the e-mail.
    """
    reservation = _lock_request(reservation_id)
    _end_request(reservation, Status.DECLINED, act)
    emails.send_request_declined(reservation, message=message, now=act.now)
    return reservation, None


def _refresh_authorization(reservation_id: int, *, now: dt.datetime) -> None:
    """Check that the payment is still authorized at the gateway, before the room is confirmed."""
    payment = (
        Payment.objects.authorized()
        .filter(reservation=reservation_id, reservation__status=Status.PENDING)
        .first()
    )
    if payment is not None:
        result = lifecycle.fetch_gateway_status(payment, now=now)
        lifecycle.store_gateway_status(payment, result, now=now)


@command
def confirm_or_expire(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Confirm a request, or let it expire if its authorization has."""
    now = act.now
    reservation = _lock_request(reservation_id)
    is_paid = bool(lock_booked_payments(reservation))
    if reservation.total_cost and not is_paid:
        # The authorization has expired, so the booking could no longer be charged.
        _end_request(reservation, Status.EXPIRED, act)
        emails.send_authorization_expired(reservation, now=now)
        return reservation, None
    availability.evaluate_reservation(reservation, now=now).raise_if_unavailable()
    reservation.transition_to(Status.CONFIRMED, act, **reservation.advance_calendar(now))
    emails.send_request_approved(reservation, now=now)
    post(reservation.pk, EventKind.BOOKED, by=act.user, now=now)
    return reservation, None


@command
def _expire(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    reservation = _lock_request(reservation_id)
    _end_request(reservation, Status.EXPIRED, act)
    emails.send_request_expired(reservation, now=act.now)
    return reservation, None


def _end_request(reservation: Reservation, status: Status, act: Act) -> None:
    # The e-mail tells what is released.
    payments = reservation.paid_payments = lock_booked_payments(reservation)
    reservation.transition_to(status, act, **reservation.advance_calendar(act.now))
    bill.return_benefits(reservation, now=act.now)
    release(payments)
    post(reservation.pk, EventKind.ENDED, by=act.user, now=act.now)


def _lock_request(reservation_id: int) -> Reservation:
    reservation = lock_reservation(reservation_id)
    if reservation.status != Status.PENDING:
        raise ReservationNotOpen("Only a pending request can be answered.")
    return reservation


# --- No-show -------------------------------------------------------------------------------------


@command
def mark_no_show(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that nobody came. This is possible once the meeting has begun."""
    reservation = lock_reservation(reservation_id)
    is_open = reservation.status in {Status.CONFIRMED, Status.COMPLETED}
    if not is_open or reservation.start > act.now:
        raise ReservationNotOpen("Only a confirmed meeting that has begun can be a no-show.")
    if reservation.is_checked_in:
        raise ReservationNotOpen("The customer is checked in. Undo the check-in first.")
    reservation.transition_to(Status.NO_SHOW, act)
    reservation.end_waiting_change(message=NOT_PAID_IN_TIME, now=act.now)
    return reservation, None


@command
def undo_no_show(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Record that the customer came, although the meeting was marked as a no-show (B15.1).

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


# --- Expiry and completion -----------------------------------------------------------------------


class ExpiryIncomplete(Exception):
    """Some reservations could not be expired or completed; the log says why."""

    def __init__(self, reservations: list[int]) -> None:
        super().__init__(f"Reservations {', '.join(map(str, reservations))}: see the log.")
        self.reservations = reservations


def close_overdue(*, now: dt.datetime) -> Iterator[Reservation]:
    """Expire or complete all reservations that are overdue, and yield each changed one.

    Drafts that can no longer be paid become Expired, and so do requests that nobody answered in
    time, or before they began (B26.10); their authorization is voided. Confirmed meetings that are
    over become Completed. If one fails, the others are still processed, and ExpiryIncomplete is
    raised at the end.
    """
    pending = Reservation.objects.filter(status=Status.PENDING)
    confirmed = Reservation.objects.filter(status=Status.CONFIRMED)
    is_unanswered = Q(booked_at__lte=now - dt.timedelta(hours=settings.PENDING_HOURS))
    expire_draft = functools.partial(_close, old=Status.NEW, new=Status.EXPIRED)
    complete = functools.partial(_close, old=Status.CONFIRMED, new=Status.COMPLETED)
    steps: list[tuple[Callable[[int, dt.datetime], Reservation | None], list[int]]] = [
        (expire_draft, _find(Reservation.objects.too_late_to_book(now).filter(status=Status.NEW))),
        (_expire_request, _find(pending.too_late_to_book(now) | pending.filter(is_unanswered))),
        (complete, _find(confirmed.filter(end__lte=now))),
    ]
    failed = []
    for step, ids in steps:
        for pk in ids:
            try:
                changed = step(pk, now)
            except Exception:
                logger.exception("Reservation %s could not be expired or completed.", pk)
                failed.append(pk)
            else:
                if changed is not None:
                    yield changed
    if failed:
        raise ExpiryIncomplete(failed)


def _find(rows: ReservationQuerySet) -> list[int]:
    """Return the ids of candidates. Each is checked again under its lock, as it can change."""
    return list(rows.order_by("start", "pk").values_list("pk", flat=True))


@in_transaction
def _close(
    reservation_id: int, now: dt.datetime, *, old: Status, new: Status
) -> Reservation | None:
    reservation = lock_reservation(reservation_id)
    ends = reservation.payable_until if old == Status.NEW else reservation.end
    if reservation.status != old or ends > now:
        return None
    reservation.transition_to(new, Act(None, now))
    reservation.end_waiting_change(message=NOT_PAID_IN_TIME, now=now)
    return reservation


def _expire_request(reservation_id: int, now: dt.datetime) -> Reservation | None:
    try:
        return _expire(Act(None, now), reservation_id)
    except ReservationNotOpen:
        return None
