"""Whether the books agree with each other: every promise that can be checked after the fact.

Each check is one question to the database that finds nothing when all is well, so that a million
reservations are no trouble. A finding names its rows; nothing is changed.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, DecimalField, Exists, F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.models import (
    AllowanceEntry,
    AllowanceUse,
    LineItem,
    LineItemType,
    PromoCode,
    PromoRedemption,
    Reservation,
)
from reservations.status import BOOKED, HOLDING, Status

MONEY = DecimalField(max_digits=14, decimal_places=2)
# SQLite adds up in binary: sums of money are compared to within less than any coin.
NOISE = Decimal("0.0001")
# A worker's lease is a minute; a payment in doubt for longer than this has been forgotten.
FORGOTTEN = dt.timedelta(hours=1)

USING_BENEFITS = sorted(BOOKED | {Status.PROCESSING})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that cannot be: which check says so, and of which rows."""

    check: str
    detail: str

    def __str__(self) -> str:
        return f"{self.check}: {self.detail}"


def findings(*, now: dt.datetime) -> Iterator[Finding]:
    """Everything that is wrong, check by check."""
    for check in CHECKS:
        for detail in check(now):
            yield Finding(check.__name__.replace("_", " "), detail)


def overlapping_holders(now: dt.datetime) -> Iterator[str]:
    """Two reservations that hold one room at the same time."""
    rivals = Reservation.objects.filter(
        room=OuterRef("room"),
        holds_slot=True,
        pk__gt=OuterRef("pk"),
        start__lt=OuterRef("occupied_until"),
        occupied_until__gt=OuterRef("start"),
    )
    rows = Reservation.objects.filter(holds_slot=True).annotate(
        rival=Subquery(rivals.order_by("pk").values("pk")[:1])
    )
    for pk, rival, room in rows.filter(rival__isnull=False).values_list("pk", "rival", "room"):
        yield f"reservations {pk} and {rival} both hold room {room}"


def totals_that_are_not_their_lines(now: dt.datetime) -> Iterator[str]:
    """A total that is not the sum of its line items."""
    rows = Reservation.objects.annotate(lines=_sum_of(LineItem, "total"))
    rows = rows.exclude(lines__range=_about("total_cost"))
    for pk, total, lines in rows.values_list("pk", "total_cost", "lines"):
        yield f"reservation {pk}: its total is {total}, its lines add up to {lines}"


def bookings_without_payment(now: dt.datetime) -> Iterator[str]:
    """A booking that costs something and that nobody pays for, or pays another sum for."""
    paid = Payment.objects.filter(
        reservation=OuterRef("pk"),
        amount=OuterRef("total_cost"),
        state__in=[PaymentState.AUTHORIZED, PaymentState.CAPTURED],
    )
    rows = Reservation.objects.filter(status__in=sorted(BOOKED), total_cost__gt=0)
    for pk, status in rows.exclude(Exists(paid)).values_list("pk", "status"):
        yield f"reservation {pk} is {status} without a payment of its total"


def payments_without_booking(now: dt.datetime) -> Iterator[str]:
    """Money that was taken for a reservation that never became a booking."""
    rows = Payment.objects.filter(
        state=PaymentState.CAPTURED,
        reservation__status__in=[Status.NEW, Status.EXPIRED, Status.DECLINED],
    ).exclude(refunds__state=RefundState.STARTED)
    for pk, reservation, status in rows.values_list("pk", "reservation", "reservation__status"):
        yield f"payment {pk} was captured, and its reservation {reservation} is {status}"


def refunds_above_their_payment(now: dt.datetime) -> Iterator[str]:
    """More money given back than was taken."""
    given = Refund.objects.filter(payment=OuterRef("pk")).exclude(state=RefundState.REFUSED)
    sums = given.order_by().values("payment").annotate(all=Sum("amount")).values("all")
    rows = Payment.objects.annotate(given=Subquery(sums)).filter(given__gt=F("amount") + NOISE)
    for pk, amount, all_given in rows.values_list("pk", "amount", "given"):
        yield f"payment {pk} of {amount} has refunds of {all_given}"


def payments_forgotten(now: dt.datetime) -> Iterator[str]:
    """A payment in doubt that nobody has settled: reconcile_payments does not run."""
    rows = Payment.objects.filter(state=PaymentState.STARTED, lease_until__lt=now - FORGOTTEN)
    for pk, reservation in rows.values_list("pk", "reservation"):
        yield f"payment {pk} of reservation {reservation} is in doubt for over an hour"


