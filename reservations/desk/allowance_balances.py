"""The balances of allowances."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, Sum
from django.db.models.functions import TruncMonth

from reservations.models import Allowance, AllowanceEntry


@dataclass(frozen=True, slots=True)
class AllowanceMonth:
    """The hours of an allowance in a month: granted, used, left at its end, used in total."""

    month: dt.date
    granted: int
    used: int
    left: int
    used_in_total: int


MAX_MONTHS = 24

# Entries with a reservation are uses, or uses that were returned; others were added by staff.
USED_HOURS = Sum("hours", filter=Q(reservation__isnull=False), default=0)
ADDED_HOURS = Sum("hours", filter=Q(reservation__isnull=True), default=0)


def get_monthly_balances(allowance: Allowance, today: dt.date) -> list[AllowanceMonth]:
    """The months up to today, and later ones that have entries; the latest first.

    Monthly hours belong to the month of the meeting and expire at its end. One-off hours belong to
    the month in which they were entered, and the rest is carried over.
    """
    is_monthly = allowance.kind == Allowance.Kind.MONTHLY
    rows: Any = allowance.entries.order_by()
    if is_monthly:
        rows = rows.filter(period__isnull=False).values_list("period")
    else:
        rows = rows.filter(period__isnull=True).values_list(TruncMonth("at", tzinfo=dt.UTC))
    entries = {
        (month.date() if isinstance(month, dt.datetime) else month): (added, -used)
        for month, added, used in rows.annotate(added=ADDED_HOURS, used=USED_HOURS)
    }
    entries.setdefault(today.replace(day=1), (0, 0))
    months: list[AllowanceMonth] = []
    left = used_in_total = 0
    for month, (added, used) in sorted(entries.items()):
        granted = added + (allowance.hours if is_monthly or not months else 0)
        left = granted - used + (0 if is_monthly else left)
        used_in_total += used
        months.append(AllowanceMonth(month, granted, used, left, used_in_total))
    return months[: -MAX_MONTHS - 1 : -1]


def get_hours_left(allowances: Iterable[Allowance], today: dt.date) -> dict[int, int]:
    """What is left of each allowance in this month, or in total if it is one-off; one query."""
    allowances = list(allowances)
    rows = (
        AllowanceEntry.objects.filter(
            Q(allowance__kind=Allowance.Kind.MONTHLY, period=today.replace(day=1))
            | Q(allowance__kind=Allowance.Kind.ONE_OFF, period__isnull=True),
            allowance__in=allowances,
        )
        .order_by()
        .values_list("allowance")
        .annotate(Sum("hours"))
    )
    entered = dict(rows)
    return {each.pk: each.hours + entered.get(each.pk, 0) for each in allowances}
