"""Checks that the ledgers of promo codes and included hours agree with the reservations."""

import datetime as dt
from decimal import Decimal

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from payments.models import LedgerLine
from reservations.booking.integrity.common import (
    CheckList,
    Rows,
    approximately,
)
from reservations.models import (
    Allowance,
    AllowanceEntry,
    AllowanceUse,
    ChosenService,
    LineItem,
    LineItemType,
    PriceAdjustment,
    PromoCode,
    PromoRedemption,
    Reservation,
)
from reservations.models.status import BOOKED_STATUSES, Status
from roombook.db.sums import MONEY_FIELD, sum_of_related

CHECKS = CheckList()

USING_BENEFITS = sorted(BOOKED_STATUSES | {Status.PROCESSING})
# By terms of its center, a part of the price was kept, or nothing was to be paid.
FEES = LedgerLine.objects.order_by().values("reservation").annotate(fee=Sum("cancellation"))
CANCELLED_LATE = Q(status=Status.CANCELLED, booked_at__isnull=False, cancelled_at__isnull=False) & (
    ~Q(cancellation_terms__name="")
    & (Q(pk__in=FEES.filter(fee__lt=0).values("reservation")) | Q(total_cost=0))
)


@CHECKS.add("promo code {}: {} uses of {}, its ledger has {} of {:.2f}")
def promo_counters_off_their_ledger(now: dt.datetime) -> Rows:
    """Find promo codes whose counters differ from their redemptions."""
    is_open = Q(redemptions__given_back_at__isnull=True)
    rows = PromoCode.objects.annotate(
        taken=Count("redemptions", filter=is_open),
        given=Coalesce(
            Sum("redemptions__amount", filter=is_open), Value(Decimal(0)), output_field=MONEY_FIELD
        ),
    ).exclude(taken=F("uses"), given__range=approximately(F("spent")))
    return rows.values_list("code", "uses", "spent", "taken", "given")


@CHECKS.add("reservation {} is {} and keeps its promo use")
def promo_uses_off_their_reservation(now: dt.datetime) -> Rows:
    """Find promo uses of reservations that are not booked, and were not cancelled late."""
    kept = Reservation.objects.filter(CANCELLED_LATE)
    unreturned = _open_redemptions().exclude(reservation__status__in=USING_BENEFITS)
    unreturned = unreturned.exclude(reservation__in=kept)
    return unreturned.values_list("reservation", "reservation__status")


@CHECKS.add("reservation {} has a promotion and took no use of its code")
def promotions_without_use(now: dt.datetime) -> Rows:
    """Find bookings with a promotion on their bill, but without a promo use."""
    used = _open_redemptions().filter(reservation=OuterRef("pk"))
    promoted = LineItem.objects.filter(reservation=OuterRef("pk"), type=LineItemType.PROMOTION)
    rows = Reservation.objects.filter(Exists(promoted), ~Exists(used), status__in=USING_BENEFITS)
    return rows.values_list("pk")


@CHECKS.add("promo use {0} of reservation {2} is {1}, its bill takes {3:.2f} off")
def promo_uses_off_their_bill(now: dt.datetime) -> Rows:
    """Find promo uses whose amount differs from the discount on the bill."""
    lines = LineItem.objects.filter(type=LineItemType.PROMOTION)
    off = sum_of_related(lines, "total", by="reservation__promo_redemptions")
    rows = _open_redemptions().annotate(off=-off).exclude(amount__range=approximately(F("off")))
    return rows.values_list("pk", "amount", "reservation", "off")


@CHECKS.add("promo code {0}: user {1}: {3} of {2}")
def promo_uses_above_the_limit(now: dt.datetime) -> Rows:
    """Find accounts that have used a code too often. The limit can have been lowered since."""
    columns = ("promo_code__code", "user", "promo_code__max_uses_per_account")
    rows = _open_redemptions().values_list(*columns).annotate(times=Count("pk"))
    return rows.filter(times__gt=F("promo_code__max_uses_per_account")).order_by()


@CHECKS.add("reservation {}: nothing of it is behind line {} of its bill: {}")
def lines_without_their_source(now: dt.datetime) -> Rows:
    """Find lines of bills without their service, allowance, adjustment or promo code."""
    own = Q(reservation=OuterRef("reservation"))
    service = ChosenService.objects.filter(own, service=OuterRef("service"))
    allowance = AllowanceUse.objects.filter(own, allowance=OuterRef("allowance"))
    adjustment = PriceAdjustment.objects.filter(own)
    rows = LineItem.objects.filter(
        Q(~Exists(service), service__isnull=False)
        | Q(~Exists(allowance), allowance__isnull=False)
        | Q(~Exists(adjustment), type=LineItemType.ADJUSTMENT)
        | Q(type=LineItemType.PROMOTION, reservation__promo_code=None)
    )
    return rows.values_list("reservation", "position", "description")


@CHECKS.add("allowance {}, {}: {} of {} h")
def allowances_overdrawn(now: dt.datetime) -> Rows:
    """Find allowances of which more hours were used than granted."""
    entries = AllowanceEntry.objects.values_list("allowance", "period", "allowance__hours")
    rows = entries.annotate(entered=Sum("hours")).filter(entered__lt=-F("allowance__hours"))
    for allowance, period, granted, entered in rows.order_by():
        yield allowance, period or "in all", -entered, granted


@CHECKS.add("reservation {} is {}: {} h in the ledger, {} h on its bill")
def allowance_hours_off_their_reservation(now: dt.datetime) -> Rows:
    """Find reservations whose hours in the ledger differ from the hours on their bill.

    A cancellation and a no-show give back as many of them as the terms say.
    """
    entered = sum_of_related(AllowanceEntry.objects, "hours", by="reservation")
    planned = sum_of_related(AllowanceUse.objects, "hours", by="reservation", is_integer=True)
    rows = Reservation.objects.annotate(entered=entered, planned=planned)
    costs_less = Q(status__in=BOOKED_STATUSES) & ~Q(cancellation_terms__no_show_percent=100)
    may_differ = CANCELLED_LATE | costs_less
    is_in_use = Q(status__in=USING_BENEFITS)
    wrong = rows.filter(
        Q(may_differ, Q(entered__gt=0) | Q(entered__lt=-F("planned")))
        | Q(~may_differ, is_in_use, ~Q(entered=-F("planned")))
        | Q(~may_differ, ~is_in_use, ~Q(entered=0))
    )
    for pk, status, has, uses in wrong.values_list("pk", "status", "entered", "planned"):
        yield pk, status, f"{-has:g}", uses


@CHECKS.add("entry {}: allowance {} is of another account than reservation {}")
def hours_of_another_account(now: dt.datetime) -> Rows:
    """Find bookings that use the hours of another account."""
    rows = AllowanceEntry.objects.filter(reservation__isnull=False)
    rows = rows.exclude(allowance__user=F("reservation__user"))
    return rows.values_list("pk", "allowance", "reservation")


@CHECKS.add("entry {}: allowance {} is {}, its period is {}")
def hours_in_the_wrong_period(now: dt.datetime) -> Rows:
    """Find monthly hours without a month, and one-off hours with a month."""
    monthly = Q(allowance__kind=Allowance.Kind.MONTHLY)
    rows = AllowanceEntry.objects.filter(
        Q(monthly, period__isnull=True) | Q(~monthly, period__isnull=False)
    )
    return rows.values_list("pk", "allowance", "allowance__kind", "period")


def _open_redemptions() -> QuerySet[PromoRedemption]:
    return PromoRedemption.objects.filter(given_back_at__isnull=True)
