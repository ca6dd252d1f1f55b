"""Explains the difference between the revenue of a period and its cash, line by line (B18).

Revenue belongs to the period in which a meeting starts, and cash to the one in which money moves.
Every movement of money belongs to one line. What no line explains is the difference between the
revenue of a reservation and its payments, which must be 0 for each reservation: anything else is
an error in the data, and is reported with the reservation.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from django.db.models import Q

from centers.span import Span
from payments.gateways.manual import ACCOUNT
from reservations.admin.reports.aggregates import ZERO
from reservations.admin.reports.cash import Movement, MovementKind, get_spans
from reservations.admin.reports.revenue import RevenueSums
from reservations.admin.reports.selection import ReportSelection
from reservations.models import Reservation
from reservations.models.status import Status


class DifferenceLine(StrEnum):
    """Why cash is more or less than revenue, in the order of the table."""

    PAID_BEFORE = "Meetings of the period: paid before it"
    PAID_AFTER = "Meetings of the period: paid after it"
    REFUNDED_BEFORE = "Meetings of the period: refunded before it"
    REFUNDED_AFTER = "Meetings of the period: refunded after it"
    RECEIVABLE = "Meetings of the period: on account, not received yet"
    NOT_CAPTURED = "Meetings of the period: payment authorized, not captured yet"
    REFUND_DUE = "Meetings of the period: refund due, not executed yet"
    REFUND_OWED = "Meetings of the period: refund owed, which the gateway refused"
    FAILED_ATTEMPT = "Meetings of the period: kept of a failed attempt to pay"
    AT_OTHER_CENTER = "Meetings of the period: paid or refunded at another center, before a move"
    PAID_FOR_EARLIER = "Earlier meetings: paid in the period"
    REFUNDED_FOR_EARLIER = "Earlier meetings: refunded in the period"
    PAID_FOR_LATER = "Later meetings: paid in the period"
    REFUNDED_FOR_LATER = "Later meetings: refunded in the period"
    PAID_WITHOUT_BOOKING = "Reservations without revenue: paid in the period"
    REFUNDED_WITHOUT_BOOKING = "Reservations without revenue: refunded in the period"
    FOR_OTHER_CENTER = "Bookings that are at another center now: paid or refunded in the period"
    DISPUTES = "Disputes lost in the period"
    FEES = "Fees of the gateway in the period"


# The line of refunds that belongs to a line of payments, if it is another one.
REFUND_LINES = {
    DifferenceLine.PAID_BEFORE: DifferenceLine.REFUNDED_BEFORE,
    DifferenceLine.PAID_AFTER: DifferenceLine.REFUNDED_AFTER,
    DifferenceLine.NOT_CAPTURED: DifferenceLine.REFUND_DUE,
    DifferenceLine.PAID_FOR_EARLIER: DifferenceLine.REFUNDED_FOR_EARLIER,
    DifferenceLine.PAID_FOR_LATER: DifferenceLine.REFUNDED_FOR_LATER,
    DifferenceLine.PAID_WITHOUT_BOOKING: DifferenceLine.REFUNDED_WITHOUT_BOOKING,
}


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What explains cash - revenue.

    ``lines`` has the amount of each reservation of a line, ``unexplained`` that of each
    reservation whose payments do not agree with its revenue.
    """

    lines: Mapping[DifferenceLine, Mapping[int, Decimal]]
    unexplained: Mapping[int, Decimal]

    def get_amount(self, line: DifferenceLine) -> Decimal:
        return sum(self.lines[line].values(), ZERO)

    @property
    def explained(self) -> Decimal:
        return sum(map(self.get_amount, self.lines), ZERO)


