"""Included hours: which are good for a booking, and the taking and giving back of them (B14)."""

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Sum

from centers.models import MeetingRoom
from centers.span import Span
from reservations.models import Allowance, AllowanceEntry, AllowanceUse, Reservation
from roombook.db.compiled_queries import compiled_query, int_list_param, int_param
from roombook.errors import AllowanceExhausted

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User
    from centers.records import RoomRecord


@dataclass(frozen=True, slots=True)
class AvailableAllowance:
    """An allowance that is valid for a booking, and the whole hours that are left of it."""

    allowance: Allowance
    period: dt.date | None
    hours_left: int


class AllowanceBalances:
    """An account's allowances with their ledgers, read once: asked about one booking or many."""

    def __init__(self, user: "User") -> None:
        self._allowances = active_allowances(user=user.pk)
        self._entered: dict[tuple[int, dt.date | None], int] = {}
        self._centers: dict[int, set[int]] = {}
        self._room_types: dict[int, set[int]] = {}
        if not self._allowances:
            return
        ids = [each.pk for each in self._allowances]
        for pk, period, hours in ledger_sums(allowances=ids):
            self._entered[pk, period] = hours
        for pk, bound_to in center_restrictions(allowances=ids):
            self._centers.setdefault(pk, set()).add(bound_to)
        for pk, bound_to in room_type_restrictions(allowances=ids):
            self._room_types.setdefault(pk, set()).add(bound_to)

    def get_available(
        self, room: "MeetingRoom | RoomRecord", span: Span, *, zone: dt.tzinfo
    ) -> list[AvailableAllowance]:
        """The allowances that may be used for a booking, in the order of their use.

        Soonest to expire first, monthly before one-off. Those with no hour left are listed too.
        """
        day = span.start.astimezone(zone).date()
        valid = [each for each in self._allowances if self._is_valid(each, room, day)]
        valid.sort(
            key=lambda each: (each.get_last_day(day), each.kind != Allowance.Kind.MONTHLY, each.pk)
        )
        return [self._offer(each, each.get_period(day)) for each in valid]

    def _is_valid(
        self, allowance: Allowance, room: "MeetingRoom | RoomRecord", day: dt.date
    ) -> bool:
        centers, room_types = self._centers.get(allowance.pk), self._room_types.get(allowance.pk)
        return (
            (allowance.valid_from is None or allowance.valid_from <= day)
            and (allowance.valid_until is None or day <= allowance.valid_until)
            # Bound to none is valid for all.
            and (not centers or room.center_id in centers)
            and (not room_types or room.resource_type_id in room_types)
        )

    def _offer(self, allowance: Allowance, period: dt.date | None) -> AvailableAllowance:
        left = allowance.hours + self._entered.get((allowance.pk, period), 0)
        return AvailableAllowance(allowance, period, max(0, left))


def get_available(user: "User", room: MeetingRoom, span: Span) -> list[AvailableAllowance]:
    return AllowanceBalances(user).get_available(room, span, zone=room.center.zone)


@compiled_query(keep_plan=True)
def active_allowances() -> "QuerySet[Allowance]":
    return Allowance.objects.filter(user=int_param("user"), is_active=True)


@compiled_query(keep_plan=True)
def ledger_sums() -> "QuerySet[Any, Any]":
    entries = AllowanceEntry.objects.filter(allowance__any_of=int_list_param("allowances"))
    sums = entries.values_list("allowance_id", "period").annotate(hours=Sum("hours"))
    return sums.order_by()


@compiled_query(keep_plan=True)
def center_restrictions() -> "QuerySet[Any, Any]":
    bound = Allowance.centers.through.objects
    rows = bound.filter(allowance__any_of=int_list_param("allowances"))
    return rows.values_list("allowance_id", "center_id")


@compiled_query(keep_plan=True)
def room_type_restrictions() -> "QuerySet[Any, Any]":
    bound = Allowance.room_types.through.objects
    rows = bound.filter(allowance__any_of=int_list_param("allowances"))
    return rows.values_list("allowance_id", "resourcetype_id")


def consume(reservation: Reservation, *, now: dt.datetime) -> None:
    """Enter the hours that the reservation uses in the ledger, or raise if they are gone.

    The caller holds the reservation's lock; the allowances' own locks keep two checkouts from
    taking the same hour.
    """
    wanted = dict(planned_hours(reservation=reservation.pk))
    if not wanted:
        return
    locked = Allowance.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")
    list(locked)
    valid = get_available(reservation.user, reservation.room, reservation.span)
    offers = {offer.allowance.pk: offer for offer in valid}
    entries = []
    for pk, hours in wanted.items():
        offer = offers.get(pk)
        if offer is None or offer.hours_left < hours:
            raise AllowanceExhausted
        entries.append(
            AllowanceEntry(
                allowance_id=pk,
                reservation=reservation,
                period=offer.period,
                hours=-hours,
                reason=f"Used for reservation {reservation.pk}",
                at=now,
            )
        )
    AllowanceEntry.objects.bulk_create(entries)


@compiled_query(keep_plan=False)
def planned_hours() -> "QuerySet[Any, Any]":
    uses = AllowanceUse.objects.filter(reservation=int_param("reservation"), hours__gt=0)
    return uses.order_by("pk").values_list("allowance_id", "hours")


def return_hours(reservation: Reservation, *, now: dt.datetime) -> None:
    """Enter the hours as given back; a second time does nothing. The caller holds the lock."""
    rows = (
        reservation.allowance_entries.values("allowance_id", "period")
        .annotate(balance=Sum("hours"))
        .order_by("allowance_id", "period")
    )
    AllowanceEntry.objects.bulk_create(
        AllowanceEntry(
            allowance_id=row["allowance_id"],
            reservation=reservation,
            period=row["period"],
            hours=-row["balance"],
            reason=f"Given back by reservation {reservation.pk}",
            at=now,
        )
        for row in rows
        if row["balance"] < 0
    )
