"""The queryset of reservations."""

import datetime as dt
from typing import TYPE_CHECKING, Self, TypedDict

from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Value
from django.db.models.functions import Coalesce, Least

from centers.models import Closure
from centers.span import Span
from reservations.models.status import FINISHED_STATUSES, HOLDING_STATUSES, REVENUE_STATUSES, Status

if TYPE_CHECKING:
    from accounts.models import User
    from reservations.models.reservation import Reservation  # noqa: F401 (base class)


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
    """Return the condition of `ReservationQuerySet.overlapping`."""
    with_our_turnaround = Q(start__lt=wide_end, end__gt=wide_start)
    with_their_turnaround = Q(occupied_from__lt=end, occupied_until__gt=start)
    return with_our_turnaround | with_their_turnaround


class ReservationQuerySet(models.QuerySet["Reservation"]):
    def for_user(self, user: "User") -> Self:
        """Return the customer's own reservations."""
        return self.filter(user=user)

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

    def in_closures(self, now: dt.datetime) -> Self:
        """Return the bookings to come in whose time their room, or its center, is closed."""
        closures = Closure.objects.closing(OuterRef("room"), center=OuterRef("room__center"))
        return self.filter(
            Exists(closures.overlapping(OuterRef("start"), OuterRef("end"))),
            status__in=[Status.PENDING, Status.CONFIRMED],
            start__gt=now,
        )

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

    def overlapping(
        self, start: dt.datetime, end: dt.datetime, wide_start: dt.datetime, wide_end: dt.datetime
    ) -> Self:
        """Return the reservations that overlap a span, with the larger of both turnaround times.

        `wide_start` and `wide_end` are the span with its own turnaround (`get_conflict_bounds`).
        """
        return self.filter(overlaps(start, end, wide_start, wide_end))

    def conflicting(self, bounds: ConflictBounds, *, now: dt.datetime, user: int) -> Self:
        """Return the reservations that prevent the account's booking of a span (B11.2, B11.3)."""
        return (
            self.active_holds(now)
            .overlapping(bounds["start"], bounds["end"], bounds["wide_start"], bounds["wide_end"])
            .exclude(user=user, status=Status.NEW)
        )

    def between(self, first: dt.datetime | None, last: dt.datetime | None) -> Self:
        """Return the reservations that overlap the time from first to last; None means no limit."""
        rows = self
        if first is not None:
            rows = rows.filter(end__gt=first)
        if last is not None:
            rows = rows.filter(start__lt=last)
        return rows
