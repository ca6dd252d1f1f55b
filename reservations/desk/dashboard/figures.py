"""The dashboard's figures: the revenue of the month and the utilization of the week."""

import datetime as dt
from typing import Any

from accounts import roles
from accounts.models import User
from centers.models import Center
from reservations.local_days import DAY, LocalDays
from reservations.reports.ledger import select_recognized, sum_accounts
from reservations.reports.revenue import REVENUE
from reservations.reports.selection import ReportSelection, ReportTooLarge
from reservations.reports.utilization import UTILIZATION, measure_utilization
from roombook import dates, places

# The figures of more centers would take too long for this page.
MAX_CENTERS = 1_000


def build_figures(user: User, now: dt.datetime) -> dict[str, Any]:
    """Build the figures of the centers whose reports the user may see.

    `note` says why some are missing.
    """
    centers = roles.get_permitted_centers(user, roles.SEE_REPORTS)
    rows = Center.objects.filter(roles.get_center_filter(user, roles.SEE_REPORTS, ""))
    if rows[: MAX_CENTERS + 1].count() > MAX_CENTERS:
        return {"note": "There are too many centers for this page. See the reports."}
    local_days = [
        now.astimezone(places.get_time_zone(zone)).date() for zone in rows.list_time_zones()
    ]
    if not local_days:
        return {}
    # The latest day that has begun at every center.
    today = min(local_days)
    monday = today - today.weekday() * DAY
    week = LocalDays(monday, monday + 6 * DAY)
    figures = {**_compare_months(centers, today), "week_period": _format_period(week)}
    try:
        found = measure_utilization(ReportSelection(week, centers))
        figures["week"] = UTILIZATION.display(found.rooms.total)
    except ReportTooLarge:
        figures["note"] = "There are too many rooms for this page. See the reports."
    return figures


def _compare_months(centers: frozenset[int] | None, today: dt.date) -> dict[str, Any]:
    """Compare the month up to today with the same number of days of the previous month.

    If the previous month is shorter, all of it is compared.
    """
    current = LocalDays(today.replace(day=1), today)
    first = dates.add_months(current.first, -1)
    former = LocalDays(first, min(first + (today.day - 1) * DAY, current.first - DAY))
    sums, former_sums = (
        sum_accounts(select_recognized(ReportSelection(period, centers)))
        for period in (current, former)
    )
    size, former_size = REVENUE.get_size(sums), REVENUE.get_size(former_sums)
    return {
        "month": REVENUE.display(sums),
        "former_month": REVENUE.display(former_sums),
        "change": f"{(size / former_size - 1) * 100:+.0f}%" if former_size else "",
        "is_up": size >= former_size,
        "month_period": _format_period(current),
        "former_period": _format_period(former),
        "former_first": first,
    }


def _format_period(period: LocalDays) -> str:
    return f"{dates.format_day(period.first)} - {dates.format_day(period.last)}"
