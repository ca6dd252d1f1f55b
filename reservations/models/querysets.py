"""The queryset of reservations."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypedDict

from django.apps import apps
from django.db import models
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, Sum, Value, When
from django.db.models.expressions import OrderBy
from django.db.models.functions import Coalesce, Least

from centers.hours import is_open
from centers.models import Center, Closure, OpeningHours
from centers.span import Span
from payments.ledger.accounts import Account
from payments.ledger.facts import Bill
from reservations.models.bill import LineItemType, PriceAdjustment
from reservations.models.status import FINISHED_STATUSES, HOLDING_STATUSES, REVENUE_STATUSES, Status
from roombook import places
from roombook.db.compiled_queries import RowQuerySet, compiled_query, int_param
from roombook.money import take_share, to_hundredths

if TYPE_CHECKING:
    from accounts.models import User
    from reservations.models.reservation import Reservation  # noqa: F401 (base class)


# More of a kind are listed when some of these are resolved.
MAX_UNRESOLVED = 200

HAS_CLOSED_ROOM = (
    Q(room__is_active=False) | Q(room__is_blocked=True) | Q(room__center__is_active=False)
)
HAS_SMALL_ROOM = Q(number_of_attendees__gt=F("room__capacity"))
# The customer was written to before the address changed.
HAS_FORMER_ADDRESS = Q(
    room__center__address_changed_at__gt=Coalesce("calendar_changed_at", "booked_at")
)


def get_next_first(now: dt.datetime) -> tuple[OrderBy, ...]:
    """The order in which a search shows bookings: what is open and not over, then the past."""
    is_next = Q(end__gt=now, status__in=sorted({Status.NEW, *HOLDING_STATUSES}))
    next_start = Case(When(is_next, then=F("start")))
    return (next_start.asc(nulls_last=True), F("start").desc(), F("pk").desc())


# For so long after its start, or after it was made if that was later, a draft by staff can be paid.
LATE_PAYMENT = dt.timedelta(minutes=15)
NO_ID = 0  # No row has this id, so excluding it excludes nothing.


class ConflictBounds(TypedDict):
    """The ends of a span, without and with its own turnaround time."""

    start: dt.datetime
    end: dt.datetime
    wide_start: dt.datetime
    wide_end: dt.datetime


def get_conflict_bounds(span: Span, turnaround_minutes: int) -> ConflictBounds:
    wide = span.expand(dt.timedelta(minutes=turnaround_minutes))
    return ConflictBounds(start=span.start, end=span.end, wide_start=wide.start, wide_end=wide.end)


def overlaps(
    start: dt.datetime, end: dt.datetime, wide_start: dt.datetime, wide_end: dt.datetime
) -> Q:
    """Return whether reservations overlap a span, with the larger of both turnaround times.

    `wide_start` and `wide_end` are the span with its own turnaround (`get_conflict_bounds`).
    """
    with_our_turnaround = Q(start__lt=wide_end, end__gt=wide_start)
    with_their_turnaround = Q(occupied_from__lt=end, occupied_until__gt=start)
    return with_our_turnaround | with_their_turnaround


# What the lines of a bill add to the ledger.
ACCOUNTS = {
    LineItemType.ROOM: Account.ROOM,
    LineItemType.SETUP_FEE: Account.SETUP,
    LineItemType.SERVICE: Account.SERVICES,
    LineItemType.EXTRA: Account.SERVICES,
    LineItemType.ALLOWANCE: Account.INCLUDED_HOURS,
    LineItemType.PROMOTION: Account.PROMOTIONS,
    LineItemType.ADJUSTMENT: Account.ADJUSTMENTS,
    LineItemType.TAX: Account.TAX_PAYABLE,
}


class ReservationQuerySet(models.QuerySet["Reservation"]):
    def for_user(self, user: "User") -> Self:
        """Return the customer's own reservations."""
        return self.filter(user=user)

    @staticmethod
    def read_bill(pk: int) -> Bill:
        """Return the bill of a reservation as the ledger needs it."""
        return _build_bill([row for _, *row in bill_by_reservation(reservation=pk)])

    def read_bills(self, reservations: Collection[int]) -> dict[int, Bill]:
        """Return the bills of reservations, in one statement."""
        found = defaultdict[int, list[Sequence[Any]]](list)
        for pk, *row in _select_bills(self.filter(pk__in=reservations)):
            found[pk].append(row)
        return {pk: _build_bill(rows) for pk, rows in found.items()}

    def active_holds(self, now: dt.datetime) -> Self:
        """Return the reservations that hold their room; a New one only until its hold expires."""
        return self.filter(
            Q(status__in=sorted(HOLDING_STATUSES)) | Q(status=Status.NEW, hold_until__gt=now),
            holds_slot=True,
        )

    def occupying_time(self, now: dt.datetime) -> Self:
        """Return the reservations on a timeline: they hold their room, or have taken place."""
        return self.filter(
            Q(status__in=sorted(HOLDING_STATUSES | FINISHED_STATUSES))
            | Q(status=Status.NEW, hold_until__gt=now)
        )

    def to_come(self, now: dt.datetime) -> Self:
        """Return the bookings, and the requests, whose meeting has not begun."""
        return self.filter(status__in=[Status.PENDING, Status.CONFIRMED], start__gt=now)

    def unresolved(self, now: dt.datetime) -> Self:
        """Return the bookings to come that settings have made impossible or wrong since (B18).

        Each condition is a query of its own, because only then indexes are used.
        """
        rows = self.to_come(now)
        closures = Closure.objects.closing(OuterRef("room"), center=OuterRef("room__center"))
        found = (
            rows.filter(condition).order_by("start").values_list("pk", flat=True)[:MAX_UNRESOLVED]
            for condition in (
                Exists(closures.overlapping(OuterRef("start"), OuterRef("end"))),
                HAS_CLOSED_ROOM,
                HAS_SMALL_ROOM | HAS_FORMER_ADDRESS,
            )
        )
        return rows.filter(pk__in={*chain(*found), *rows._find_outside_hours()})

    def touched_by_time_zone(self, center: Center, former_zone: str, now: dt.datetime) -> Self:
        """Return what is to come, drafts too, and shows another local time in the new zone."""
        zones = places.get_time_zone(former_zone), center.zone
        statuses = HOLDING_STATUSES | {Status.NEW}
        rows = self.filter(room__center=center, status__in=sorted(statuses), start__gt=now)
        return self.filter(
            pk__in=[
                pk
                for pk, start, end in rows.order_by().values_list("pk", "start", "end")
                if Span(start, end).to_local(zones[0]) != Span(start, end).to_local(zones[1])
            ]
        )

    def _find_outside_hours(self) -> Iterator[int]:
        """Find the bookings outside of hours that have changed since they were made."""
        rows = self.filter(
            room__center__hours_changed_at__gt=F("created_at"),
            room__center__is_after_hours_support_enabled=False,
            hours_override_reason="",
        ).values_list("pk", "start", "end", "room__center", "room__center__time_zone_id")
        found = list(rows)
        weeks = defaultdict(list)
        for row in OpeningHours.objects.filter(center__in={center for *_, center, _ in found}):
            weeks[row.center_id].append(row)
        for pk, start, end, center, zone in found:
            if not is_open(Span(start, end), weeks[center], places.get_time_zone(zone)):
                yield pk

    def counting_as_revenue(self) -> Self:
        """Return the reservations whose total counts as revenue, in every report."""
        return self.filter(status__in=sorted(REVENUE_STATUSES))

    def drafts_with_hold(self) -> Self:
        """Return drafts that are marked as holding, whether their hold has expired or not."""
        return self.filter(status=Status.NEW, holds_slot=True)

    def release_holds(self, now: dt.datetime) -> int:
        """Release the rooms of drafts. They stay New and can be paid while the room is free."""
        ended_at = Least("hold_until", Value(now))
        return self.drafts_with_hold().update(holds_slot=False, hold_until=ended_at)

    def too_late_to_book(self, now: dt.datetime) -> Self:
        """Return what began too long ago to be paid or approved (`Reservation.payable_until`)."""
        by_customer = Q(created_by=None) | Q(end__lte=now)
        late = now - LATE_PAYMENT
        by_staff = Q(start__lte=late, created_at__lte=late)
        return self.filter(by_customer | by_staff, start__lte=now)

    def hold_expiring(self, now: dt.datetime, within: dt.timedelta) -> Self:
        """Return drafts by staff whose hold expires soon and whose customer got no reminder yet."""
        return self.filter(
            status=Status.NEW,
            created_by__isnull=False,
            reminded_at__isnull=True,
            hold_until__gt=now,
            hold_until__lte=now + within,
            start__gt=now,
        )

    def meeting_reminder_due(self, now: dt.datetime, within: dt.timedelta) -> Self:
        """Return the meetings that begin soon and whose customers were not reminded yet (B24.5).

        Not those whose customer got another e-mail about it within that time before the start.
        """
        changed_at = Coalesce("calendar_changed_at", "booked_at")
        return self.filter(
            status=Status.CONFIRMED,
            start__gt=now,
            start__lte=now + within,
            start__gte=changed_at + within,
        ).exclude(reminded_of_start=F("start"))

    def in_calendar(self, since: dt.datetime) -> Self:
        """Return the reservations that were ever booked and start from this time on, in order."""
        return self.filter(booked_at__isnull=False, start__gte=since).order_by("start", "pk")

    def conflicting(
        self, bounds: ConflictBounds, *, now: dt.datetime, user: int, excluded: int = NO_ID
    ) -> Self:
        """Return the reservations that prevent the account's booking of a span (B11.2, B11.3).

        The slot that is held for a change of the excluded booking does not prevent it either.
        """
        return (
            self.active_holds(now)
            .filter(overlaps(**bounds))
            .exclude(user=user, status=Status.NEW, holds_for__isnull=True)
            .exclude(Q(pk=excluded) | Q(holds_for=excluded))
        )

    def between(self, first: dt.datetime | None, last: dt.datetime | None) -> Self:
        """Return the reservations that overlap the time from first to last; None means no limit."""
        rows = self
        if first is not None:
            rows = rows.filter(end__gt=first)
        if last is not None:
            rows = rows.filter(start__lt=last)
        return rows


