"""What became of bookings: kept, cancelled, missed, declined, never answered.

By the month in which the meeting was to begin, on its center's clock. Counted is what was checked
out: drafts that were dropped or lapsed are no bookings. A request that its customer took back is
cancelled; one that the center refused is declined; one that nobody answered in time has lapsed.
"""

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Q, Sum

from centers.models import Center
from reservations.admin.reports.aggregates import Hundredths, SummableMixin, to_decimal
from reservations.admin.reports.periods import annotate_month_index
from reservations.admin.reports.selection import ReportSelection, fetch_groups
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES, Status

# Cancelled later than this before the start, a room is seldom sold again.
LATE = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCounts(SummableMixin):
    """How many of each; `kept` are Confirmed, Completed and NoShow, `lost` the bills cancelled."""

    kept: int = 0
    over: int = 0
    missed: int = 0
    cancelled: int = 0
    late: int = 0
    declined: int = 0
    lapsed: int = 0
    lost: Decimal = field(default=Decimal("0.00"))

    @property
    def cancelled_share(self) -> float | None:
        """Of the bookings, 0 to 1."""
        return _share(self.cancelled, self.kept + self.cancelled)

    @property
    def missed_share(self) -> float | None:
        """Of the meetings that are over."""
        return _share(self.missed, self.over)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


NONE = OutcomeCounts()

CANCELLED = Q(status=Status.CANCELLED)
COUNTS: dict[str, Any] = {
    "kept": Count("pk", filter=Q(status__in=sorted(REVENUE_STATUSES))),
    "over": Count("pk", filter=Q(status__in=[Status.COMPLETED, Status.NO_SHOW])),
    "missed": Count("pk", filter=Q(status=Status.NO_SHOW)),
    "cancelled": Count("pk", filter=CANCELLED),
    "late": Count("pk", filter=CANCELLED & Q(cancelled_at__gt=F("start") - LATE)),
    "declined": Count("pk", filter=Q(status=Status.DECLINED)),
    "lapsed": Count("pk", filter=Q(status=Status.EXPIRED)),
    "lost": Sum(Hundredths("total_cost"), filter=CANCELLED),
}


@dataclass(frozen=True, slots=True)
class OutcomesData:
    """By center (None: there are too many) and by month; both add up to the total."""

    total: OutcomeCounts
    by_center: dict[int, OutcomeCounts] | None
    by_month: dict[dt.date, OutcomeCounts]
    names: dict[int, str]


def count_outcomes(selection: ReportSelection) -> OutcomesData:
    """The outcomes of the selection, in four questions. Raises TooMuch."""
    zones = selection.zones()
    tells_centers = selection.tells_centers()
    by = {
        "month": annotate_month_index(selection.period, zones),
        **({"at": F("room__center")} if tells_centers else {}),
    }
    rows = Reservation.objects.filter(
        selection.starting(zones),
        status__in=[*sorted(REVENUE_STATUSES), Status.CANCELLED, Status.DECLINED, Status.EXPIRED],
        booked_at__isnull=False,
    )
    sums = rows.order_by().annotate(**by).values(*by).annotate(**COUNTS)
    months = selection.period.months()
    total = NONE
    by_center: dict[int, OutcomeCounts] = {}
    by_month = dict.fromkeys(months, NONE)
    for row in fetch_groups(sums):
        center, month = row.pop("at", 0), months[row.pop("month")]
        outcomes = OutcomeCounts(**{**row, "lost": to_decimal(row["lost"])})
        total += outcomes
        by_center[center] = by_center.get(center, NONE) + outcomes
        by_month[month] += outcomes
    if not tells_centers:
        return OutcomesData(total, None, by_month, {})
    names = Center.objects.filter(pk__in=by_center).values_list("pk", "name")
    return OutcomesData(total, by_center, by_month, dict(names))
