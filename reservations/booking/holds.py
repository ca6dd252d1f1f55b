"""Releases the holds of drafts: they stay New and can be paid while their room is free (B15.2)."""

import datetime as dt
from collections.abc import Sequence

from django.conf import settings
from django.db.models import BooleanField, ExpressionWrapper, Q

from accounts.models import User
from centers.models import MeetingRoom
from centers.span import Span
from reservations.models import Reservation
from reservations.models.querysets import NO_ID, get_conflict_bounds, overlaps
from roombook.db.compiled_queries import RowQuerySet, compiled_query, datetime_param, int_param


def release_conflicting_holds(
    room: MeetingRoom,
    span: Span,
    *,
    user: User,
    now: dt.datetime,
    excluding: Reservation | None = None,
    turnaround_minutes: int | None = None,
) -> list[int]:
    """Release expired holds of the room, and the customer's own drafts that overlap the span.

    Returns the other drafts that this customer made and that hold rooms, newest first. The caller
    holds the room's lock. `turnaround_minutes` is by default that of the room now.
    """
    if turnaround_minutes is None:
        turnaround_minutes = room.turnaround_minutes
    rows = holds_of_room_and_customer(
        room=room.pk,
        user=user.pk,
        **get_conflict_bounds(span, turnaround_minutes),
        now=now,
        excluded=excluding.pk if excluding else NO_ID,
    )
    release_holds([pk for pk, is_conflicting in rows if is_conflicting], now=now)
    return [pk for pk, is_conflicting in rows if not is_conflicting]


def release_holds_for(reservation: Reservation, *, now: dt.datetime) -> None:
    """Release the holds that conflict with a draft, so that it can hold its room again.

    It counts as one more hold (B15.2): above HELD_DRAFTS_MAX, the customer's oldest are released.
    """
    own_drafts = release_conflicting_holds(
        reservation.room,
        reservation.span,
        user=reservation.user,
        now=now,
        excluding=reservation,
        turnaround_minutes=reservation.turnaround_minutes,
    )
    if reservation.created_by_id is None:
        others = [pk for pk in own_drafts if pk != reservation.pk]
        release_holds(others[settings.HELD_DRAFTS_MAX - 1 :], now=now)


@compiled_query(keep_plan=True)
def holds_of_room_and_customer() -> RowQuerySet:
    now, user = datetime_param("now"), int_param("user")
    overlapping = overlaps(
        datetime_param("start"),
        datetime_param("end"),
        datetime_param("wide_start"),
        datetime_param("wide_end"),
    )
    own_overlapping = Q(overlapping, user=user, holds_for__isnull=True) & ~Q(
        pk=int_param("excluded")
    )
    conflicting = Q(Q(hold_until__lte=now) | own_overlapping, room=int_param("room"))
    # A hold ends at the start of the meeting at the latest.
    own = Q(user=user, start__gt=now, hold_until__gt=now, created_by__isnull=True)
    rows = Reservation.slots.drafts_with_hold().filter(conflicting | own)
    is_conflicting = ExpressionWrapper(conflicting, output_field=BooleanField())
    return rows.order_by("-created_at", "-pk").values_list("pk", is_conflicting)


def release_holds(reservation_ids: Sequence[int], *, now: dt.datetime) -> None:
    if reservation_ids:
        Reservation.slots.filter(pk__in=reservation_ids).release_holds(now)
