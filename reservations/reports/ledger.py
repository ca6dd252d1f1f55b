"""Sums of the ledger that reports show (docs/ledger.md)."""

import datetime as dt
from collections.abc import Mapping
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import BigIntegerField, Expression, Func, QuerySet, Sum
from django.db.models.functions import TruncMonth
from django.urls import reverse

from payments import gateways
from payments.ledger.accounts import BILL, Account
from payments.models import LedgerLine
from reservations.reports.cube import Cube, Sums
from reservations.reports.selection import ReportSelection

SUMS = {name: Sum(name) for name in (*sorted(BILL), "bookings")}


def select_lines(selection: ReportSelection) -> QuerySet[LedgerLine]:
    """The lines of the selected centers and room types on any day."""
    return get_reported_lines().filter(
        selection.filter_centers("center"), selection.filter_room_types("reservation__room__")
    )


def get_reported_lines() -> QuerySet[LedgerLine]:
    """The lines in the deployment's currency.

    Test payments are apart: a deployment with a live gateway reports live payments only.
    """
    is_test = not gateways.get_current_gateway().is_live
    return LedgerLine.objects.filter(currency=settings.CURRENCY, is_test=is_test)


def select_recognized(selection: ReportSelection) -> QuerySet[LedgerLine]:
    """The lines whose income and tax count in the period."""
    period = selection.period
    return select_lines(selection).filter(
        meeting_day__isnull=False, recognized_on__range=(period.first, period.last)
    )


def add_up_recognized(
    selection: ReportSelection,
    sums: Mapping[str, Expression] | None = None,
    **dimensions: tuple[str | Expression, ...],
) -> Cube:
    """Add up the bills that count in the period by month, center and dimensions.

    Raises ReportTooLarge.
    """
    return selection.add_up(
        select_recognized(selection),
        {**SUMS, **(sums or {})},
        center="center",
        month=(TruncMonth("recognized_on"),),
        **dimensions,
    )


def sum_accounts(rows: QuerySet[LedgerLine]) -> Sums:
    """The sum of each account, and of the bookings."""
    names = (*Account, "bookings")
    sums = rows.aggregate(**{f"sum_{name}": Sum(name) for name in names})
    return Sums({name: int(sums[f"sum_{name}"] or 0) for name in names})


def get_lines_url(selection: ReportSelection, account: str, **days: dt.date | None) -> str:
    """The list of the lines of an account, or of a group of them, that the report adds up."""
    centers = ",".join(map(str, sorted(selection.centers or ())))
    query = {
        "account": account,
        **{name: day.isoformat() for name, day in days.items() if day},
        **({"center__in": centers} if centers else {}),
        "currency__exact": settings.CURRENCY,
        "is_test__exact": int(not gateways.get_current_gateway().is_live),
    }
    return f"{reverse('admin:payments_ledgerline_changelist')}?{urlencode(query)}"


class Hundredths(Func):
    """An amount of money in whole hundredths. SQLite would add up decimals as binary floats."""

    template = "CAST(ROUND(%(expressions)s * 100) AS BIGINT)"
    arity = 1
    output_field = BigIntegerField()
