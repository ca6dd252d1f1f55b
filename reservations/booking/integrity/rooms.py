"""Checks that each room is held only once at a time, and only by reservations that can hold it."""

import datetime as dt

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, Subquery

from payments.models import Payment, PaymentState
from reservations.booking.integrity.common import OVERDUE_AFTER, CheckList, Rows
from reservations.models import Reservation
from reservations.models.status import Status

CHECKS = CheckList()


@CHECKS.add("reservations {} and {} both hold room {}")
def overlapping_holders(now: dt.datetime) -> Rows:
    """Find two reservations that hold the same room at the same time, with their turnaround."""
    conflicts = Reservation.objects.filter(
        room=OuterRef("room"),
        holds_slot=True,
        pk__gt=OuterRef("pk"),
    ).filter(
        Q(start__lt=OuterRef("occupied_until"), occupied_until__gt=OuterRef("start"))
        | Q(occupied_from__lt=OuterRef("end"), end__gt=OuterRef("occupied_from"))
    )
    rows = Reservation.objects.filter(holds_slot=True).annotate(
        conflict=Subquery(conflicts.order_by("pk").values("pk")[:1])
    )
    return rows.filter(conflict__isnull=False).values_list("pk", "conflict", "room")


@CHECKS.add("reservation {} is Processing without a payment under way")
def processing_without_payment(now: dt.datetime) -> Rows:
    """Find reservations that wait for a payment that does not exist."""
    paying = Payment.objects.filter(reservation=OuterRef("pk"), state=PaymentState.STARTED)
    rows = Reservation.objects.filter(status=Status.PROCESSING).exclude(Exists(paying))
    return rows.values_list("pk")


@CHECKS.add("reservation {} is New and held until {:%Y-%m-%d %H:%M} UTC")
def drafts_held_too_long(now: dt.datetime) -> Rows:
    """Find drafts that hold their room for longer than is allowed, or beyond their start."""
    latest = now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF) + OVERDUE_AFTER
    is_too_long = Q(hold_until__gt=latest) | Q(hold_until__gt=F("start"))
    rows = Reservation.objects.filter(is_too_long, status=Status.NEW)
    return rows.values_list("pk", "hold_until")
