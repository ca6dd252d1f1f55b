"""Questions asked of reservations, each a sentence."""

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from centers.span import Span
from reservations.models.status import FINISHED_STATUSES, HOLDING_STATUSES, REVENUE_STATUSES, Status

if TYPE_CHECKING:
    from accounts.models import User


# What a draft's columns become when it lets its room go.
RELEASED_HOLD = {"holds_slot": False, "hold_until": None}


def get_conflict_bounds(span: Span, turnaround_minutes: int) -> dict[str, dt.datetime]:
    """What `meeting` asks of a span: its ends, bare and with its own turnaround."""
    wide = span.expand(dt.timedelta(minutes=turnaround_minutes))
    return {
        "start": span.start,
        "end": span.end,
        "wide_start": wide.start,
        "wide_end": wide.end,
    }


class ReservationQuerySet(models.QuerySet[Any]):
    def for_user(self, user: "User") -> "ReservationQuerySet":
        """The account's own: a stranger's reservation is simply not there."""
        return self.filter(user=user)

    def active_holds(self, now: dt.datetime) -> "ReservationQuerySet":
        """Those that keep others out of their room; a New one only until its hold lapses."""
        return self.filter(
            Q(status__in=sorted(HOLDING_STATUSES)) | Q(status=Status.NEW, hold_until__gt=now),
            holds_slot=True,
        )

    def occupying_time(self, now: dt.datetime) -> "ReservationQuerySet":
        """Those that a timeline shows: they hold their room, or the meeting was to take place."""
        return self.filter(
            Q(status__in=sorted(HOLDING_STATUSES | FINISHED_STATUSES))
            | Q(status=Status.NEW, hold_until__gt=now)
        )

    def counting_as_revenue(self) -> "ReservationQuerySet":
        """Those whose total counts as revenue, here and in every report."""
        return self.filter(status__in=sorted(REVENUE_STATUSES))

    def with_expired_hold(self, now: dt.datetime) -> "ReservationQuerySet":
        """Drafts that are still marked as holding although their time is over."""
        return self.drafts_with_hold().filter(hold_until__lte=now)

    def release_holds(self) -> int:
        """Let these drafts' rooms go; they stay New, to be checked out while the room is free."""
        return self.drafts_with_hold().update(**RELEASED_HOLD)

    def drafts_with_hold(self) -> "ReservationQuerySet":
        """Drafts that are marked as holding, whether their time is over or not."""
        return self.filter(status=Status.NEW, holds_slot=True)

    def hold_expiring(self, now: dt.datetime, ahead: dt.timedelta) -> "ReservationQuerySet":
        """Drafts that staff made, whose hold ends soon, and whose customer was not told yet."""
        return self.filter(
            status=Status.NEW,
            created_by__isnull=False,
            reminded_at__isnull=True,
            hold_until__gt=now,
            hold_until__lte=now + ahead,
            start__gt=now,
        )

    def overlapping_with_turnaround(
        self, span: Span, *, turnaround_minutes: int
    ) -> "ReservationQuerySet":
        """Those nearer to the span than the larger of the two turnarounds allows."""
        return self.overlapping(**get_conflict_bounds(span, turnaround_minutes))

    def overlapping(
        self, start: Any, end: Any, wide_start: Any, wide_end: Any
    ) -> "ReservationQuerySet":
        """Those in the way of a span that is `wide` with its own turnaround."""
        ours = Q(start__lt=wide_end, end__gt=wide_start)
        theirs = Q(occupied_from__lt=end, occupied_until__gt=start)
        return self.filter(ours | theirs)

    def between(self, first: dt.datetime | None, last: dt.datetime | None) -> "ReservationQuerySet":
        """Those that touch the time from first to last; None is no bound."""
        rows = self
        if first is not None:
            rows = rows.filter(end__gt=first)
        if last is not None:
            rows = rows.filter(start__lt=last)
        return rows