def promo_counters_off_their_ledger(now: dt.datetime) -> Iterator[str]:
    """A promo code whose counters say something else than its redemptions."""
    is_open = Q(redemptions__given_back_at__isnull=True)
    rows = PromoCode.objects.annotate(
        taken=Count("redemptions", filter=is_open),
        given=Coalesce(
            Sum("redemptions__amount", filter=is_open), Value(Decimal(0)), output_field=MONEY
        ),
    ).exclude(taken=F("uses"), given__range=_about("spent"))
    for code, uses, spent, taken, given in rows.values_list(
        "code", "uses", "spent", "taken", "given"
    ):
        yield f"promo code {code}: {uses} uses of {spent}, its ledger has {taken} of {given}"


def promo_uses_off_their_reservation(now: dt.datetime) -> Iterator[str]:
    """A promo use kept by a reservation that is no booking, or missing from one that is."""
    is_open = PromoRedemption.objects.filter(given_back_at__isnull=True)
    kept = is_open.exclude(reservation__status__in=USING_BENEFITS)
    for pk, status in kept.values_list("reservation", "reservation__status"):
        yield f"reservation {pk} is {status} and keeps its promo use"
    missing = Reservation.objects.filter(
        status__in=USING_BENEFITS, line_items__type=LineItemType.PROMOTION
    ).exclude(Exists(is_open.filter(reservation=OuterRef("pk"))))
    for (pk,) in missing.values_list("pk"):
        yield f"reservation {pk} has a promotion and took no use of its code"


def allowances_overdrawn(now: dt.datetime) -> Iterator[str]:
    """More hours used than were granted."""
    rows = (
        AllowanceEntry.objects.values("allowance", "period", "allowance__hours")
        .annotate(entered=Sum("hours"))
        .filter(entered__lt=-F("allowance__hours"))
        .order_by()
    )
    for row in rows:
        used, granted = -row["entered"], row["allowance__hours"]
        yield f"allowance {row['allowance']}, {row['period'] or 'in all'}: {used} of {granted} h"


def allowance_hours_off_their_reservation(now: dt.datetime) -> Iterator[str]:
    """A ledger that holds other hours of a reservation than the reservation uses."""
    entered = _sum_of(AllowanceEntry, "hours", whole=True)
    planned = _sum_of(AllowanceUse, "hours", whole=True)
    rows = Reservation.objects.annotate(entered=entered, planned=planned)
    wrong = rows.filter(~Q(entered=-F("planned")), status__in=USING_BENEFITS) | rows.filter(
        ~Q(entered=0)
    ).exclude(status__in=USING_BENEFITS)
    for pk, status, has, uses in wrong.values_list("pk", "status", "entered", "planned"):
        yield f"reservation {pk} is {status}: {-has} h in the ledger, {uses} h on its bill"


def holds_without_cause(now: dt.datetime) -> Iterator[str]:
    """A reservation that is waiting for a payment that is not there."""
    paying = Payment.objects.filter(reservation=OuterRef("pk"), state=PaymentState.STARTED)
    rows = Reservation.objects.filter(status=Status.PROCESSING).exclude(Exists(paying))
    for (pk,) in rows.values_list("pk"):
        yield f"reservation {pk} is Processing without a payment under way"
    unheld = Reservation.objects.filter(status__in=sorted(HOLDING), holds_slot=False)
    for pk, status in unheld.values_list("pk", "status"):
        yield f"reservation {pk} is {status} and does not hold its room"


CHECKS: tuple[Callable[[dt.datetime], Iterator[str]], ...] = (
    overlapping_holders,
    totals_that_are_not_their_lines,
    bookings_without_payment,
    payments_without_booking,
    refunds_above_their_payment,
    payments_forgotten,
    promo_counters_off_their_ledger,
    promo_uses_off_their_reservation,
    allowances_overdrawn,
    allowance_hours_off_their_reservation,
    holds_without_cause,
)


def _about(column: str) -> tuple[Any, Any]:
    return F(column) - NOISE, F(column) + NOISE


def _sum_of(model: Any, column: str, *, whole: bool = False) -> Coalesce:
    """The sum of a column over a reservation's rows, 0 where there are none."""
    rows = model.objects.filter(reservation=OuterRef("pk")).order_by().values("reservation")
    zero = Value(0) if whole else Value(Decimal(0), output_field=MONEY)
    return Coalesce(Subquery(rows.annotate(all=Sum(column)).values("all")), zero)
