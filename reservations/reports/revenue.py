"""The revenue report: what the company earns from its rooms, by month, center and source (B18).

It adds up the ledger. Income counts on the day of the meeting, by the local time of its center:
when the service is given, not when it is paid. What changes afterwards, such as a refund, counts on
the day on which it happens, so that nothing of a month that is over changes. A future month shows
what is booked so far.

Every booking has exactly one source: its partner, else its promo code, else none ("Direct"). So the
sums by center, by month and by source have the same total.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import Case, Expression, F, OuterRef, Q, Subquery, When

from payments.ledger.accounts import BILL, INCOME, REDUCTIONS, Account
from reservations.models import PromoRedemption
from reservations.reports.cube import (
    MONTH,
    Cube,
    Dimension,
    Member,
    Report,
    count,
    credit,
    debit,
)
from reservations.reports.ledger import add_up_recognized
from reservations.reports.selection import ReportSelection

SOURCE = (Dimension("kind", "Source"), Dimension("source", "Name"))

BOOKINGS = count("Bookings", "bookings")
REDUCED = debit("Reductions", *REDUCTIONS)
FEES = credit("Cancellation fees", Account.CANCELLATION)
NET = credit("Net of tax", *INCOME)
TAX = credit("Tax", Account.TAX_PAYABLE)
REVENUE = credit("Revenue", *BILL)
MEASURES = (
    BOOKINGS,
    credit("Rooms", Account.ROOM),
    credit("Services", Account.SERVICES),
    credit("Set-up", Account.SETUP),
    *(REDUCED, FEES, NET, TAX, REVENUE),
)


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    cube = measure_revenue(selection)
    return Report(
        figures=[
            cube.summarize(REVENUE, "tax included"),
            cube.summarize(NET, f"{TAX.display(cube.total)} is tax"),
            *map(cube.summarize, (BOOKINGS, REDUCED, FEES)),
        ],
        charts=[cube.draw("Revenue by month", MONTH, REVENUE)],
        tables=[
            cube.tabulate("month", "By month", [MONTH], MEASURES),
            cube.tabulate_centers(MEASURES, order=REVENUE, note=selection.center_note),
            cube.tabulate(
                "source",
                "By source",
                SOURCE,
                MEASURES,
                order=REVENUE,
                note="The source of a booking is its partner, else its promo code, else direct.",
            ),
        ],
        description=(
            f"Bookings in {settings.CURRENCY} whose meeting is in the period, by the local day of"
            " their center. What changes after the meeting counts on its own day. Reductions are"
            " promo codes, included hours, adjustments, waived differences and goodwill refunds."
            " Requests awaiting approval are not included."
        ),
    )


def measure_revenue(selection: ReportSelection) -> Cube:
    """The revenue of the selection by month, center and source. Raises ReportTooLarge."""
    cube = add_up_recognized(
        selection,
        partner=("reservation__partner__name", "reservation__partner"),
        promo_code=(get_promo_code(),),
    )
    return Cube([(_add_source(members), sums) for members, sums in cube.facts])


def _add_source(members: Mapping[str, Any]) -> Mapping[str, Any]:
    if "partner" not in members:
        return members
    if members["partner"]:
        return {**members, "kind": "Partner", "source": members["partner"]}
    if code := members["promo_code"]:
        return {**members, "kind": "Promo code", "source": Member(code, code)}
    return {**members, "kind": "Direct", "source": Member("", "")}


def get_promo_code() -> Expression:
    """The promo code of a booking: the first one that it used when the meeting began, or later.

    Staff can remove or replace it when its month is over. What that changes counts for the same
    code. The redemptions are read only of the few bookings of which they have: a month has many
    others.
    """
    # The first condition tells PostgreSQL that they are few.
    is_late = Q(given_back_at__isnull=False, given_back_at__gte=F("reservation__start"))
    removed = PromoRedemption.objects.filter(is_late)
    first = removed.filter(reservation=OuterRef("reservation")).order_by("taken_at", "pk")
    present = F("reservation__promo_code__code")
    return Case(
        When(
            reservation__in=removed.values("reservation"),
            then=Subquery(first.values("promo_code__code")[:1]),
        ),
        default=present,
    )
