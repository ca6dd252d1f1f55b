"""Checks that the ledgers of promo codes and included hours agree with the reservations."""

import datetime as dt
from decimal import Decimal
from typing import Any

from django.db.models import (
    Count,
    DateField,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce, TruncMonth

from reservations.booking.integrity.common import (
    CheckList,
    Rows,
    approximately,
    may_be_changed,
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
    RefundOverride,
    Reservation,
)
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.pricing.terms import ALL, get_terms
from roombook.db.sums import MONEY_FIELD, sum_of_related

CHECKS = CheckList()

USING_BENEFITS = sorted(BOOKED_STATUSES | {Status.PROCESSING})
HAS_OVERRIDE = Exists(RefundOverride.objects.filter(reservation=OuterRef("pk")))


@CHECKS.add("promo code {code}: {uses} uses of {spent}, its ledger has {taken} of {given:.2f}")
def promo_counters_off_their_ledger(now: dt.datetime) -> Rows:
    is_open = Q(redemptions__given_back_at__isnull=True)
    return PromoCode.objects.annotate(
        taken=Count("redemptions", filter=is_open),
        given=Coalesce(
            Sum("redemptions__amount", filter=is_open), Value(Decimal(0)), output_field=MONEY_FIELD
        ),
    ).exclude(taken=F("uses"), given__range=approximately(F("spent")))


@CHECKS.add("reservation {} is {} and keeps its promo use")
def promo_uses_off_their_reservation(now: dt.datetime) -> Rows:
    used = _open_redemptions().filter(reservation=OuterRef("pk"))
    rows = Reservation.objects.filter(Exists(used)).exclude(status__in=USING_BENEFITS)
    for row in rows.annotate(is_decided=HAS_OVERRIDE):
        if not _was_cancelled_late(row):
            yield row.pk, row.status


@CHECKS.add("reservation {pk} has a promotion and took no use of its code")
def promotions_without_use(now: dt.datetime) -> Rows:
    # A no-show that costs nothing has given it back, also if it was undone.
    used = _open_redemptions().filter(reservation=OuterRef("pk"))
    promoted = LineItem.objects.filter(reservation=OuterRef("pk"), type=LineItemType.PROMOTION)
    rows = Reservation.objects.filter(Exists(promoted), ~Exists(used), status__in=USING_BENEFITS)
    return rows.exclude(cancellation_terms__no_show_percent=0)


@CHECKS.add("promo use {pk} of reservation {reservation} is {amount}, its bill takes {off:.2f} off")
def promo_uses_off_their_bill(now: dt.datetime) -> Rows:
    lines = LineItem.objects.filter(type=LineItemType.PROMOTION)
    off = sum_of_related(lines, "total", by="reservation__promo_redemptions")
    return _open_redemptions().annotate(off=-off).exclude(amount__range=approximately(F("off")))


@CHECKS.add("promo code {promo_code__code}: account {user} has used it {times} times")
def promo_uses_above_the_limit(now: dt.datetime) -> Rows:
    limit = "max_uses_per_account"
    is_older = may_be_changed(now, PromoCode, "promo_code", limit, made="reservation__created_at")
    rows = _open_redemptions().exclude(is_older).values("promo_code__code", "user")
    rows = rows.annotate(times=Count("pk"), limit=F(f"promo_code__{limit}")).order_by()
    return rows.filter(times__gt=F("limit"))


@CHECKS.add(
    "reservation {reservation}: nothing of it is behind line {position} of its bill: {description}"
)
def lines_without_their_source(now: dt.datetime) -> Rows:
    own = Q(reservation=OuterRef("reservation"))
    service = ChosenService.objects.filter(own, service=OuterRef("service"))
    allowance = AllowanceUse.objects.filter(own, allowance=OuterRef("allowance"))
    adjustment = PriceAdjustment.objects.filter(own)
    return LineItem.objects.filter(
        Q(~Exists(service), service__isnull=False)
        | Q(~Exists(allowance), allowance__isnull=False)
        | Q(~Exists(adjustment), type=LineItemType.ADJUSTMENT)
        | Q(type=LineItemType.PROMOTION, reservation__promo_code=None)
    )


@CHECKS.add("reservation {reservation}: its use of allowance {allowance} is not the {off:.2f} off")
def allowance_uses_off_their_lines(now: dt.datetime) -> Rows:
    lines = LineItem.objects.filter(
        reservation=OuterRef("reservation"), allowance=OuterRef("allowance")
    ).order_by()
    sums = lines.values("allowance").annotate(sum=Sum("total")).values("sum")
    off = -Coalesce(Subquery(sums), Value(Decimal(0)), output_field=MONEY_FIELD)
    rows = AllowanceUse.objects.annotate(off=off)
    return rows.exclude(off__range=approximately(F("discount")))


@CHECKS.add("allowance {allowance} of {allowance__hours} h, in {period}: {used} h")
def allowances_overdrawn(now: dt.datetime) -> Rows:
    entries = AllowanceEntry.objects.values("allowance", "period", "allowance__hours").order_by()
    return entries.annotate(used=-Sum("hours")).filter(used__gt=F("allowance__hours"))


@CHECKS.add("reservation {} is {}: {} h in the ledger, {} h on its bill")
def allowance_hours_off_their_reservation(now: dt.datetime) -> Rows:
    # A cancellation and a no-show give back as many of them as the terms say.
    entered = sum_of_related(AllowanceEntry.objects, "hours", by="reservation")
    planned = sum_of_related(AllowanceUse.objects, "hours", by="reservation", is_integer=True)
    rows = Reservation.objects.annotate(entered=entered, planned=planned, is_decided=HAS_OVERRIDE)
    is_in_use = Q(status__in=USING_BENEFITS)
    unusual = Q(is_in_use, ~Q(entered=-F("planned"))) | Q(~is_in_use, ~Q(entered=0))
    for row in rows.filter(unusual):
        costs_less = row.status in BOOKED_STATUSES and get_terms(row).no_show_percent < ALL
        may_differ = costs_less or _was_cancelled_late(row)
        if not (may_differ and -row.planned <= row.entered <= 0):
            yield row.pk, row.status, f"{-row.entered:g}", row.planned


@CHECKS.add(
    "reservation {reservation} has used {used} h of allowance {allowance}, which is not on its bill"
)
def hours_without_their_use(now: dt.datetime) -> Rows:
    use = AllowanceUse.objects.filter(
        reservation=OuterRef("reservation"), allowance=OuterRef("allowance")
    )
    entries = AllowanceEntry.objects.filter(~Exists(use)).order_by()
    sums = entries.values_list("reservation", "allowance").annotate(used=-Sum("hours"))
    return sums.exclude(used=0)


@CHECKS.add("entry {}: allowance {} is {}, its period is {}")
def hours_in_the_wrong_period(now: dt.datetime) -> Rows:
    # What is given back has the same month as its use.
    monthly = Q(allowance__kind=Allowance.Kind.MONTHLY)
    rows = AllowanceEntry.objects.filter(
        Q(monthly, period__isnull=True) | Q(~monthly, period__isnull=False)
    )
    yield from rows.values_list("pk", "allowance", "allowance__kind", "period")
    # In every time zone, the meeting is at most a day off.
    day = dt.timedelta(days=1)
    first = TruncMonth(F("reservation__start") - day, output_field=DateField())
    last = TruncMonth(F("reservation__start") + day, output_field=DateField())
    used = AllowanceEntry.objects.filter(monthly, period__isnull=False).order_by()
    sums = used.values_list("allowance", "reservation", "period", first, last)
    sums = sums.annotate(Sum("hours"), Max("pk")).filter(hours__sum__lt=0)
    for allowance, _, period, earliest, latest, _, pk in sums:
        if not earliest <= period <= latest:
            yield pk, allowance, Allowance.Kind.MONTHLY, period


def _was_cancelled_late(row: Any) -> bool:
    """Whether the terms gave back a part only, or staff decided what came back (`is_decided`)."""
    terms, at = get_terms(row), row.cancelled_at
    was_booked = row.status == Status.CANCELLED and row.booked_at is not None and at is not None
    if not was_booked or terms.returns_benefits:
        return False
    return bool(row.is_decided) or terms.get_percent(row, at) < ALL


def _open_redemptions() -> QuerySet[PromoRedemption]:
    return PromoRedemption.objects.filter(given_back_at__isnull=True)
