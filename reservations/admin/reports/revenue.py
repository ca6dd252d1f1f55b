"""The revenue report: what the company earns from its rooms, by month, center and source.

**Month.** A booking counts in the month in which its meeting starts, by the local time of its
center: when the service is given, not when it is paid. A future month shows what is booked so far.

**What counts**, of reservations in the deployment's currency:

- *Billed*: the total of every Confirmed, Completed and NoShow reservation, before its price was
  reduced (``reduced_by``), and what was captured for Cancelled ones.
- *Refunded*: what the customers of these got back, or are about to get back, for whatever reason:
  the price was reduced, the booking was cancelled, or staff refunded a part of it. What is due
  counts up to the bill, and what was returned counts in full: if staff refunded a booking in cash
  and again in the gateway's dashboard, its revenue is below zero, as is the money that is left.
- **Revenue** = billed - refunded.
- *Fees*: the part of the revenue that is kept of Cancelled reservations.
- *Tax*: the tax lines of the bills. Of a fee and of a refund that leaves the bill as it is, the
  same share as of its bill, never more, rounded to the hundredth for each reservation.
- **Net** = revenue - tax.

Money that is only authorized (Pending) is no revenue, nor is money of an earlier attempt to pay for
the same reservation, or for a draft that was never booked: only the last payment of a booking
counts, with the payments for its changes. A price reduction, and the refund that was promised at a
cancellation, count also if the gateway refused to refund them: the customer is owed that money. Any
other refund that was refused does not count: the money is still here, and staff have to resolve it.

**Source.** Every reservation has exactly one: its partner, else its promo code, else none
("Direct"). So the sums by center, by month and by source have the same total.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple, TypeVar

from django.conf import settings
from django.db.models import (
    BigIntegerField,
    Count,
    Exists,
    Expression,
    F,
    FilteredRelation,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, Least

from payments.models import (
    COMPLETED_REFUND_STATES,
    Payment,
    PaymentPurpose,
    PaymentState,
    Refund,
)
from reservations.admin.reports.aggregates import (
    ZERO,
    Breakdown,
    Hundredths,
    ProportionalShare,
    SummableMixin,
    add_up,
    break_down,
    subquery_sum,
    sum_hundredths,
)
from reservations.admin.reports.report import (
    Report,
    ReportFigure,
    build_center_table,
    build_month_chart,
    build_month_table,
    sort_by_size,
)
from reservations.admin.reports.selection import ReportGroup, ReportSelection
from reservations.admin.reports.tables import COUNT, MONEY, ReportColumn, build_table
from reservations.booking.integrity.money import effective_refunds
from reservations.models import LineItem, LineItemType, Reservation
from reservations.models.changes import PAYS_FOR_NOTHING
from reservations.models.status import REVENUE_STATUSES, Status
from roombook import money


@dataclass(frozen=True, slots=True, kw_only=True)
class RevenueSums(SummableMixin):
    """The revenue of some reservations."""

    bookings: int = 0
    billed: Decimal = ZERO
    refunded: Decimal = ZERO
    fees: Decimal = ZERO
    tax: Decimal = ZERO

    @property
    def revenue(self) -> Decimal:
        return self.billed - self.refunded

    @property
    def net(self) -> Decimal:
        return self.revenue - self.tax


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
    "by_partner": F("partner"),
    "partner_name": F("partner__name"),
    "by_promo_code": F("promo_code"),
    "promo_code_text": F("promo_code__code"),
}

COLUMNS = (
    ReportColumn("Bookings", COUNT, "bookings"),
    ReportColumn("Billed", MONEY, "billed"),
    ReportColumn("Refunded", MONEY, "refunded"),
    ReportColumn("Revenue", MONEY, "revenue"),
    ReportColumn("of which cancellation fees", MONEY, "fees"),
    ReportColumn("of which tax", MONEY, "tax"),
    ReportColumn("Net of tax", MONEY, "net"),
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
            ReportFigure("Refunded", money.format_amount(total.refunded)),
            ReportFigure("Cancellation fees", money.format_amount(total.fees)),
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
            f"Meetings in {settings.CURRENCY} that start in the period, by the local time of their"
            " center. Revenue is the amount billed for Confirmed, Completed and No-show"
            " reservations and captured for Cancelled ones, less all refunds. Requests awaiting"
            " approval are not included."
        ),
    )


def measure_revenue(
    selection: ReportSelection,
) -> tuple[Breakdown[RevenueSums], dict[RevenueSource, RevenueSums]]:
    """The revenue of the selection, and the same by source. Raises ReportTooLarge."""
    groups = _fetch_groups(selection, SOURCE_KEYS)
    by_source = add_up(
        (RevenueSource.from_group(group), RevenueSums.from_row(group)) for group in groups
    )
    return break_down(selection, groups, RevenueSums), by_source


def measure_reservations(
    selection: ReportSelection,
) -> tuple[Breakdown[RevenueSums], dict[int, RevenueSums]]:
    """The revenue of the selection, and of each of its reservations. Raises ReportTooLarge."""
    groups = _fetch_groups(selection, {"reservation": F("pk")})
    by_reservation = add_up((group["reservation"], RevenueSums.from_row(group)) for group in groups)
    return break_down(selection, groups, RevenueSums), by_reservation


def _fetch_groups(selection: ReportSelection, keys: Mapping[str, F]) -> list[ReportGroup]:
    return [
        group
        for rows, sums in _get_queries(selection)
        for group in selection.fetch_sums(rows, sums, keys=keys)
    ]


def sum_revenue(selection: ReportSelection) -> RevenueSums:
    """Only the total of the selection."""
    rows = [rows.aggregate(**sums) for rows, sums in _get_queries(selection)]
    return sum(map(RevenueSums.from_row, rows), RevenueSums())


# --- Queries -------------------------------------------------------------------------------------

ModelT = TypeVar("ModelT", bound=Model)


def is_superseded(payment: str, reservation: str) -> Q:
    """The condition that a payment pays for nothing.

    A later payment for the same booking was authorized, and this one was captured at the gateway
    while its attempt failed; or the change that it was for was not applied. So it is refunded in
    full. The paths lead to the payment and to its reservation.
    """
    later = Payment.objects.filter(
        Q(state=PaymentState.AUTHORIZED) | Q(captured_at__isnull=False),
        purpose=PaymentPurpose.BOOKING,
        reservation=OuterRef(reservation),
        pk__gt=OuterRef(payment),
    )
    not_applied = Payment.objects.filter(PAYS_FOR_NOTHING, pk=OuterRef(payment))
    return Q(Exists(later)) | Q(Exists(not_applied))


def _of_paying(rows: QuerySet[ModelT], payment: str, reservation: str) -> QuerySet[ModelT]:
    """Limit rows to those of the last payment for the booking, and of payments for its changes."""
    return rows.exclude(is_superseded(payment, reservation))


CAPTURED_PAYMENTS = _of_paying(
    Payment.objects.filter(captured_at__isnull=False), "pk", "reservation"
)
REFUNDS = _of_paying(effective_refunds(), "payment", "payment__reservation")
COMPLETED_REFUNDS = REFUNDS.filter(state__in=COMPLETED_REFUND_STATES)


def _get_queries(
    selection: ReportSelection,
) -> tuple[tuple[QuerySet[Reservation], Mapping[str, Expression]], ...]:
    """The bookings, the few of them with other refunds, and the cancelled ones that were paid.

    Each with the expressions that sum it up.
    """
    rows = Reservation.objects.filter(selection.filter_reservations(), currency=settings.CURRENCY)
    return (
        (_get_bookings(rows), BILL_SUMS),
        (_get_refunded_bookings(rows), REFUND_SUMS),
        (_get_paid_and_cancelled(rows), FEE_SUMS),
    )


BILL_SUMS = {
    "bookings": Count("pk"),
    "billed": Sum(Hundredths("total_cost") + Hundredths("reduced_by")),
    "refunded": sum_hundredths("reduced_by"),
    "tax": sum_hundredths("tax_line__total"),
}


def _get_bookings(rows: QuerySet[Reservation]) -> QuerySet[Reservation]:
    # A bill has one tax line at most.
    tax_line = FilteredRelation("line_items", condition=Q(line_items__type=LineItemType.TAX))
    return rows.filter(status__in=sorted(REVENUE_STATUSES)).annotate(tax_line=tax_line)


AMOUNTS: Mapping[str, Expression] = {
    "bill": Hundredths("total_cost"),
    "bill_tax": subquery_sum(
        LineItem.objects.filter(type=LineItemType.TAX), "total", path="reservation"
    ),
    "returned": subquery_sum(REFUNDS, "amount", path="payment__reservation"),
    "completed": subquery_sum(COMPLETED_REFUNDS, "amount", path="payment__reservation"),
    "reduction": Hundredths("reduced_by"),
}
REFUND_SUMS = {
    "refunded": Sum("loss"),
    "tax": Sum(ProportionalShare(F("bill_tax"), Value(0) - Least(F("bill"), F("loss")), F("bill"))),
}


def _get_refunded_bookings(rows: QuerySet[Reservation]) -> QuerySet[Reservation]:
    """Bookings with refunds; ``loss`` is what was refunded beyond the reduction of the price."""
    refunds = Refund.objects.filter(payment__reservation=OuterRef("pk"))
    owed = Least(F("bill"), F("returned") - F("reduction"))
    loss = _at_least_zero(owed, F("completed") - F("reduction"))
    return (
        rows.filter(Exists(refunds), status__in=sorted(REVENUE_STATUSES))
        .annotate(**AMOUNTS)
        .annotate(loss=loss)
    )


FEE_SUMS = {
    "billed": Sum("captured"),
    "refunded": Sum("loss"),
    "fees": Sum("fee"),
    "tax": Sum(ProportionalShare(F("bill_tax"), F("fee"), F("bill"))),
}


def _get_paid_and_cancelled(rows: QuerySet[Reservation]) -> QuerySet[Reservation]:
    """Cancelled reservations that were paid; ``fee`` is kept, ``loss`` is not."""
    payments = CAPTURED_PAYMENTS.filter(reservation=OuterRef("pk"))
    owed = Coalesce(Hundredths("refund_promised"), 0) + F("reduction")
    captured = subquery_sum(CAPTURED_PAYMENTS, "amount", path="reservation")
    return (
        rows.filter(Exists(payments), status=Status.CANCELLED, booked_at__isnull=False)
        .annotate(**AMOUNTS, captured=captured)
        .annotate(fee=_at_least_zero(F("captured") - Greatest(F("returned"), owed)))
        .annotate(loss=_at_least_zero(F("captured") - F("fee"), F("completed")))
    )


def _at_least_zero(*hundredths: Combinable) -> Greatest:
    return Greatest(Value(0), *hundredths, output_field=BigIntegerField())
