"""The discounts report: what promo codes, allowances and adjustments by staff took off the bills.

It adds up the reductions of the ledger, before tax, on the days on which revenue has them. Only the
hours of allowances are not in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Expression, F, Q, Sum

from payments.ledger.accounts import BILL, Account
from payments.ledger.models import add_accounts
from reservations.models import AllowanceUse
from reservations.models.status import REVENUE_STATUSES
from reservations.reports.aggregates import (
    ZERO,
    Breakdown,
    Hundredths,
    SummableMixin,
    add_up,
    break_down,
)
from reservations.reports.ledger import fetch_recognized
from reservations.reports.refund_overrides import build_refund_override_table
from reservations.reports.report import (
    Report,
    ReportFigure,
    build_center_table,
    build_month_chart,
    build_month_table,
)
from reservations.reports.selection import MAX_GROUPS, ReportSelection, fetch_at_most
from reservations.reports.tables import COUNT, MONEY, ReportColumn, ReportTable, build_table
from roombook import money
from roombook.money import from_hundredths


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscountSums(SummableMixin):
    """What was taken off. Adjustments may add to the price and are negative then."""

    promotions: Decimal = ZERO
    allowances: Decimal = ZERO
    adjustments: Decimal = ZERO

    @property
    def total(self) -> Decimal:
        return self.promotions + self.allowances + self.adjustments


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoCodeSums(SummableMixin):
    """How often a promo code was used, what it took off, and what its bookings were billed."""

    uses: int = 0
    promotions: Decimal = ZERO
    billed: Decimal = ZERO


class AllowanceSums(NamedTuple):
    """All allowances with one description; the report does not show whose they are."""

    description: str
    accounts: int
    bookings: int
    hours: int
    discount: Decimal


@dataclass(frozen=True, slots=True)
class Discounts:
    """The sums by promo code add up to the breakdown's total.

    Those by allowance are what the bills of the period show now, with the tax if prices contain it.
    """

    breakdown: Breakdown[DiscountSums]
    by_promo_code: dict[str, PromoCodeSums]
    allowances: list[AllowanceSums]


REMOVED = "(removed)"
COLUMNS = (
    ReportColumn("Promo codes", MONEY, "promotions"),
    ReportColumn("Allowances", MONEY, "allowances"),
    ReportColumn("Adjustments", MONEY, "adjustments"),
    ReportColumn("Total", MONEY, "total"),
)
PROMO_CODE_COLUMNS = (
    ReportColumn("Uses", COUNT, "uses"),
    ReportColumn("Discount", MONEY, "promotions"),
    ReportColumn("Billed with it", MONEY, "billed"),
)
ALLOWANCE_COLUMNS = (
    ReportColumn("Allowance"),
    ReportColumn("Accounts", COUNT),
    ReportColumn("Bookings", COUNT),
    ReportColumn("Hours", COUNT),
    ReportColumn("Discount on the bill", MONEY),
)


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    discounts = measure_discounts(selection)
    breakdown, total = discounts.breakdown, discounts.breakdown.total
    by_month = {month: sums.total for month, sums in breakdown.by_month.items()}
    hours = sum(each.hours for each in discounts.allowances)
    return Report(
        figures=[
            ReportFigure("Discounts", money.format_amount(total.total), "off the list prices"),
            ReportFigure("by promo codes", money.format_amount(total.promotions)),
            ReportFigure("by allowances", money.format_amount(total.allowances)),
            ReportFigure("by adjustments of staff", money.format_amount(total.adjustments)),
        ],
        charts=[build_month_chart("Discounts by month", by_month)],
        tables=[
            build_table(
                *("code", "Promo codes", [ReportColumn("Promo code")], PROMO_CODE_COLUMNS),
                [([code], sums) for code, sums in discounts.by_promo_code.items()],
                sum(discounts.by_promo_code.values(), PromoCodeSums()),
            ),
            ReportTable(
                *("allowance", "Allowances", ALLOWANCE_COLUMNS, discounts.allowances),
                ["Total", None, None, hours, sum(each.discount for each in discounts.allowances)],
            ),
            build_center_table(breakdown, COLUMNS, attrgetter("total")),
            build_month_table(breakdown, COLUMNS),
            build_refund_override_table(selection),
        ],
        description=(
            "What was taken off the bills of bookings whose meeting is in the period, in"
            f" {settings.CURRENCY}, before tax. What changes after the meeting counts on its own"
            " day. Refunds by decision are those of cancelled reservations for which staff did not"
            " follow the policy."
        ),
    )


def measure_discounts(selection: ReportSelection) -> Discounts:
    """The discounts of the selection. Raises ReportTooLarge."""
    by_code = {"promo_code": F("reservation__promo_code__code")}
    groups = fetch_recognized(selection, SUMS, by_code)
    by_promo_code = add_up(
        (group["promo_code"], PromoCodeSums.from_row(group))
        if group["promo_code"]
        # It was removed after the meeting, on another day than that of the discount.
        else (REMOVED, PromoCodeSums(promotions=from_hundredths(group["promotions"])))
        for group in groups
    )
    allowances = (
        AllowanceUse.objects.filter(
            selection.filter_reservations("reservation__"),
            reservation__status__in=sorted(REVENUE_STATUSES),
            reservation__currency=settings.CURRENCY,
            hours__gt=0,
        )
        .order_by()
        .values_list("allowance__description")
        .annotate(
            Count("allowance__user", distinct=True),
            Count("reservation", distinct=True),
            Sum("hours"),
            cost=Sum(Hundredths("discount")),
        )
        .order_by("-cost", "allowance__description")
    )
    return Discounts(
        break_down(selection, groups, DiscountSums),
        {
            code: sums
            for code, sums in sorted(
                by_promo_code.items(), key=lambda item: (-item[1].promotions, item[0])
            )
            if sums != PromoCodeSums()
        },
        [
            AllowanceSums(description, accounts, bookings, hours, from_hundredths(discount))
            for description, accounts, bookings, hours, discount in fetch_at_most(
                MAX_GROUPS, allowances, "Choose fewer days."
            )
        ],
    )


# In this order: a sum hides the account that it is named after.
SUMS: Mapping[str, Expression] = {
    "billed": Sum(add_accounts(BILL)) * -1,
    "uses": Sum("bookings", filter=Q(promotions__isnull=False)),
    "adjustments": Sum(add_accounts({Account.ADJUSTMENTS, Account.WAIVED})),
    "promotions": Sum("promotions"),
    "allowances": Sum("included_hours"),
}
