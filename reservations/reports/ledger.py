"""Sums of the ledger that reports show (docs/ledger.md)."""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Expression, F, QuerySet, Sum
from django.db.models.functions import TruncMonth
from django.urls import reverse

from payments import gateways
from payments.ledger.accounts import Account
from payments.models import LedgerLine
from reservations.reports.selection import (
    MAX_GROUPS,
    ReportGroup,
    ReportSelection,
    fetch_at_most,
)
from roombook.money import from_hundredths

TOO_LARGE = "This is too much for one report. Choose fewer days, or some centers."


def select_lines(selection: ReportSelection) -> QuerySet[LedgerLine]:
    """The lines of the selected centers and room types on any day, in the deployment's currency.

    Test payments are apart: a deployment with a live gateway reports live payments only.
    """
    return LedgerLine.objects.filter(
        selection.filter_centers("center"),
        selection.filter_room_types("reservation__room__"),
        currency=settings.CURRENCY,
        is_test=not gateways.get_current_gateway().is_live,
    )


def select_recognized(selection: ReportSelection) -> QuerySet[LedgerLine]:
    """The lines whose income and tax count in the period."""
    period = selection.period
    return select_lines(selection).filter(
        meeting_day__isnull=False, recognized_on__range=(period.first, period.last)
    )


def fetch_recognized(
    selection: ReportSelection, sums: Mapping[str, Expression], keys: Mapping[str, F] | None = None
) -> list[ReportGroup]:
    """Sum up what counts in the period by month and center, and by additional keys.

    Raises ReportTooLarge.
    """
    all_keys: dict[str, Expression | F] = {**(keys or {}), "month": TruncMonth("recognized_on")}
    columns = [*all_keys]
    if selection.lists_centers:
        columns.append("center")
    rows = select_recognized(selection).order_by().annotate(**all_keys)
    groups = fetch_at_most(MAX_GROUPS, rows.values(*columns).annotate(**sums), TOO_LARGE)
    return [{"center": None, **group} for group in groups]


def sum_accounts(rows: QuerySet[LedgerLine]) -> dict[Account, Decimal]:
    """The sum of each account."""
    sums = rows.aggregate(**{f"sum_{account}": Sum(account) for account in Account})
    return {account: from_hundredths(sums[f"sum_{account}"]) for account in Account}


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
