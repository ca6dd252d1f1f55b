"""Checks that the ledgers of promo codes and included hours agree with the reservations."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from reservations.booking.integrity.common import (
    MONEY_FIELD,
    approximately,
    sum_of_related,
)
from reservations.models import (
    Allowance,
    AllowanceEntry,
    AllowanceUse,
    LineItem,
    LineItemType,
    PromoCode,
    PromoRedemption,
    Reservation,
)
from reservations.models.status import BOOKED_STATUSES, Status
from roombook.money import ROUNDING_TOLERANCE

USING_BENEFITS = sorted(BOOKED_STATUSES | {Status.PROCESSING})


def promo_counters_off_their_ledger(now: dt.datetime) -> Iterator[str]:
    """Find promo codes whose counters differ from their redemptions."""
    is_open = Q(redemptions__given_back_at__isnull=True)
    rows = PromoCode.objects.annotate(
        taken=Count("redemptions", filter=is_open),
        given=Coalesce(
            Sum("redemptions__amount", filter=is_open), Value(Decimal(0)), output_field=MONEY_FIELD
        ),
    ).exclude(taken=F("uses"), given__range=approximately("spent"))
    for code, uses, spent, taken, given in rows.values_list(
        "code", "uses", "spent", "taken", "given"
    ):
        yield f"promo code {code}: {uses} uses of {spent}, its ledger has {taken} of {given:.2f}"


def promo_uses_off_their_reservation(now: dt.datetime) -> Iterator[str]:
    """Find promo uses of reservations that are not booked."""
    unreturned = _open_redemptions().exclude(reservation__status__in=USING_BENEFITS)
    for pk, status in unreturned.values_list("reservation", "reservation__status"):
        yield f"reservation {pk} is {status} and keeps its promo use"


def promotions_without_use(now: dt.datetime) -> Iterator[str]:
    """Find bookings with a promotion on their bill, but without a promo use."""
    used = _open_redemptions().filter(reservation=OuterRef("pk"))
    promoted = LineItem.objects.filter(reservation=OuterRef("pk"), type=LineItemType.PROMOTION)
    rows = Reservation.objects.filter(Exists(promoted), ~Exists(used), status__in=USING_BENEFITS)
    for (pk,) in rows.values_list("pk"):
        yield f"reservation {pk} has a promotion and took no use of its code"


def promo_uses_off_their_bill(now: dt.datetime) -> Iterator[str]:
    """Find promo uses whose amount differs from the discount on the bill."""
    lines = LineItem.objects.filter(type=LineItemType.PROMOTION)
    off = sum_of_related(lines, "total", by="reservation__promo_redemptions")
    rows = _open_redemptions().annotate(off=-off)
    rows = rows.exclude(
        amount__range=(F("off") - ROUNDING_TOLERANCE, F("off") + ROUNDING_TOLERANCE)
    )
    for pk, amount, reservation, on_bill in rows.values_list("pk", "amount", "reservation", "off"):
        yield (
            f"promo use {pk} of reservation {reservation} is {amount},"
            f" its bill takes {on_bill:.2f} off"
        )


def promo_uses_above_the_limit(now: dt.datetime) -> Iterator[str]:
    """Find accounts that have used a code too often. The limit can have been lowered since."""
    rows = (
        _open_redemptions()
        .values("promo_code__code", "user", "promo_code__max_uses_per_account")
        .annotate(times=Count("pk"))
        .filter(times__gt=F("promo_code__max_uses_per_account"))
        .order_by()
    )
    for row in rows:
        limit = row["promo_code__max_uses_per_account"]
        yield f"promo code {row['promo_code__code']}: user {row['user']}: {row['times']} of {limit}"


def allowances_overdrawn(now: dt.datetime) -> Iterator[str]:
    """Find allowances of which more hours were used than granted."""
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
    """Find reservations whose hours in the ledger differ from the hours on their bill."""
    entered = sum_of_related(AllowanceEntry.objects, "hours", is_integer=True)
    planned = sum_of_related(AllowanceUse.objects, "hours", is_integer=True)
    rows = Reservation.objects.annotate(entered=entered, planned=planned)
    wrong = rows.filter(~Q(entered=-F("planned")), status__in=USING_BENEFITS) | rows.filter(
        ~Q(entered=0)
    ).exclude(status__in=USING_BENEFITS)
    for pk, status, has, uses in wrong.values_list("pk", "status", "entered", "planned"):
        yield f"reservation {pk} is {status}: {-has} h in the ledger, {uses} h on its bill"


def hours_of_another_account(now: dt.datetime) -> Iterator[str]:
    """Find bookings that use the hours of another account."""
    rows = AllowanceEntry.objects.filter(reservation__isnull=False)
    rows = rows.exclude(allowance__user=F("reservation__user"))
    for pk, allowance, reservation in rows.values_list("pk", "allowance", "reservation"):
        yield (
            f"entry {pk}: allowance {allowance} is of another account"
            f" than reservation {reservation}"
        )


def hours_in_the_wrong_period(now: dt.datetime) -> Iterator[str]:
    """Find monthly hours without a month, and one-off hours with a month."""
    monthly = Q(allowance__kind=Allowance.Kind.MONTHLY)
    rows = AllowanceEntry.objects.filter(
        Q(monthly, period__isnull=True) | Q(~monthly, period__isnull=False)
    )
    for pk, allowance, kind, period in rows.values_list(
        "pk", "allowance", "allowance__kind", "period"
    ):
        yield f"entry {pk}: allowance {allowance} is {kind}, its period is {period}"


def _open_redemptions() -> QuerySet[PromoRedemption]:
    return PromoRedemption.objects.filter(given_back_at__isnull=True)


CHECKS = (
    promo_counters_off_their_ledger,
    promo_uses_off_their_reservation,
    promotions_without_use,
    promo_uses_off_their_bill,
    promo_uses_above_the_limit,
    allowances_overdrawn,
    allowance_hours_off_their_reservation,
    hours_of_another_account,
    hours_in_the_wrong_period,
)
