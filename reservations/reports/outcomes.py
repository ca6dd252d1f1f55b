"""The report on cancellations and no-shows: how bookings ended.

By the month in which the meeting was to start, by the local time of its center. Only reservations
that were checked out count; dropped or expired drafts do not. A request that its customer took
back is cancelled, one that the center refused is declined, one that nobody answered has expired.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Expression, F, Q, Sum

from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES, Status
from reservations.reports.aggregates import (
    ZERO,
    Breakdown,
    Hundredths,
    SummableMixin,
    break_down,
)
from reservations.reports.charts import build_chart
from reservations.reports.report import (
    Report,
    ReportFigure,
    build_center_table,
    build_month_table,
)
from reservations.reports.selection import ReportSelection
from reservations.reports.tables import COUNT, MONEY, SHARE, ReportColumn, format_percent
from roombook import dates, money

# A room that is cancelled later than this before the start is rarely sold again.
LATE_CANCELLATION = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCounts(SummableMixin):
    """The number of bookings by outcome.

    ``kept`` are Confirmed, Completed and NoShow, ``over`` the last two, ``lost`` is the sum of the
    cancelled bills.
    """

    kept: int = 0
    over: int = 0
    no_shows: int = 0
    cancelled: int = 0
    late: int = 0
    declined: int = 0
    expired: int = 0
    lost: Decimal = ZERO

    @property
    def cancelled_share(self) -> float | None:
        """The share of the bookings that were cancelled, 0 to 1."""
        return _divide(self.cancelled, self.kept + self.cancelled)

    @property
    def no_show_share(self) -> float | None:
        """The share of no-shows in the meetings that are over, 0 to 1."""
        return _divide(self.no_shows, self.over)


def _divide(part: int, whole: int) -> float | None:
    return part / whole if whole else None


COLUMNS = (
    ReportColumn("Kept", COUNT, "kept"),
    ReportColumn("Cancelled", COUNT, "cancelled"),
    ReportColumn("Cancelled, %", SHARE, "cancelled_share"),
    ReportColumn("Late", COUNT, "late"),
    ReportColumn("Value", MONEY, "lost"),
    ReportColumn("No-shows", COUNT, "no_shows"),
    ReportColumn("No-shows, %", SHARE, "no_show_share"),
    ReportColumn("Declined", COUNT, "declined"),
    ReportColumn("Not answered", COUNT, "expired"),
)


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    breakdown = count_outcomes(selection)
    total = breakdown.total
    return Report(
        figures=[
            ReportFigure(
                *("Cancelled", f"{total.cancelled:,}"),
                _describe_share(total.cancelled_share, "of the bookings"),
            ),
            ReportFigure("Cancelled late", f"{total.late:,}", "within 24 hours of the start"),
            ReportFigure(
                "Value", money.format_amount(total.lost), "the bills of cancelled bookings"
            ),
            ReportFigure(
                *("No-shows", f"{total.no_shows:,}"),
                _describe_share(total.no_show_share, "of the meetings"),
            ),
            ReportFigure(
                "Declined", f"{total.declined:,}", f"{total.expired:,} not answered in time"
            ),
        ],
        charts=[
            build_chart(
                "Cancelled, of all bookings, by month",
                [
                    (
                        dates.format_month(month),
                        counts.cancelled_share or 0,
                        SHARE.display(counts.cancelled_share),
                        f"{counts.cancelled:,} of {counts.kept + counts.cancelled:,}",
                    )
                    for month, counts in breakdown.by_month.items()
                ],
            )
        ],
        tables=[
            build_month_table(breakdown, COLUMNS),
            build_center_table(
                breakdown, COLUMNS, lambda counts: counts.cancelled + counts.no_shows
            ),
        ],
        description=(
            "Reservations that were checked out and were to start in the period; dropped drafts"
            " are not included. Kept are Confirmed, Completed and No-show. The share of no-shows is"
            " that of the meetings that are over. Late is less than 24 hours before the start."
        ),
    )


def _describe_share(share: float | None, whole: str) -> str:
    return "" if share is None else f"{format_percent(share)} {whole}"


CANCELLED = Q(status=Status.CANCELLED)
SUMS: Mapping[str, Expression] = {
    "kept": Count("pk", filter=Q(status__in=sorted(REVENUE_STATUSES))),
    "over": Count("pk", filter=Q(status__in=[Status.COMPLETED, Status.NO_SHOW])),
    "no_shows": Count("pk", filter=Q(status=Status.NO_SHOW)),
    "cancelled": Count("pk", filter=CANCELLED),
    "late": Count("pk", filter=CANCELLED & Q(cancelled_at__gt=F("start") - LATE_CANCELLATION)),
    "declined": Count("pk", filter=Q(status=Status.DECLINED)),
    "expired": Count("pk", filter=Q(status=Status.EXPIRED)),
    "lost": Sum(Hundredths("total_cost"), filter=CANCELLED),
}


def count_outcomes(selection: ReportSelection) -> Breakdown[OutcomeCounts]:
    """Count the bookings of the selection by outcome. Raises ReportTooLarge."""
    rows = Reservation.objects.filter(
        selection.filter_reservations(),
        status__in=[*sorted(REVENUE_STATUSES), Status.CANCELLED, Status.DECLINED, Status.EXPIRED],
        booked_at__isnull=False,
    )
    return break_down(selection, selection.fetch_sums(rows, SUMS), OutcomeCounts)
