"""What promo codes and partners brought, and what became of included hours.

Revenue is what `EARNING` reservations were billed, in the deployment's currency; the reports tell
what of it was refunded.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce, TruncMonth

from reservations.admin.reports.aggregates import sum_hundredths, to_decimal
from reservations.models import Allowance, AllowanceEntry, Reservation


@dataclass(frozen=True, slots=True)
class AttributedRevenue:
    """The bookings that something brought, and their revenue."""

    bookings: int = 0
    revenue: Decimal = Decimal(0)


def get_attributed_revenue(
    column: str, ids: Iterable[int], *, seen: Q
) -> dict[int, AttributedRevenue]:
    """What each promo code or partner brought, in one query; of the reservations that are seen."""
    rows = (
        Reservation.objects.counting_as_revenue()
        .filter(seen, **{f"{column}__in": list(ids)}, currency=settings.CURRENCY)
        .order_by()
        .values_list(column)
        .annotate(bookings=Count("pk"), revenue=sum_hundredths("total_cost"))
    )
    return {pk: AttributedRevenue(bookings, to_decimal(revenue)) for pk, bookings, revenue in rows}


@dataclass(frozen=True, slots=True)
class AllowanceMonth:
    """A line of an allowance's statement: hours given, used, left at its end, used until then."""

    month: dt.date
    given: int
    used: int
    left: int
    used_until_then: int


MAX_MONTHS = 24

# Entries of reservations are use, or use that was given back; others are hours added by hand.
USED = Coalesce(Sum("hours", filter=Q(reservation__isnull=False)), 0)
ADDED = Coalesce(Sum("hours", filter=Q(reservation__isnull=True)), 0)


def get_monthly_balances(allowance: Allowance, today: dt.date) -> list[AllowanceMonth]:
    """The months of an allowance up to now, and later ones with an entry; the latest first.

    Monthly hours count to the month of the meeting and lapse at its end. One-off hours count to
    the month in which they were entered, and what is left goes on to the next.
    """
    monthly = allowance.kind == Allowance.Kind.MONTHLY
    rows: Any = allowance.entries.order_by()
    if monthly:
        rows = rows.filter(period__isnull=False).values_list("period")
    else:
        rows = rows.filter(period__isnull=True).values_list(TruncMonth("at", tzinfo=dt.UTC))
    entered = {
        (month.date() if isinstance(month, dt.datetime) else month): (added, -used)
        for month, added, used in rows.annotate(added=ADDED, used=USED)
    }
    entered.setdefault(today.replace(day=1), (0, 0))
    months: list[AllowanceMonth] = []
    left = used_until_then = 0
    for month, (added, used) in sorted(entered.items()):
        given = added + (allowance.hours if monthly or not months else 0)
        left = given - used + (0 if monthly else left)
        used_until_then += used
        months.append(AllowanceMonth(month, given, used, left, used_until_then))
    return months[: -MAX_MONTHS - 1 : -1]


def get_hours_left(allowances: Iterable[Allowance], today: dt.date) -> dict[int, int]:
    """What is left of each allowance this month, or in all of a one-off one, in one query."""
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
