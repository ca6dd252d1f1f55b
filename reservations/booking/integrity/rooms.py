"""Checks that each room is held only once at a time, and only by reservations that can hold it."""

import datetime as dt

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Greatest

from payments.models import Payment, PaymentState
from reservations.booking.integrity.common import OVERDUE_AFTER, CheckList, Rows
from reservations.models import BookingChange, ChangeState, Reservation
from reservations.models.querysets import LATE_PAYMENT
from reservations.models.status import BOOKED_STATUSES, Status

CHECKS = CheckList()


@CHECKS.add("reservations {} and {} both hold room {}")
def overlapping_holders(now: dt.datetime) -> Rows:
    """Find two reservations that hold the same room at the same time, with their turnaround."""
    slots = Reservation.slots.filter(holds_slot=True).annotate(holder=Coalesce("holds_for", "pk"))
    conflicts = slots.filter(
        ~Q(holder=OuterRef("holder")), room=OuterRef("room"), pk__gt=OuterRef("pk")
    ).filter(
        Q(start__lt=OuterRef("occupied_until"), occupied_until__gt=OuterRef("start"))
        | Q(occupied_from__lt=OuterRef("end"), end__gt=OuterRef("occupied_from"))
    )
    rows = slots.annotate(conflict=Subquery(conflicts.order_by("pk").values("pk")[:1]))
    return rows.filter(conflict__isnull=False).values_list("pk", "conflict", "room")


@CHECKS.add("room {} is held for a change of reservation {} that does not wait")
def slots_held_for_no_change(now: dt.datetime) -> Rows:
    """Find rooms that are held although no change of the booking waits for its payment link."""
    waiting = BookingChange.objects.filter(
        reservation=OuterRef("holds_for"), payment=None, state=ChangeState.STARTED
    )
    rows = Reservation.slots.filter(~Exists(waiting), holds_for__isnull=False)
    return rows.values_list("room", "holds_for")


@CHECKS.add("reservation {} is Processing without a payment under way")
def processing_without_payment(now: dt.datetime) -> Rows:
    """Find reservations that wait for a payment that does not exist."""
    paying = Payment.objects.filter(reservation=OuterRef("pk"), state=PaymentState.STARTED)
    rows = Reservation.objects.filter(status=Status.PROCESSING).exclude(Exists(paying))
    return rows.values_list("pk")


@CHECKS.add("reservation {} is New and held until {:%Y-%m-%d %H:%M} UTC")
def drafts_held_too_long(now: dt.datetime) -> Rows:
    """Find drafts that hold their room for longer than is allowed, or after they can be paid."""
    latest = now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF) + OVERDUE_AFTER
    is_too_long = Q(hold_until__gt=latest) | Q(
        hold_until__gt=Greatest("start", "created_at") + LATE_PAYMENT
    )
    is_too_long |= Q(hold_until__gt=F("start"), created_by=None)
    rows = Reservation.objects.filter(is_too_long, status=Status.NEW)
    return rows.values_list("pk", "hold_until")


@CHECKS.add("reservation {} is {}, from {:%Y-%m-%d %H:%M} to {:%Y-%m-%d %H:%M} UTC, booked at {}")
def statuses_off_their_times(now: dt.datetime) -> Rows:
    """Find bookings whose status contradicts their times: expire_reservations may not run."""
    long_ago = now - dt.timedelta(days=5)
    unanswered = long_ago - dt.timedelta(hours=settings.PENDING_HOURS)
    wrong = Q(status__in=[Status.COMPLETED, Status.NO_SHOW], start__gt=now)
    wrong |= Q(status=Status.CONFIRMED, end__lt=long_ago)
    wrong |= Q(status=Status.PENDING) & (Q(booked_at__lt=unanswered) | Q(start__lt=long_ago))
    wrong |= Q(status__in=sorted(BOOKED_STATUSES), booked_at=None)
    wrong |= Q(status=Status.CANCELLED, cancelled_at=None)
    # The turnaround time was lost.
    is_short = Q(occupied_from=F("start")) | Q(occupied_until=F("end"))
    wrong |= Q(turnaround_minutes__gt=0) & is_short
    rows = Reservation.objects.filter(wrong)
    return rows.values_list("pk", "status", "start", "end", "booked_at")
