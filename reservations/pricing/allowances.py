"""Included hours: which allowances are valid for a booking, and the ledger of their use (B14)."""

import datetime as dt
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import QuerySet, Sum

from accounts.models import User
from centers.models import MeetingRoom
from centers.records import RoomRecord
from centers.span import Span
from reservations.models import Allowance, AllowanceEntry, AllowanceUse, Reservation
from reservations.pricing.terms import round_hours
from roombook.db.compiled_queries import compiled_query, int_list_param, int_param
from roombook.errors import AllowanceExhausted

AnyRoom = MeetingRoom | RoomRecord


@dataclass(frozen=True, slots=True)
class AvailableAllowance:
    """An allowance that is valid for a booking, and the whole hours that are left of it.

    `period` is the month to which the booking counts; None for one-off hours.
    """

    allowance: Allowance
    period: dt.date | None
    hours_left: int


class AllowanceBalances:
    """A user's allowances with their balances and restrictions, read once for many bookings.

    `allowances` selects the allowances to read; by default, all active ones.
    """

    def __init__(self, user: User, *, allowances: Iterable[Allowance] | None = None) -> None:
        if allowances is None:
            allowances = active_allowances(user=user.pk)
        self._allowances = {each.pk: each for each in allowances}
        self._entered: dict[tuple[int, dt.date | None], int] = {}
        self._centers: dict[int, set[int]] = {}
        self._room_types: dict[int, set[int]] = {}
        if not self._allowances:
            return
        ids = list(self._allowances)
        for pk, period, hours in ledger_sums(allowances=ids):
            self._entered[pk, period] = hours
        for pk, center_id, room_type_id in restrictions(allowances=ids):
            if center_id is not None:
                self._centers.setdefault(pk, set()).add(center_id)
            if room_type_id is not None:
                self._room_types.setdefault(pk, set()).add(room_type_id)

    def get_available(
        self, room: AnyRoom, span: Span, *, zone: dt.tzinfo
    ) -> list[AvailableAllowance]:
        """Return the allowances that are valid for a booking, in the order in which they are used.

        The one that expires first comes first, monthly before one-off. Allowances with no hours
        left are included.
        """
        day = span.start.astimezone(zone).date()
        valid = [each for each in self._allowances.values() if self._is_valid(each, room, day)]
        valid.sort(
            key=lambda each: (each.get_last_day(day), each.kind != Allowance.Kind.MONTHLY, each.pk)
        )
        return [self._with_balance(each, each.get_period(day)) for each in valid]

    def _is_valid(self, allowance: Allowance, room: AnyRoom, day: dt.date) -> bool:
        centers, room_types = self._centers.get(allowance.pk), self._room_types.get(allowance.pk)
        return (
            (allowance.valid_from is None or allowance.valid_from <= day)
            and (allowance.valid_until is None or day <= allowance.valid_until)
            and (centers is None or room.center_id in centers)
            and (room_types is None or room.resource_type_id in room_types)
        )

    def _with_balance(self, allowance: Allowance, period: dt.date | None) -> AvailableAllowance:
        hours_left = allowance.hours + self._entered.get((allowance.pk, period), 0)
        # Quarters that came back by the terms of a cancellation count once they make a whole hour.
        return AvailableAllowance(allowance, period, max(0, math.floor(hours_left)))


def get_available(user: User, room: MeetingRoom, span: Span) -> list[AvailableAllowance]:
    """Return the user's allowances for one booking (see AllowanceBalances.get_available)."""
    return AllowanceBalances(user).get_available(room, span, zone=room.center.zone)


@compiled_query(keep_plan=True)
def active_allowances() -> QuerySet[Allowance]:
    return Allowance.objects.filter(user=int_param("user"), is_active=True)


@compiled_query(keep_plan=True)
def ledger_sums() -> QuerySet[AllowanceEntry, tuple[int, dt.date | None, int]]:
    entries = AllowanceEntry.objects.filter(allowance__any_of=int_list_param("allowances"))
    sums = entries.values_list("allowance_id", "period").annotate(hours=Sum("hours"))
    return sums.order_by()


@compiled_query(keep_plan=True)
def restrictions() -> QuerySet[Allowance, tuple[int, int | None, int | None]]:
    """Select every combination of center and room type to which the allowances are restricted.

    An allowance without restrictions has one row of NULLs.
    """
    rows = Allowance.objects.filter(pk__any_of=int_list_param("allowances"))
    return rows.values_list("pk", "centers", "room_types")


# --- The ledger ----------------------------------------------------------------------------------


def consume(reservation: Reservation, *, now: dt.datetime) -> None:
    """Enter the hours of the reservation in the ledger as used, or raise AllowanceExhausted.

    The caller holds the reservation's lock. The allowances are locked too, so that two checkouts
    cannot use the same hour.
    """
    planned = dict(planned_hours(reservation=reservation.pk))
    if not planned:
        return
    locked = (
        Allowance.objects.filter(pk__in=planned, user=reservation.user_id, is_active=True)
        .order_by("pk")
        .select_for_update(no_key=True)
    )
    room = reservation.room
    balances = AllowanceBalances(reservation.user, allowances=locked)
    available = {
        each.allowance.pk: each
        for each in balances.get_available(room, reservation.span, zone=room.center.zone)
    }
    entries = []
    for pk, hours in planned.items():
        allowance = available.get(pk)
        if allowance is None or allowance.hours_left < hours:
            raise AllowanceExhausted
        entries.append(
            AllowanceEntry(
                allowance_id=pk,
                reservation=reservation,
                period=allowance.period,
                hours=-hours,
                reason=f"Used for reservation {reservation.pk}",
                at=now,
            )
        )
    AllowanceEntry.objects.bulk_create(entries)


@compiled_query(keep_plan=False)
def planned_hours() -> QuerySet[AllowanceUse, tuple[int, int]]:
    uses = AllowanceUse.objects.filter(reservation=int_param("reservation"), hours__gt=0)
    return uses.order_by("pk").values_list("allowance_id", "hours")


def return_hours(reservation: Reservation, *, share: Decimal, now: dt.datetime) -> None:
    """Enter this share of the hours as returned. A second call changes nothing.

    Each allowance gets its share, in quarters, rounded up. The caller holds the lock.
    """
    planned = dict(planned_hours(reservation=reservation.pk)) if share < 1 else {}
    rows = (
        reservation.allowance_entries.values("allowance_id", "period")
        .annotate(balance=Sum("hours"))
        .order_by("allowance_id", "period")
    )
    entries = []
    for row in rows:
        used = planned.get(row["allowance_id"], 0)
        returned = -row["balance"] - (used - round_hours(used * share))
        if returned > 0:
            entries.append(
                AllowanceEntry(
                    allowance_id=row["allowance_id"],
                    reservation=reservation,
                    period=row["period"],
                    hours=returned,
                    reason=f"Given back by reservation {reservation.pk}",
                    at=now,
                )
            )
    AllowanceEntry.objects.bulk_create(entries)
