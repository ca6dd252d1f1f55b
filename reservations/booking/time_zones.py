"""Tells customers that a setting of their center has changed what they know of a booking (B18).

A new time zone moves the bookings and closures to come, which keep their local times, or changes
the local times of those that keep their instants.
"""

import datetime as dt
from collections.abc import Mapping
from copy import copy

from django.dispatch import receiver

from accounts.act import Act
from accounts.models import User
from centers.closure_effects import time_zone_changed
from centers.models import Center
from centers.span import Span
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from reservations.booking.locks import lock_room
from reservations.models import Reservation, history
from reservations.notifications import emails
from roombook import money
from roombook.errors import SlotUnavailable

Times = tuple[dt.datetime, dt.datetime]


def announce(
    reservation: Reservation,
    changes: Mapping[str, tuple[object, object]],
    act: Act,
    *,
    former: Reservation,
) -> None:
    """Record a change; of a booking, tell calendars and the customer too."""
    is_booked = reservation.booked_at is not None
    reservation.version += 1
    columns = ["version"]
    if is_booked:
        columns += reservation.advance_calendar(act.now)
    reservation.save(update_fields=columns)
    history.record_changes(reservation, changes, act)
    if is_booked:
        emails.send_rescheduled(
            reservation,
            former=former,
            refund=money.ZERO,
            charge=money.ZERO,
            now=act.now,
        )


@receiver(time_zone_changed)
def keep_times(
    sender: object,
    *,
    center: Center,
    former_zone: str,
    keeps_instants: bool,
    by: User | None,
    now: dt.datetime,
    **_: object,
) -> None:
    """Move what is to come, or announce its new local times. The center is saved.

    Raises SlotUnavailable, which names what cannot keep its local time.
    """
    for room_id in center.rooms.order_by("pk").values_list("pk", flat=True):
        lock_room(room_id)
    former_center = copy(center)
    former_center.time_zone_id = former_zone

    def keep(span: Span) -> Times:
        local = span.to_local(former_center.zone)
        start, end = (at.replace(tzinfo=center.zone).astimezone(dt.UTC) for at in local)
        return (span.start, span.end) if keeps_instants else (start, end)

    for closure in center.closures.filter(ends_at__gt=now):
        closure.starts_at, closure.ends_at = keep(closure.span)
        if closure.starts_at >= closure.ends_at:
            raise SlotUnavailable(
                f"The closure {closure} cannot keep its local time, because the clock skips it."
                " Delete it first. Nothing was changed."
            )
        closure.save(update_fields=["starts_at", "ends_at"])
    rows = Reservation.objects.touched_by_time_zone(center, former_zone, now)
    rows = rows.select_related("user", "promo_code", "room").order_by("start", "pk")
    found = list(rows.select_for_update(no_key=True, of=("self",)))
    moves = [(row, keep(row.span)) for row in found]
    for row in found:
        row.end_waiting_change(message="The time zone of the center has changed.", now=now)
    # What becomes later moves first, the last one before the others, so that its place is free.
    later = [move for move in reversed(moves) if move[1][0] > move[0].start]
    for reservation, times in [*later, *(move for move in moves if move[1][0] <= move[0].start)]:
        former = copy(reservation)
        former.room = copy(reservation.room)
        former.room.center, reservation.room.center = former_center, center
        if not keeps_instants:
            _move(reservation, times, former.span.to_local(former_center.zone))
        changes = {
            "start": (former.start, reservation.start),
            "end": (former.end, reservation.end),
            "time_zone": (former_zone, center.time_zone_id),
        }
        announce(reservation, changes, Act(by, now), former=former)
        # At the same instant, it can be another local day.
        post(reservation.pk, EventKind.CHANGED, by=by, now=now)


def _move(reservation: Reservation, times: Times, local: Times) -> None:
    try:
        # The clock skips what is another local time in UTC and back.
        if times[0] >= times[1] or Span(*times).to_local(reservation.room.center.zone) != local:
            raise SlotUnavailable
        reservation.start, reservation.end = times
        if reservation.hold_until is not None:
            reservation.hold_until = min(reservation.hold_until, reservation.payable_until)
        reservation.save(
            update_fields=["start", "end", "occupied_from", "occupied_until", "hold_until"]
        )
    except SlotUnavailable as error:
        raise SlotUnavailable(
            f"{reservation} cannot keep its local time: the clock skips it, or it meets another"
            " booking. Move or cancel it first. Nothing was changed."
        ) from error
