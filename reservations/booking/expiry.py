"""Expires drafts and requests whose time has passed, and completes meetings that are over (B26)."""

import datetime as dt
import functools
import logging
from collections.abc import Callable, Iterator

from django.conf import settings
from django.db.models import Q

from accounts.act import Act
from reservations.booking import approval
from reservations.booking.locks import lock_reservation
from reservations.models import ChangeState, Reservation
from reservations.models.changes import NOT_PAID_IN_TIME
from reservations.models.querysets import ReservationQuerySet
from reservations.models.status import Status
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen

logger = logging.getLogger(__name__)


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
        (_end_link, _find(_with_ended_link(now))),
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
    return reservation


def _with_ended_link(now: dt.datetime) -> ReservationQuerySet:
    """Return the bookings that are over, and whose change was not paid by its link in time."""
    rows = Reservation.objects.filter(
        changes__payment=None, changes__state=ChangeState.STARTED, changes__link_until__lte=now
    )
    return rows.filter(end__lte=now)


@in_transaction
def _end_link(reservation_id: int, now: dt.datetime) -> None:
    reservation = lock_reservation(reservation_id)
    has_ended = _with_ended_link(now).filter(pk=reservation_id).exists()
    if has_ended and not reservation.is_paying_for_change:
        reservation.end_waiting_change(message=NOT_PAID_IN_TIME, now=now)


def _expire_request(reservation_id: int, now: dt.datetime) -> Reservation | None:
    try:
        return approval.expire(Act(None, now), reservation_id)
    except ReservationNotOpen:
        return None
