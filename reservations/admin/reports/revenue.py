"""Revenue: what the company earns by its rooms, by center, month and source.

**Which month.** A meeting earns in the month in which it begins, by the clock of its center: when
the service is given, not when it is paid. A month to come tells what is booked for it by now.

**What counts.** For reservations in the deployment's currency:

- *Billed*: the total of every Confirmed, Completed and NoShow reservation.
- *Refunded*: what their customers got back, or are about to get back, of that. A refund because
  the booking became cheaper (`reduced_by`) is none of these: the bill itself is lower.
- *Fees*: what is kept of Cancelled reservations, that is: taken, and neither given back nor owed
  back.
- **Revenue** = billed - refunded + fees. *Tax* is the part of it that is owed on: the bills' tax
  lines, of a refund or fee the same share as of its bill, rounded to the hundredth a reservation.
  **Net** = revenue - tax.

Money that is only reserved (Pending), and money on its way back from what was never booked, is no
revenue. A refund of a booking that the gateway refused is not counted: that money is still here,
and a person has to see to it.

**Source.** Each reservation has exactly one: the partner who brought it, else its promo code, else
none ("direct"). So the sums by center, by month and by source are the same total.
"""

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import (
    BigIntegerField,
    Count,
    Exists,
    F,
    FilteredRelation,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce, Greatest, Least

from centers.models import Center
from payments.models import Payment, Refund
from reservations.admin.reports.aggregates import (
    Hundredths,
    ProportionalShare,
    SummableMixin,
    subquery_sum,
    sum_hundredths,
    to_decimal,
)
from reservations.admin.reports.periods import annotate_month_index
from reservations.admin.reports.selection import ReportSelection, fetch_groups
from reservations.booking.integrity.money import effective_refunds
from reservations.models import LineItem, LineItemType, Partner, PromoCode, Reservation
from reservations.models.status import REVENUE_STATUSES, Status

CAPTURED = Payment.objects.filter(captured_at__isnull=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevenueSums(SummableMixin):
    """A sum of what reservations earn."""

    bookings: int = 0
    billed: Decimal = field(default=Decimal("0.00"))
    refunded: Decimal = field(default=Decimal("0.00"))
    fees: Decimal = field(default=Decimal("0.00"))
    tax: Decimal = field(default=Decimal("0.00"))

    @property
    def revenue(self) -> Decimal:
        return self.billed - self.refunded + self.fees

    @property
    def net(self) -> Decimal:
        return self.revenue - self.tax


NOTHING = RevenueSums()


@dataclass(frozen=True, slots=True, order=True)
class RevenueSource:
    """Who brought a booking: a partner, else a promo code, else nobody."""

    kind: str
    name: str = ""
    pk: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


DIRECT = RevenueSource("Direct")


@dataclass(frozen=True, slots=True)
class RevenuePiece:
    """The takings of one center, in one month, from one source; of many centers, of them all."""

    center: int | None
    month: dt.date
    source: RevenueSource
    takings: RevenueSums


@dataclass(frozen=True, slots=True)
class RevenueData:
    """A report; each of the three tables adds up to the total. Of very many centers there is no
    line each: then `by_center` is None."""

    total: RevenueSums
    by_center: dict[int, RevenueSums] | None
    by_month: dict[dt.date, RevenueSums]
    by_source: dict[RevenueSource, RevenueSums]
    names: dict[int, str]


def measure_revenue(selection: ReportSelection) -> RevenueData:
    """The revenue of the selection. Raises TooMuch where it falls into too many pieces."""
    tells_centers = selection.tells_centers()
    rows = list(sum_revenue_pieces(selection, by_center=tells_centers))
    by_month = dict.fromkeys(selection.period.months(), NOTHING)
    by_month.update(group_pieces(rows, lambda row: row.month))
    by_center = group_pieces(rows, lambda row: row.center) if tells_centers else None
    names = Center.objects.filter(pk__in=by_center or ()).values_list("pk", "name")
    return RevenueData(
        total=sum((row.takings for row in rows), NOTHING),
        by_center=by_center,
        by_month=by_month,
        by_source=group_pieces(rows, lambda row: row.source),
        names=dict(names),
    )


def group_pieces(
    rows: Iterable[RevenuePiece], key: Callable[[RevenuePiece], Any]
) -> dict[Any, RevenueSums]:
    sums: dict[Any, RevenueSums] = {}
    for row in rows:
        sums[key(row)] = sums.get(key(row), NOTHING) + row.takings
    return sums


def sum_revenue(selection: ReportSelection) -> RevenueSums:
    """Only the sum."""
    zones = selection.zones()
    found = [_takings(rows.aggregate(**sums)) for rows, sums in _questions(selection, zones)]
    return sum(found, NOTHING)


def sum_revenue_pieces(
    selection: ReportSelection, *, by_center: bool = True
) -> Iterable[RevenuePiece]:
    """The takings in as small pieces as the database makes of them, in no order."""
    zones = selection.zones()
    by = {
        "month": annotate_month_index(selection.period, zones),
        "by_partner": F("partner"),
        "by_code": F("promo_code"),
        # Looked up for each booking: only where it is asked for.
        **({"at": F("room__center")} if by_center else {}),
    }
    sums_of: dict[tuple[Any, ...], RevenueSums] = {}
    for rows, sums in _questions(selection, zones):
        for row in fetch_groups(rows.order_by().annotate(**by).values(*by).annotate(**sums)):
            key = (row.get("at"), row["month"], row["by_partner"], row["by_code"])
            sums_of[key] = sums_of.get(key, NOTHING) + _takings(row)
    months = selection.period.months()
    sources = _sources(sums_of)
    return (
        RevenuePiece(at, months[month], sources(partner, code), takings)
        for (at, month, partner, code), takings in sums_of.items()
    )


Question = tuple[QuerySet[Reservation], dict[str, Any]]


def _questions(selection: ReportSelection, zones: list[str]) -> tuple[Question, ...]:
    """The bills, and the few of which something went back, and the fees, each with what of it
    is summed up."""
    rows = Reservation.objects.filter(selection.starting(zones), currency=settings.CURRENCY)
    return (
        (_bills(rows), BILLS),
        (_refunded(rows), REFUNDED),
        (_cancelled(rows), CANCELLED),
    )


def _takings(row: dict[str, Any]) -> RevenueSums:
    return RevenueSums(
        bookings=row.get("bookings") or 0,
        **{name: to_decimal(row.get(name)) for name in ("billed", "refunded", "fees", "tax")},
    )


def _bills(rows: QuerySet[Reservation]) -> QuerySet[Reservation]:
    """With the tax line of each, of which a bill has one at most."""
    of_tax = FilteredRelation("line_items", condition=Q(line_items__type=LineItemType.TAX))
    return rows.filter(status__in=sorted(REVENUE_STATUSES)).annotate(tax_line=of_tax)


BILLS = {
    "bookings": Count("pk"),
    "billed": sum_hundredths("total_cost"),
    "tax": sum_hundredths("tax_line__total"),
}


def _refunded(rows: QuerySet[Reservation]) -> QuerySet[Reservation]:
    """Bookings that were refunded: what of the bill went back."""
    refunds = Refund.objects.filter(payment__reservation=OuterRef("pk"))
    return (
        rows.filter(Exists(refunds), status__in=sorted(REVENUE_STATUSES))
        .annotate(**PARTS)
        .annotate(loss=_or_nothing(Least(F("bill"), F("given") - F("cheaper"))))
    )


def _cancelled(rows: QuerySet[Reservation]) -> QuerySet[Reservation]:
    """Cancelled ones whose money did not all go back: what is kept of it."""
    payments = Payment.objects.captured().filter(reservation=OuterRef("pk"))
    owed = Coalesce(Hundredths("refund_promised"), 0) + F("cheaper")
    return (
        rows.filter(Exists(payments), status=Status.CANCELLED)
        .annotate(**PARTS, taken=subquery_sum(CAPTURED, "amount", by="reservation"))
        .annotate(fee=_or_nothing(F("taken") - Greatest(F("given"), owed)))
    )


def _or_nothing(hundredths: Any) -> Greatest:
    """The sum, and 0 where it is below."""
    return Greatest(Value(0), hundredths, output_field=BigIntegerField())


PARTS: dict[str, Any] = {
    "bill": Hundredths("total_cost"),
    "bill_tax": subquery_sum(
        LineItem.objects.filter(type=LineItemType.TAX), "total", by="reservation"
    ),
    "given": subquery_sum(effective_refunds(), "amount", by="payment__reservation"),
    "cheaper": Hundredths("reduced_by"),
}
REFUNDED = {
    "refunded": Sum("loss"),
    "tax": Sum(ProportionalShare(F("bill_tax"), Value(0) - F("loss"), F("bill"))),
}
CANCELLED = {
    "fees": Sum("fee"),
    "tax": Sum(ProportionalShare(F("bill_tax"), F("fee"), F("bill"))),
}


def _sources(keys: Iterable[tuple[Any, ...]]) -> Callable[[int | None, int | None], RevenueSource]:
    """From the ids of a partner and a promo code to the source that they make."""
    partners = {partner for _, _, partner, _ in keys if partner}
    codes = {code for _, _, partner, code in keys if code and not partner}
    sources = {
        **{
            ("Partner", pk): RevenueSource("Partner", name, pk)
            for pk, name in Partner.objects.filter(pk__in=partners).values_list("pk", "name")
        },
        **{
            ("Promo code", pk): RevenueSource("Promo code", code, pk)
            for pk, code in PromoCode.objects.filter(pk__in=codes).values_list("pk", "code")
        },
    }

    def source(partner: int | None, code: int | None) -> RevenueSource:
        if partner:
            return sources["Partner", partner]
        return sources["Promo code", code] if code else DIRECT

    return source
