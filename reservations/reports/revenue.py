"""The revenue report: what the company earns from its rooms, by month, center and source (B18).

It adds up the ledger. Income counts on the day of the meeting, by the local time of its center:
when the service is given, not when it is paid. What changes afterwards, such as a refund, counts on
the day on which it happens, so that nothing of a month that is over changes. A future month shows
what is booked so far.

Every booking has exactly one source: its partner, else its promo code, else none ("Direct"). So the
sums by center, by month and by source have the same total.
"""

from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

from django.conf import settings
from django.db.models import F, Sum

from payments.ledger.accounts import REDUCTIONS
from reservations.reports.aggregates import ZERO, Breakdown, SummableMixin, add_up, break_down
from reservations.reports.ledger import fetch_recognized, select_recognized
from reservations.reports.report import (
    Report,
    ReportFigure,
    build_center_table,
    build_month_chart,
    build_month_table,
    sort_by_size,
)
from reservations.reports.selection import ReportGroup, ReportSelection
from reservations.reports.tables import COUNT, MONEY, ReportColumn, build_table
from roombook import money


@dataclass(frozen=True, slots=True, kw_only=True)
class RevenueSums(SummableMixin):
    """The income of some bookings before tax, what reduced it, and its tax."""

    bookings: int = 0
    room: Decimal = ZERO
    services: Decimal = ZERO
    setup: Decimal = ZERO
    cancellation: Decimal = ZERO
    reductions: Decimal = ZERO
    tax: Decimal = ZERO

    @property
    def net(self) -> Decimal:
        return self.room + self.services + self.setup + self.cancellation - self.reductions

    @property
    def revenue(self) -> Decimal:
        return self.net + self.tax


# Income is on the credit side of the ledger.
SUMS = {
    "bookings": Sum("bookings"),
    **{name: Sum(name) * -1 for name in ("room", "services", "setup", "cancellation")},
    **{f"sum_{account}": Sum(account) for account in sorted(REDUCTIONS)},
    "tax": Sum("tax_payable") * -1,
}


class RevenueSource(NamedTuple):
    """Where a booking came from: a partner, else a promo code, else neither."""

    kind: str
    name: str = ""
    pk: int = 0

    @classmethod
    def from_group(cls, group: ReportGroup) -> "RevenueSource":
        if group["by_partner"]:
            return cls("Partner", group["partner_name"], group["by_partner"])
        if group["by_promo_code"]:
            return cls("Promo code", group["promo_code_text"], group["by_promo_code"])
        return DIRECT


DIRECT = RevenueSource("Direct")
SOURCE_KEYS = {
    "by_partner": F("reservation__partner"),
    "partner_name": F("reservation__partner__name"),
    "by_promo_code": F("reservation__promo_code"),
    "promo_code_text": F("reservation__promo_code__code"),
}

COLUMNS = (
    ReportColumn("Bookings", COUNT, "bookings"),
    ReportColumn("Rooms", MONEY, "room"),
    ReportColumn("Services", MONEY, "services"),
    ReportColumn("Set-up", MONEY, "setup"),
    ReportColumn("Reductions", MONEY, "reductions"),
    ReportColumn("Cancellation fees", MONEY, "cancellation"),
    ReportColumn("Net of tax", MONEY, "net"),
    ReportColumn("Tax", MONEY, "tax"),
    ReportColumn("Revenue", MONEY, "revenue"),
)


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    breakdown, by_source = measure_revenue(selection)
    total = breakdown.total
    by_month = {month: sums.revenue for month, sums in breakdown.by_month.items()}
    return Report(
        figures=[
            ReportFigure("Revenue", money.format_amount(total.revenue), "tax included"),
            ReportFigure(
                "Net of tax",
                money.format_amount(total.net),
                f"{money.format_amount(total.tax)} is tax",
            ),
            ReportFigure("Bookings", f"{total.bookings:,}"),
            ReportFigure("Reductions", money.format_amount(total.reductions)),
            ReportFigure("Cancellation fees", money.format_amount(total.cancellation)),
        ],
        charts=[build_month_chart("Revenue by month", by_month)],
        tables=[
            build_month_table(breakdown, COLUMNS),
            build_center_table(breakdown, COLUMNS, attrgetter("revenue")),
            build_table(
                *("source", "By source", [ReportColumn("Source"), ReportColumn("Name")], COLUMNS),
                [
                    ([source.kind, source.name], sums)
                    for source, sums in sort_by_size(by_source, attrgetter("revenue"))
                ],
                total,
                note="The source of a booking is its partner, else its promo code, else direct.",
            ),
        ],
        description=(
            f"Bookings in {settings.CURRENCY} whose meeting is in the period, by the local day of"
            " their center. What changes after the meeting counts on its own day. Reductions are"
            " promo codes, included hours, adjustments, waived differences and goodwill refunds."
            " Requests awaiting approval are not included."
        ),
    )


def measure_revenue(
    selection: ReportSelection,
) -> tuple[Breakdown[RevenueSums], dict[RevenueSource, RevenueSums]]:
    """The revenue of the selection, and the same by source. Raises ReportTooLarge."""
    groups = [_add_reductions(group) for group in fetch_recognized(selection, SUMS, SOURCE_KEYS)]
    by_source = add_up(
        (RevenueSource.from_group(group), RevenueSums.from_row(group)) for group in groups
    )
    return break_down(selection, groups, RevenueSums), by_source


def sum_revenue(selection: ReportSelection) -> RevenueSums:
    """Only the total of the selection."""
    return RevenueSums.from_row(_add_reductions(select_recognized(selection).aggregate(**SUMS)))


def _add_reductions(group: ReportGroup) -> ReportGroup:
    reductions = sum(group[f"sum_{account}"] or 0 for account in REDUCTIONS)
    return {**group, "reductions": reductions}
