"""The report on cancellations and no-shows: how bookings ended.

By the month in which the meeting was to start, by the local time of its center. Only reservations
that were checked out count; dropped or expired drafts do not. A request that its customer took
back is cancelled, one that the center refused is declined, one that nobody answered has expired.
"""

import datetime as dt

from django.db.models import Count, F, Q, Sum

from reservations.local_days import build_month
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES, Status
from reservations.reports.cube import (
    MONTH,
    Cube,
    Measure,
    Report,
    Sums,
    count,
    debit,
    share,
)
from reservations.reports.ledger import Hundredths
from reservations.reports.selection import ReportSelection

# A room that is cancelled later than this before the start is rarely sold again.
LATE_CANCELLATION = dt.timedelta(hours=24)

IS_CANCELLED = Q(status=Status.CANCELLED)
# ``kept`` are Confirmed, Completed and NoShow, ``over`` the last two, ``lost`` is the sum of the
# cancelled bills.
SUMS = {
    "kept": Count("pk", filter=Q(status__in=sorted(REVENUE_STATUSES))),
    "over": Count("pk", filter=Q(status__in=[Status.COMPLETED, Status.NO_SHOW])),
    "no_shows": Count("pk", filter=Q(status=Status.NO_SHOW)),
    "cancelled": Count("pk", filter=IS_CANCELLED),
    "late": Count("pk", filter=IS_CANCELLED & Q(cancelled_at__gt=F("start") - LATE_CANCELLATION)),
    "declined": Count("pk", filter=Q(status=Status.DECLINED)),
    "expired": Count("pk", filter=Q(status=Status.EXPIRED)),
    "lost": Sum(Hundredths("total_cost"), filter=IS_CANCELLED),
}
CANCELLED, NO_SHOWS = count("Cancelled", "cancelled"), count("No-shows", "no_shows")
CANCELLED_SHARE = share("Cancelled, %", "cancelled", "kept", "cancelled")
NO_SHOW_SHARE = share("No-shows, %", "no_shows", "over")
LATE, DECLINED, LOST = count("Late", "late"), count("Declined", "declined"), debit("Value", "lost")
MEASURES = (
    count("Kept", "kept"),
    *(CANCELLED, CANCELLED_SHARE, LATE, LOST, NO_SHOWS, NO_SHOW_SHARE, DECLINED),
    count("Not answered", "expired"),
)
CANCELLED_OR_NO_SHOW = Measure(
    "", CANCELLED.format, lambda sums: sums["cancelled"] + sums["no_shows"]
)


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    cube = count_outcomes(selection)
    return Report(
        figures=[
            cube.summarize(CANCELLED, _describe(CANCELLED_SHARE, cube.total, "of the bookings")),
            cube.summarize(LATE, "within 24 hours of the start", "Cancelled late"),
            cube.summarize(LOST, "the bills of cancelled bookings"),
            cube.summarize(NO_SHOWS, _describe(NO_SHOW_SHARE, cube.total, "of the meetings")),
            cube.summarize(DECLINED, f"{cube.total['expired']:,} not answered in time"),
        ],
        charts=[
            cube.draw(
                "Cancelled, of all bookings, by month",
                MONTH,
                CANCELLED_SHARE,
                lambda sums: f"{sums['cancelled']:,} of {sums['kept'] + sums['cancelled']:,}",
            )
        ],
        tables=[
            cube.tabulate("month", "By month", [MONTH], MEASURES),
            cube.tabulate_centers(MEASURES, order=CANCELLED_OR_NO_SHOW, note=selection.center_note),
        ],
        description=(
            "Reservations that were checked out and were to start in the period; dropped drafts"
            " are not included. Kept are Confirmed, Completed and No-show. The share of no-shows is"
            " that of the meetings that are over. Late is less than 24 hours before the start."
        ),
    )


def _describe(measure: Measure, total: Sums, whole: str) -> str:
    return "" if measure.read(total) is None else f"{measure.display(total)} {whole}"


def count_outcomes(selection: ReportSelection) -> Cube:
    """Count the bookings of the selection by outcome. Raises ReportTooLarge."""
    rows = Reservation.objects.filter(
        selection.filter_reservations(),
        status__in=[*sorted(REVENUE_STATUSES), Status.CANCELLED, Status.DECLINED, Status.EXPIRED],
        booked_at__isnull=False,
    )
    month = build_month(selection.period, selection.zones)
    return selection.add_up(rows, SUMS, center="room__center", month=(month,))
