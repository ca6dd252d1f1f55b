"""Checks that each room is held once at a time, by whom can hold it, and has a price."""

import datetime as dt

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Greatest

from centers.models import Center, MeetingRoom, Rate, Service
from centers.rates import PRICE_FIELDS
from payments.models import Payment, PaymentState
from reservations.booking.integrity.common import (
    OVERDUE_AFTER,
    CheckList,
    Rows,
    may_be_changed,
)
from reservations.models import BookingChange, ChangeState, ChosenService, Reservation
from reservations.models.querysets import LATE_PAYMENT
from reservations.models.status import HOLDING_STATUSES, Status
from roombook.places import is_time_zone

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
    rows = Reservation.objects.filter(wrong)
    return rows.values_list("pk", "status", "start", "end", "booked_at")


@CHECKS.add("reservation {} has {} minutes of turnaround, and is occupied from {} until {}")
def turnaround_off_its_minutes(now: dt.datetime) -> Rows:
    """Find reservations that hold their room for another time than their turnaround says."""
    rows = Reservation.slots.order_by()
    # One query for each, because SQLite multiplies no intervals.
    for minutes in rows.values_list("turnaround_minutes", flat=True).distinct():
        length = dt.timedelta(minutes=minutes)
        wrong = rows.filter(turnaround_minutes=minutes).exclude(
            occupied_from=F("start") - length, occupied_until=F("end") + length
        )
        yield from wrong.values_list("pk", "turnaround_minutes", "occupied_from", "occupied_until")


@CHECKS.add("reservation {}: no room is held for its change, which waits until {:%Y-%m-%d %H:%M}")
def changes_off_their_slot(now: dt.datetime) -> Rows:
    """Find changes that wait for their payment link while their room is not held."""
    own = Reservation.slots.filter(
        holds_for=OuterRef("reservation"),
        **{name: OuterRef(name) for name in ("room", "start", "end")},
    )
    rows = BookingChange.objects.filter(
        ~Exists(own), state=ChangeState.STARTED, payment=None, link_until__gt=now, start__gt=now
    )
    return rows.values_list("reservation", "link_until")


@CHECKS.add("{} {} is at another center than its {}")
def rows_of_another_center(now: dt.datetime) -> Rows:
    """Find rooms, services and bookings with something that belongs to another center."""
    open_statuses = sorted({Status.NEW, *HOLDING_STATUSES})
    chosen = ChosenService.objects.filter(
        reservation__status__in=open_statuses, reservation__end__gt=now
    ).exclude(service__center=F("reservation__room__center"))
    for pk, name in chosen.values_list("reservation", "service__name"):
        yield "reservation", pk, f"service {name}"
    for model, part in ((MeetingRoom, "rate"), (MeetingRoom, "terms"), (Service, "rate")):
        rows = model.objects.filter(**{f"{part}__isnull": False})
        rows = rows.exclude(**{f"{part}__center": F("center")})
        name = "room" if model is MeetingRoom else "service"
        yield from ((name, pk, part) for pk in rows.values_list("pk", flat=True))
    rows = Center.objects.filter(terms__isnull=False).exclude(terms__center=F("pk"))
    yield from (("center", pk, "terms") for pk in rows.values_list("pk", flat=True))


@CHECKS.add("reservation {}: its room {} has no price, or an unknown time zone: {}")
def bookings_without_a_price_or_a_time(now: dt.datetime) -> Rows:
    """Find bookings to come whose room lost its rate, or its center's time zone is unknown.

    Staff can take a room out of use by removing its rate; the audit log has that.
    """
    rows = Reservation.objects.filter(status__in=sorted(HOLDING_STATUSES), end__gt=now)
    prices = [name for names in PRICE_FIELDS.values() for name in names]
    no_price = Q(room__rate=None) | Q(**{f"room__rate__{name}": None for name in prices})
    by_staff = may_be_changed(now, MeetingRoom, "room", "rate")
    by_staff |= may_be_changed(now, Rate, "room__rate", *prices)
    zones = Center.objects.order_by().values_list("time_zone_id", flat=True).distinct()
    unknown = [zone for zone in zones if not is_time_zone(zone)]
    rows = rows.filter(Q(no_price, ~by_staff) | Q(room__center__time_zone_id__in=unknown))
    return rows.values_list("pk", "room", "room__center__time_zone_id")
