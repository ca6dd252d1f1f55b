"""The discounts report: what promo codes, allowances and adjustments by staff took off the bills.

It adds up the reductions of the ledger, before tax, on the days on which revenue has them. Only the
table of single allowances is not from the ledger, which does not tell them apart.
"""

from django.conf import settings
from django.db.models import Count, Q, Sum

from payments.ledger.accounts import BILL, Account
from reservations.display import format_staff, format_time_span
from reservations.models import AllowanceUse, RefundOverride
from reservations.models.status import REVENUE_STATUSES
from reservations.reports.cube import (
    CENTER,
    MONTH,
    Cube,
    Dimension,
    Report,
    Sums,
    count,
    credit,
    debit,
)
from reservations.reports.ledger import Hundredths, add_up_recognized
from reservations.reports.revenue import get_promo_code
from reservations.reports.selection import MAX_GROUPS, ReportSelection, fetch_at_most
from roombook.money import to_hundredths

# Adjustments may add to the price and are negative then.
ADJUSTMENTS = (Account.ADJUSTMENTS, Account.WAIVED)
TOTAL = debit("Total", Account.PROMOTIONS, Account.INCLUDED_HOURS, *ADJUSTMENTS)
PROMOTIONS = debit("Promo codes", Account.PROMOTIONS)
INCLUDED_HOURS = debit("Allowances", Account.INCLUDED_HOURS)
ADJUSTED = debit("Adjustments", *ADJUSTMENTS)
MEASURES = (PROMOTIONS, INCLUDED_HOURS, ADJUSTED, TOTAL)
BY_PROMO_CODE = debit("Discount", Account.PROMOTIONS)


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    cube = measure_discounts(selection)
    codes = Cube([fact for fact in cube.facts if fact[0].get("promo_code")])
    return Report(
        figures=[
            cube.summarize(TOTAL, "off the list prices", "Discounts"),
            cube.summarize(PROMOTIONS, label="by promo codes"),
            cube.summarize(INCLUDED_HOURS, label="by allowances"),
            cube.summarize(ADJUSTED, label="by adjustments of staff"),
        ],
        charts=[cube.draw("Discounts by month", MONTH, TOTAL)],
        tables=[
            codes.tabulate(
                "code",
                "Promo codes",
                [Dimension("promo_code", "Promo code")],
                [count("Uses", "uses"), BY_PROMO_CODE, credit("Billed with it", *BILL)],
                order=BY_PROMO_CODE,
                omits_zeros=True,
            ),
            measure_allowances(selection).tabulate(
                "allowance",
                "Allowances",
                [Dimension("allowance", "Allowance")],
                [
                    count("Accounts", "accounts", adds_up=False),
                    count("Bookings", "bookings", adds_up=False),
                    count("Hours", "hours"),
                    debit("Discount on the bill", "discount"),
                ],
                order=debit("", "discount"),
            ),
            cube.tabulate_centers(MEASURES, order=TOTAL, note=selection.center_note),
            cube.tabulate("month", "By month", [MONTH], MEASURES),
            list_refund_overrides(selection).tabulate(
                "refund-override",
                "Refunds by decision",
                [
                    Dimension("reservation", "Reservation"),
                    CENTER,
                    *(Dimension(name.lower(), name) for name in ("When", "Reason", "By")),
                ],
                [debit("By the policy", "policy"), debit("Refund", "refund")],
            ),
        ],
        description=(
            "What was taken off the bills of bookings whose meeting is in the period, in"
            f" {settings.CURRENCY}, before tax. What changes after the meeting counts on its own"
            " day. Refunds by decision are those of cancelled reservations for which staff did not"
            " follow the policy."
        ),
    )


def measure_discounts(selection: ReportSelection) -> Cube:
    """The discounts of the selection by month, center and promo code. Raises ReportTooLarge."""
    uses = Sum("bookings", filter=Q(promotions__isnull=False))
    return add_up_recognized(selection, {"uses": uses}, promo_code=(get_promo_code(),))


def measure_allowances(selection: ReportSelection) -> Cube:
    """What the bills of the period show now, with the tax if prices contain it.

    By description: the report does not show whose allowances they are.
    """
    uses = AllowanceUse.objects.filter(
        selection.filter_reservations("reservation__"),
        reservation__status__in=sorted(REVENUE_STATUSES),
        reservation__currency=settings.CURRENCY,
        hours__gt=0,
    )
    sums = {
        "accounts": Count("allowance__user", distinct=True),
        "bookings": Count("reservation", distinct=True),
        "hours": Sum("hours"),
        "discount": Sum(Hundredths("discount")),
    }
    return selection.add_up(uses, sums, allowance=("allowance__description",))


def list_refund_overrides(selection: ReportSelection) -> Cube:
    """The cancelled reservations of the selection with another refund. Raises ReportTooLarge."""
    overrides = (
        RefundOverride.objects.filter(
            selection.filter_reservations("reservation__"),
            reservation__currency=settings.CURRENCY,
        )
        .select_related("reservation__room__center", "by")
        .order_by("reservation__start", "pk")
    )
    return Cube(
        [
            (
                {
                    "reservation": str(each.reservation_id),
                    "center": each.reservation.room.center.name,
                    "when": format_time_span(each.reservation),
                    "reason": each.reason,
                    "by": format_staff(each.by),
                },
                Sums(policy=to_hundredths(each.policy_refund), refund=to_hundredths(each.refund)),
            )
            for each in fetch_at_most(MAX_GROUPS, overrides, "Choose fewer days.")
        ]
    )
