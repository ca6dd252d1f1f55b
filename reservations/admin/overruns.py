"""Offers to book the room for longer while a meeting takes place."""

import datetime as dt
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse

from accounts import roles
from centers.hours import round_up_to_slot
from centers.rooms import get_booking_rules
from centers.span import Span
from reservations.models import Reservation
from reservations.models.querysets import get_conflict_bounds, overlaps
from reservations.models.status import Status

if TYPE_CHECKING:
    from accounts.models import User


def get_overrun_urls(
    reservations: Iterable[Reservation], user: "User", *, now: dt.datetime
) -> dict[int, str]:
    """The pages that book the room for longer, by the ids of the meetings that take place now.

    The rest is a booking of its own, which the customer pays like any other. In a room with a
    turnaround it begins after the turnaround of the meeting, as every booking must: the customer
    has that time anyway. It is not offered if the next booking of the room leaves no time for it.
    """
    spans = {
        row: _get_shortest_overrun(row)
        for row in reservations
        if row.status == Status.CONFIRMED
        and row.start <= now < row.end
        and roles.has_permission(user, roles.ADD_RESERVATION, row.room.center_id)
    }
    if not spans:
        return {}
    conflicts = reduce(or_, (_select_conflicts(row, span) for row, span in spans.items()))
    holds = Reservation.objects.active_holds(now).filter(conflicts)
    taken = set(holds.values_list("room", flat=True))
    return {
        row.pk: _build_url(row, span) for row, span in spans.items() if row.room_id not in taken
    }


def _get_shortest_overrun(reservation: Reservation) -> Span:
    room = reservation.room
    rules = get_booking_rules(room)
    turnaround = max(room.turnaround_minutes, reservation.turnaround_minutes)
    start = round_up_to_slot(
        reservation.end + dt.timedelta(minutes=turnaround), room.center.zone, rules.slot_minutes
    )
    minutes = max(rules.minimum_minutes, rules.slot_minutes)
    return Span(start, start + dt.timedelta(minutes=minutes))


def _select_conflicts(reservation: Reservation, span: Span) -> Q:
    """Other reservations of the room; the customer's own drafts are no conflicts."""
    bounds = get_conflict_bounds(span, reservation.room.turnaround_minutes)
    own_drafts = Q(user=reservation.user_id, status=Status.NEW)
    return Q(room=reservation.room_id) & overlaps(**bounds) & ~own_drafts


def _build_url(reservation: Reservation, span: Span) -> str:
    room = reservation.room
    start, end = span.to_local(room.center.zone)
    query = {
        "center": room.center_id,
        "room": room.pk,
        "user": reservation.user_id,
        "number_of_attendees": reservation.number_of_attendees,
        "start": start.isoformat(timespec="minutes"),
        "end": end.isoformat(timespec="minutes"),
    }
    return f"{reverse('admin:reservations_reservation_add')}?{urlencode(query)}"
