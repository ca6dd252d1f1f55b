"""Included hours: which are good for a booking, and the taking and giving back of them (B14)."""

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Sum

from centers.models import MeetingRoom
from centers.span import Span
from reservations.models import Allowance, AllowanceEntry, Reservation
from reservations.scope import among
from roombook.errors import AllowanceExhausted

if TYPE_CHECKING:
    from accounts.models import User


@dataclass(frozen=True, slots=True)
class Offer:
    """An allowance that is valid for a booking, and the whole hours that are left of it."""

    allowance: Allowance
    period: dt.date | None
    hours_left: int


class AllowanceBook:
    """An account's allowances with their ledgers, read once: asked about one booking or many."""

    def __init__(self, user: "User") -> None:
        self._allowances = list(
            Allowance.objects.filter(user=user, is_active=True).prefetch_related(
                "centers", "room_types"
            )
        )
        rows = (
            AllowanceEntry.objects.filter(allowance__in=self._allowances)
            .values_list("allowance_id", "period")
            .annotate(hours=Sum("hours"))
            .order_by()
        )
        self._entered = {(pk, period): hours for pk, period, hours in rows}

    def valid_for(self, room: MeetingRoom, span: Span) -> list[Offer]:
        """The allowances that may be used for a booking, in the order of their use.

        Soonest to expire first, monthly before one-off. Those with no hour left are listed too.
        """
        day = span.start.astimezone(room.center.zone).date()
        valid = [each for each in self._allowances if _is_valid(each, room, day)]
        valid.sort(
            key=lambda each: (each.expires_on(day), each.kind != Allowance.Kind.MONTHLY, each.pk)
        )
        return [self._offer(each, each.period_of(day)) for each in valid]

    def _offer(self, allowance: Allowance, period: dt.date | None) -> Offer:
        left = allowance.hours + self._entered.get((allowance.pk, period), 0)
        return Offer(allowance, period, max(0, left))


def valid_for(user: "User", room: MeetingRoom, span: Span) -> list[Offer]:
    return AllowanceBook(user).valid_for(room, span)


def _is_valid(allowance: Allowance, room: MeetingRoom, day: dt.date) -> bool:
    return (
        (allowance.valid_from is None or allowance.valid_from <= day)
        and (allowance.valid_until is None or day <= allowance.valid_until)
        and among(allowance.centers, room.center_id)
        and among(allowance.room_types, room.resource_type_id)
    )


def take(reservation: Reservation, *, now: dt.datetime) -> None:
    """Enter the hours that the reservation uses in the ledger, or raise if they are gone.

    The caller holds the reservation's lock; the allowances' own locks keep two checkouts from
    taking the same hour.
    """
    uses = list(reservation.allowance_uses.filter(hours__gt=0))
    if not uses:
        return
    wanted = {use.allowance_id: use.hours for use in uses}
    locked = Allowance.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")
    list(locked)
    valid = valid_for(reservation.user, reservation.room, reservation.span)
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


def give_back(reservation: Reservation, *, now: dt.datetime) -> None:
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