class BookingManager(models.Manager.from_queryset(ReservationQuerySet)):  # type: ignore[misc]
    """Reservations, without the rows that only hold a room for a change of one of them."""

    def get_queryset(self) -> ReservationQuerySet:
        rows: ReservationQuerySet = super().get_queryset()
        return rows.filter(holds_for__isnull=True)


def _build_bill(rows: Sequence[Sequence[Any]]) -> Bill:
    """Return the bill of rows of `_select_bills`: one for each type of its lines."""
    center, zone, currency, start, status, booked_at, total, waived = rows[0][:8]
    lines = Counter[Account]()
    net_waived = waived = to_hundredths(waived)
    for *_, line_type, amount, tax in rows:
        if line_type is None:
            continue
        gross, contained = to_hundredths(amount), to_hundredths(tax)
        lines[ACCOUNTS[line_type]] -= gross - contained
        lines[Account.TAX_PAYABLE] -= contained
        if line_type == LineItemType.ADJUSTMENT and contained:
            net_waived = waived - take_share(waived, contained, gross, currency)
    # A waiver is an adjustment of its own kind.
    lines[Account.WAIVED] -= net_waived
    lines[Account.ADJUSTMENTS] += net_waived
    return Bill(
        center=center,
        zone=zone,
        currency=currency,
        start=start,
        meeting_day=start.astimezone(places.get_time_zone(zone)).date(),
        is_booked=status in REVENUE_STATUSES,
        is_kept=status == Status.CANCELLED and booked_at is not None,
        total=to_hundredths(total),
        lines=lines,
    )


def _select_bills(rows: "ReservationQuerySet") -> RowQuerySet:
    waivers = PriceAdjustment.objects.filter(reservation=OuterRef("pk"), is_waiver=True)
    waived = waivers.order_by().values("reservation").annotate(sum=Sum("amount")).values("sum")
    return (
        rows.order_by()
        .annotate(waived=Subquery(waived))
        .values_list(
            *("pk", "room__center", "room__center__time_zone_id", "currency", "start", "status"),
            *("booked_at", "total_cost", "waived"),
            "line_items__type",
            Sum("line_items__total"),
            Sum("line_items__contained_tax"),
        )
    )


@compiled_query(keep_plan=True)
def bill_by_reservation() -> RowQuerySet:
    # Importing the model, which uses this queryset, would be a cycle.
    reservations: Any = apps.get_model("reservations", "Reservation")
    return _select_bills(reservations.objects.filter(pk=int_param("reservation")))
