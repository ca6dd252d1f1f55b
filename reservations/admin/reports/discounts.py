"""What promo codes, allowances and adjustments by staff cost: what they took off the bills.

Of Confirmed, Completed and NoShow reservations, in the month in which the meeting begins on its
center's clock, before tax. The bill's own lines say it, so that revenue and these add up to what
the list prices would have brought.
"""

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet, Sum

from centers.models import Center
from reservations.admin.reports.aggregates import Hundredths, SummableMixin, to_decimal
from reservations.admin.reports.periods import annotate_month_index
from reservations.admin.reports.selection import ReportSelection, fetch_groups
from reservations.models import DEDUCTION_TYPES, AllowanceUse, LineItem, LineItemType
from reservations.models.status import REVENUE_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscountSums(SummableMixin):
    """What was taken off; adjustments may add, and then take off less than nothing."""

    promotions: Decimal = field(default=Decimal("0.00"))
    allowances: Decimal = field(default=Decimal("0.00"))
    adjustments: Decimal = field(default=Decimal("0.00"))

    @property
    def total(self) -> Decimal:
        return self.promotions + self.allowances + self.adjustments


NOTHING = DiscountSums()


@dataclass(frozen=True, slots=True)
class PromoCodeCost:
    """A promo code: how often it was used, what it took off, what its bookings were billed."""

    code: str
    uses: int
    cost: Decimal
    billed: Decimal

    def __add__(self, other: "PromoCodeCost") -> "PromoCodeCost":
        return PromoCodeCost(
            self.code,
            self.uses + other.uses,
            self.cost + other.cost,
            self.billed + other.billed,
        )


@dataclass(frozen=True, slots=True)
class AllowanceCost:
    """Allowances of one description: whose many they are is nobody's business here."""

    description: str
    accounts: int
    bookings: int
    hours: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class DiscountsData:
    """Centers (None: there are too many) and months add up to the total; codes to its promotions,
    allowances likewise."""

    total: DiscountSums
    by_center: dict[int, DiscountSums] | None
    by_month: dict[dt.date, DiscountSums]
    codes: list[PromoCodeCost]
    allowances: list[AllowanceCost]
    names: dict[int, str]


def measure_discounts(selection: ReportSelection) -> DiscountsData:
    """The cost of what was given away, in five questions. Raises TooMuch."""
    zones = selection.zones()
    months = selection.period.months()
    total = NOTHING
    by_center: dict[int, DiscountSums] = {}
    by_month = dict.fromkeys(months, NOTHING)
    by_code: dict[str, PromoCodeCost] = {}
    tells_centers = selection.tells_centers()
    for row in fetch_groups(_taken_off(selection, zones, by_center=tells_centers)):
        cost = DiscountSums(**{name: -to_decimal(row[name]) for name in COSTS})
        total += cost
        center = row.get("at", 0)
        by_center[center] = by_center.get(center, NOTHING) + cost
        by_month[months[row["month"]]] += cost
        if row["uses"]:
            used = PromoCodeCost(
                row["by_code"], row["uses"], cost.promotions, to_decimal(row["billed"])
            )
            by_code[used.code] = by_code[used.code] + used if used.code in by_code else used
    names = Center.objects.filter(pk__in=by_center if tells_centers else ())
    return DiscountsData(
        total,
        by_center if tells_centers else None,
        by_month,
        sorted(by_code.values(), key=lambda each: (-each.cost, each.code)),
        [_allowance(row) for row in fetch_groups(_by_description(selection, zones))],
        dict(names.values_list("pk", "name")),
    )


COSTS: dict[str, Any] = {
    name: Sum(Hundredths("total"), filter=Q(type=kind))
    for name, kind in (
        ("promotions", LineItemType.PROMOTION),
        ("allowances", LineItemType.ALLOWANCE),
        ("adjustments", LineItemType.ADJUSTMENT),
    )
}
BY_A_CODE = Q(type=LineItemType.PROMOTION)


def _taken_off(selection: ReportSelection, zones: list[str], *, by_center: bool) -> QuerySet[Any]:
    """The lines that take something off, by month and promo code, and by center if wanted.

    A bill has one line of a promo code at most, so that its total is added once.
    """
    by = {
        "month": annotate_month_index(selection.period, zones, path="reservation__"),
        "by_code": F("reservation__promo_code__code"),
        **({"at": F("reservation__room__center")} if by_center else {}),
    }
    rows = LineItem.objects.filter(*_earning(selection, zones), type__in=DEDUCTION_TYPES)
    return (
        rows.order_by()
        .annotate(**by)
        .values(*by)
        .annotate(
            **COSTS,
            uses=Count("reservation", filter=BY_A_CODE),
            billed=Sum(Hundredths("reservation__total_cost"), filter=BY_A_CODE),
        )
    )


def _earning(selection: ReportSelection, zones: list[str]) -> tuple[Q, Q]:
    """What belongs to reservations that earn, and that the selection tells of."""
    return (
        selection.starting(zones, path="reservation__"),
        Q(
            reservation__status__in=sorted(REVENUE_STATUSES),
            reservation__currency=settings.CURRENCY,
        ),
    )


def _by_description(selection: ReportSelection, zones: list[str]) -> QuerySet[Any]:
    return (
        AllowanceUse.objects.filter(*_earning(selection, zones), hours__gt=0)
        .order_by()
        .values(description=F("allowance__description"))
        .annotate(
            accounts=Count("allowance__user", distinct=True),
            bookings=Count("reservation", distinct=True),
            spent=Sum("hours"),
            cost=Sum(Hundredths("discount")),
        )
        .order_by("-cost", "description")
    )


def _allowance(row: dict[str, Any]) -> AllowanceCost:
    return AllowanceCost(
        row["description"], row["accounts"], row["bookings"], row["spent"], to_decimal(row["cost"])
    )
