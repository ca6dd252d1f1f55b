"""The refunds that staff decided instead of the policy, as a table of the discounts report."""

from django.conf import settings

from reservations.display import format_staff, format_time_span
from reservations.models import RefundOverride
from reservations.reports.selection import MAX_GROUPS, ReportSelection, fetch_at_most
from reservations.reports.tables import MONEY, ReportColumn, ReportTable
from roombook.money import ZERO

COLUMNS = (
    ReportColumn("Reservation"),
    ReportColumn("Center"),
    ReportColumn("When"),
    ReportColumn("Reason"),
    ReportColumn("By"),
    ReportColumn("By the policy", MONEY),
    ReportColumn("Refund", MONEY),
)


def build_refund_override_table(selection: ReportSelection) -> ReportTable:
    """List cancelled reservations of the selection with another refund. Raises ReportTooLarge."""
    overrides = (
        RefundOverride.objects.filter(
            selection.filter_reservations("reservation__"),
            reservation__currency=settings.CURRENCY,
        )
        .select_related("reservation__room__center", "by")
        .order_by("reservation__start", "pk")
    )
    rows = [
        (
            str(each.reservation_id),
            each.reservation.room.center.name,
            format_time_span(each.reservation),
            each.reason,
            format_staff(each.by),
            each.policy_refund,
            each.refund,
        )
        for each in fetch_at_most(MAX_GROUPS, overrides, "Choose fewer days.")
    ]
    policy, refund = (sum((row[index] for row in rows), ZERO) for index in (5, 6))
    total = ["Total", "", "", "", "", policy, refund]
    return ReportTable("refund-override", "Refunds by decision", COLUMNS, rows, total)
