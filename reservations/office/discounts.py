"""What promo codes, allowances and adjustments by staff cost: what they took off the bills.

Of Confirmed, Completed and NoShow reservations, in the month in which the meeting begins on its
center's clock, before tax. The bill's own lines say it, so that revenue and these add up to what
the list prices would have brought.
"""

import datetime as dt
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet, Sum

from centers.models import Center
from reservations.models import AllowanceUse, LineItem, LineItemType
from reservations.office.amounts import Hundredths, amount
from reservations.office.periods import month_number
from reservations.office.selection import Selection, pieces
from reservations.status import EARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What was taken off; adjustments may add, and then take off less than nothing."""

    promotions: Decimal = field(default=Decimal("0.00"))
    allowances: Decimal = field(default=Decimal("0.00"))
    adjustments: Decimal = field(default=Decimal("0.00"))

    @property
    def total(self) -> Decimal:
        return self.promotions + self.allowances + self.adjustments

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            **{
                each.name: getattr(self, each.name) + getattr(other, each.name)
                for each in fields(self)
            }
        )


NOTHING = Cost()


@dataclass(frozen=True, slots=True)
class CodeCost:
    """A promo code: how often it was used, what it took off, what its bookings were billed."""

    code: str
    uses: int
    cost: Decimal
    billed: Decimal


@dataclass(frozen=True, slots=True)
class AllowanceCost:
    """Allowances of one description: whose many they are is nobody's business here."""

    description: str
    accounts: int
    bookings: int
    hours: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class Report:
    """Centers (None: there are too many) and months add up to the total; codes to its promotions,
    allowances likewise."""

    total: Cost
    by_center: dict[int, Cost] | None
    by_month: dict[dt.date, Cost]
    codes: list[CodeCost]
    allowances: list[AllowanceCost]
    names: dict[int, str]


def report(selection: Selection) -> Report:
    """The cost of what was given away, in six questions. Raises TooMuch."""
    zones = selection.zones()
    months = selection.period.months()
    total = NOTHING
    by_center: dict[int, Cost] = {}
    by_month = dict.fromkeys(months, NOTHING)
    tells_centers = selection.tells_centers()
    by = ("at", "month") if tells_centers else ("month",)
    for row in pieces(_by_center_and_month(selection, zones, by)):
        cost = Cost(**{name: -amount(row[name]) for name in SUMS})
        total += cost
        center = row.get("at", 0)
        by_center[center] = by_center.get(center, NOTHING) + cost
        by_month[months[row["month"]]] += cost
    names = Center.objects.filter(pk__in=by_center if tells_centers else ())
    return Report(
        total,
        by_center if tells_centers else None,
        by_month,
        [_code(row) for row in pieces(_by_code(selection, zones))],
        [_allowance(row) for row in pieces(_by_description(selection, zones))],
        dict(names.values_list("pk", "name")),
    )


def _lines(selection: Selection, zones: list[str], *types: LineItemType) -> QuerySet[LineItem]:
    return LineItem.objects.filter(
        selection.starting(zones, path="reservation__"), *_earning(), type__in=types
    ).order_by()


def _earning() -> list[Q]:
    return [Q(reservation__status__in=sorted(EARNING), reservation__currency=settings.CURRENCY)]


SUMS: dict[str, Any] = {
    name: Sum(Hundredths("total"), filter=Q(type=kind))
    for name, kind in (
        ("promotions", LineItemType.PROMOTION),
        ("allowances", LineItemType.ALLOWANCE),
        ("adjustments", LineItemType.ADJUSTMENT),
    )
}


def _by_center_and_month(
    selection: Selection, zones: list[str], by: tuple[str, ...]
) -> QuerySet[Any]:
    types = (LineItemType.PROMOTION, LineItemType.ALLOWANCE, LineItemType.ADJUSTMENT)
    return (
        _lines(selection, zones, *types)
        .annotate(
            at=F("reservation__room__center"),
            month=month_number(selection.period, zones, path="reservation__"),
        )
        .values(*by)
        .annotate(**SUMS)
    )


def _by_code(selection: Selection, zones: list[str]) -> QuerySet[Any]:
    """A bill has one such line at most, so that its total is added once."""
    return (
        _lines(selection, zones, LineItemType.PROMOTION)
        .values(code=F("reservation__promo_code__code"))
        .annotate(
            uses=Count("pk"),
            cost=Sum(Hundredths("total")),
            billed=Sum(Hundredths("reservation__total_cost")),
        )
        .order_by("cost", "code")
    )


def _code(row: dict[str, Any]) -> CodeCost:
    return CodeCost(row["code"], row["uses"], -amount(row["cost"]), amount(row["billed"]))


def _by_description(selection: Selection, zones: list[str]) -> QuerySet[Any]:
    return (
        AllowanceUse.objects.filter(
            selection.starting(zones, path="reservation__"), *_earning(), hours__gt=0
        )
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
        row["description"], row["accounts"], row["bookings"], row["spent"], amount(row["cost"])
    )