def reconcile(
    selection: ReportSelection,
    movements: Iterable[Movement],
    revenue_by_reservation: Mapping[int, RevenueSums],
) -> Reconciliation:
    """Attribute each movement to a line, and compare each reservation with its payments."""
    lines: dict[DifferenceLine, dict[int, Decimal]] = {
        line: defaultdict(lambda: ZERO) for line in DifferenceLine
    }
    captured, returned, paid = (defaultdict[int, Decimal](lambda: ZERO) for _ in range(3))
    spans = get_spans(selection)
    for movement in movements:
        reservation, amount = movement.reservation, movement.amount
        is_revenue = reservation in revenue_by_reservation
        for line, part in _classify(movement, selection, spans, is_revenue=is_revenue):
            lines[line][reservation] += part
        if movement.kind == MovementKind.DISPUTE or movement.is_superseded:
            continue
        paid[reservation] += amount
        if movement.kind != MovementKind.PAYMENT:
            returned[reservation] -= amount
        elif movement.at is not None or movement.way == ACCOUNT.name:
            captured[reservation] += amount
    for reservation, promised in _fetch_promises(selection):
        owed = min(captured[reservation], promised) - returned[reservation]
        if reservation in revenue_by_reservation and owed > 0:
            lines[DifferenceLine.REFUND_OWED][reservation] = owed
    owed_by_reservation = lines[DifferenceLine.REFUND_OWED]
    unexplained = {
        reservation: paid[reservation] - sums.revenue - owed_by_reservation.get(reservation, ZERO)
        for reservation, sums in revenue_by_reservation.items()
    }
    return Reconciliation(lines, {key: value for key, value in unexplained.items() if value})


def _classify(
    movement: Movement, selection: ReportSelection, spans: Mapping[str, Span], *, is_revenue: bool
) -> Iterator[tuple[DifferenceLine, Decimal]]:
    """Yield the lines of a movement, and what it adds to each of them.

    ``spans`` has the period in each time zone. ``is_revenue``: the meeting counts as revenue of the
    period at the selected centers.
    """
    amount, at = movement.amount, movement.at
    span = spans[movement.time_zone_id] if selection.has_center(movement.center) else None
    is_in_period = span is not None and at is not None and span.start <= at < span.end
    if is_in_period and movement.fee:
        yield DifferenceLine.FEES, -movement.fee
    if movement.kind == MovementKind.DISPUTE:
        if is_in_period:
            yield DifferenceLine.DISPUTES, amount
        return
    line = None
    if is_revenue:
        if movement.is_superseded:
            yield DifferenceLine.FAILED_ATTEMPT, amount
        if span is None:
            line = DifferenceLine.AT_OTHER_CENTER
        elif at is None:
            is_owed = movement.way == ACCOUNT.name and movement.kind != MovementKind.REFUND
            line = DifferenceLine.RECEIVABLE if is_owed else DifferenceLine.NOT_CAPTURED
        elif not is_in_period:
            is_before = at < span.start
            line = DifferenceLine.PAID_BEFORE if is_before else DifferenceLine.PAID_AFTER
        # The revenue is in the period, and the money is not.
        amount = -amount
    elif is_in_period:
        line = _classify_other_meeting(movement, selection, spans)
    if line is not None:
        is_refund = movement.kind == MovementKind.REFUND
        yield REFUND_LINES.get(line, line) if is_refund else line, amount


def _classify_other_meeting(
    movement: Movement, selection: ReportSelection, spans: Mapping[str, Span]
) -> DifferenceLine:
    """Return the line of money that moved in the period for what is no revenue of it."""
    if not selection.has_center(movement.booking_center):
        return DifferenceLine.FOR_OTHER_CENTER
    span = spans[movement.booking_time_zone_id]
    if movement.start < span.start:
        return DifferenceLine.PAID_FOR_EARLIER
    if movement.start >= span.end:
        return DifferenceLine.PAID_FOR_LATER
    return DifferenceLine.PAID_WITHOUT_BOOKING


def _fetch_promises(selection: ReportSelection) -> Iterator[tuple[int, Decimal]]:
    """What customers must get back of the meetings of the period, whatever the gateway says."""
    rows = Reservation.objects.filter(
        Q(reduced_by__gt=0) | Q(status=Status.CANCELLED, refund_promised__gt=0),
        selection.filter_reservations(),
    )
    columns = ("pk", "status", "reduced_by", "refund_promised")
    for pk, status, reduced_by, refund_promised in rows.order_by().values_list(*columns):
        is_cancelled = status == Status.CANCELLED
        yield pk, reduced_by + ((refund_promised or ZERO) if is_cancelled else ZERO)
