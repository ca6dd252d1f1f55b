"""The dashboard's figures: the revenue of the month and the utilization of the week."""

import datetime as dt
from dataclasses import dataclass

from accounts import roles
from accounts.models import User
from centers.models import Center
from reservations.local_days import DAY, LocalDays
from reservations.reports import utilization
from reservations.reports.cube import MONTH, Chart, Cube
from reservations.reports.ledger import select_recognized, sum_accounts
from reservations.reports.revenue import REVENUE
from reservations.reports.selection import ReportSelection, ReportTooLarge
from roombook import dates, places

# The figures of more centers would take too long for this page.
MAX_CENTERS = 1_000


@dataclass(frozen=True, slots=True)
class MonthComparison:
    """The revenue of the month so far, and of the same days of the month before."""

    current: str
    current_period: str
    previous_period: str
    change: str
    is_up: bool
    chart: Chart
    previous_month: LocalDays


@dataclass(slots=True)
class DashboardFigures:
    """What of the figures there is; ``note`` says why some are missing."""

    month: MonthComparison | None = None
    week: Chart | None = None
    week_period: str = ""
    week_share: str = ""
    note: str = ""


def build_figures(user: User, now: dt.datetime) -> DashboardFigures:
    """Build the figures of the centers whose reports the user may see."""
    centers = roles.get_permitted_centers(user, roles.SEE_REPORTS)
    rows = Center.objects.filter(roles.get_center_filter(user, roles.SEE_REPORTS, ""))
    if rows[: MAX_CENTERS + 1].count() > MAX_CENTERS:
        return DashboardFigures(
            note="There are too many centers for this page. See the reports for the figures."
        )
    zones = map(places.get_time_zone, rows.list_time_zones())
    local_days = [now.astimezone(zone).date() for zone in zones]
    if not local_days:
        return DashboardFigures()
    # The latest day that has begun at every center.
    today = min(local_days)
    figures = DashboardFigures(month=_compare_months(centers, today))
    monday = today - today.weekday() * DAY
    week = LocalDays(monday, monday + 6 * DAY)
    figures.week_period = _format_period(week)
    try:
        found = utilization.measure_utilization(ReportSelection(week, centers))
    except ReportTooLarge:
        figures.note = "There are too many rooms for this page. See the reports for the figures."
    else:
        figures.week_share = utilization.UTILIZATION.display(found.rooms.total)
        figures.week = utilization.draw_weekdays("Utilization of this week", found.times)
    return figures


def _compare_months(centers: frozenset[int] | None, today: dt.date) -> MonthComparison:
    """Compare the month up to today with the same number of days of the previous month.

    If the previous month is shorter, all of it is compared.
    """
    current = LocalDays(today.replace(day=1), today)
    first = dates.add_months(current.first, -1)
    last = min(first + (today.day - 1) * DAY, current.first - DAY)
    previous = LocalDays(first, last)
    now, before = (
        sum_accounts(select_recognized(ReportSelection(period, centers)))
        for period in (current, previous)
    )
    cube = Cube([({"month": current.first}, now), ({"month": first}, before)])
    amount, former_amount = REVENUE.get_size(now), REVENUE.get_size(before)
    return MonthComparison(
        current=REVENUE.display(now),
        current_period=_format_period(current),
        previous_period=_format_period(previous),
        change=f"{(amount / former_amount - 1) * 100:+.0f}%" if former_amount else "",
        is_up=amount >= former_amount,
        chart=cube.draw(
            "Revenue of this month and the previous one",
            MONTH,
            REVENUE,
            describe=REVENUE.display,
        ),
        previous_month=LocalDays.from_month(first),
    )


def _format_period(period: LocalDays) -> str:
    return f"{dates.format_day(period.first)} - {dates.format_day(period.last)}"
