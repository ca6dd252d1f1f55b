"""The report for the end of a month: cash, revenue, and what explains their difference (B18)."""

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from operator import attrgetter, itemgetter

from django.conf import settings

from reservations.admin.reports import revenue
from reservations.admin.reports.aggregates import ZERO, Breakdown, add_up, break_down_sums
from reservations.admin.reports.cash import (
    WAYS_OF_PAYMENT,
    CashSums,
    Movement,
    fetch_movements,
    select_movements_of_period,
)
from reservations.admin.reports.reconciliation import Reconciliation, reconcile
from reservations.admin.reports.report import Report, ReportFigure, build_center_table
from reservations.admin.reports.selection import ReportSelection
from reservations.admin.reports.tables import (
    COUNT,
    DAY,
    MONEY,
    ReportColumn,
    ReportTable,
    build_table,
)
from roombook import money

DESCRIPTION = (
    "Cash: what was captured, less what was refunded and lost in disputes, and less the fees of the"
    " gateway, on the local days of each center, whenever the meetings are. If a booking moves to"
    " another center, what was captured before stays in the cash of the previous one, and its"
    " revenue moves. Revenue: meetings that start in the period, whenever they are paid, as in the"
    " revenue report. In {}, tax included. Every movement of money is in one line of the"
    " difference, so nothing is unexplained unless the data contradict themselves."
)
CASH_COLUMNS = (
    ReportColumn("Payments", COUNT, "payments"),
    ReportColumn("Received", MONEY, "received"),
    ReportColumn("Refunded", MONEY, "refunded"),
    ReportColumn("Lost disputes", MONEY, "disputed"),
    ReportColumn("Fees", MONEY, "fees"),
    ReportColumn("Cash", MONEY, "net"),
)
REASON, AMOUNT = ReportColumn("Reason"), ReportColumn("Amount", MONEY)
RESERVATION = ReportColumn("Reservation")
UNEXPLAINED = "Unexplained"


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    report, unexplained = _build_report(selection)
    if unexplained:
        # A payment may have moved between two queries.
        report, _ = _build_report(selection)
    return report


def _build_report(selection: ReportSelection) -> tuple[Report, bool]:
    """The report, and whether anything is unexplained."""
    accrued, by_reservation = revenue.measure_reservations(selection)
    movements = fetch_movements(selection)
    found = reconcile(selection, movements, by_reservation)
    sums_by_cell = _add_up_cash(selection, movements)
    summed = [(day.replace(day=1), center, sums) for (day, center, _), sums in sums_by_cell.items()]
    cash = break_down_sums(selection, summed, CashSums())
    difference = cash.total.net - accrued.total.revenue
    unexplained = difference - found.explained
    unknown_fees = cash.total.unknown_fees
    tables = [
        _build_difference_table(found, accrued.total.revenue, unexplained, cash.total.net),
        *_build_cash_tables(sums_by_cell, cash),
        build_center_table(
            *(accrued, revenue.COLUMNS, attrgetter("revenue")),
            key="revenue",
            title="Revenue by center",
        ),
        _build_detail_table(found),
    ]
    if found.unexplained:
        tables.insert(0, _build_unexplained_table(found))
    report = Report(
        figures=[
            ReportFigure(
                "Cash", money.format_amount(cash.total.net), "received less refunded and fees"
            ),
            ReportFigure("Received", money.format_amount(cash.total.received)),
            ReportFigure("Refunded", money.format_amount(cash.total.refunded)),
            ReportFigure(
                "Fees",
                money.format_amount(cash.total.fees),
                f"{unknown_fees:,} not known" if unknown_fees else "",
            ),
            ReportFigure(
                "Revenue", money.format_amount(accrued.total.revenue), "of meetings in the period"
            ),
            ReportFigure("Cash less revenue", money.format_amount(difference)),
            ReportFigure(UNEXPLAINED, money.format_amount(unexplained)),
        ],
        tables=tables,
        description=DESCRIPTION.format(settings.CURRENCY),
    )
    return report, bool(unexplained or found.unexplained)


# A day, a center (0 if centers are not listed) and a way of payment.
CashCell = tuple[dt.date, int, str]


def _add_up_cash(
    selection: ReportSelection, movements: Iterable[Movement]
) -> dict[CashCell, CashSums]:
    return add_up(
        (
            (each.day, each.center if selection.lists_centers else 0, each.way),
            CashSums.from_movement(each),
        )
        for each in select_movements_of_period(movements, selection)
    )


def _build_difference_table(
    found: Reconciliation, accrued: Decimal, unexplained: Decimal, cash: Decimal
) -> ReportTable:
    return ReportTable(
        "difference",
        "From revenue to cash",
        (REASON, AMOUNT),
        [
            ("Revenue of the meetings of the period", accrued),
            *((line.value, found.get_amount(line)) for line in found.lines),
            (UNEXPLAINED, unexplained),
        ],
        ("Cash of the period", cash),
        note="The XLSX file lists the reservations of each line.",
    )


def _build_detail_table(found: Reconciliation) -> ReportTable:
    return ReportTable(
        "reservations",
        "Difference by reservation",
        (REASON, RESERVATION, AMOUNT),
        [
            (line.value, str(reservation), amount)
            for line, amounts in found.lines.items()
            for reservation, amount in sorted(amounts.items())
            if amount
        ],
        is_for_files=True,
    )


def _build_unexplained_table(found: Reconciliation) -> ReportTable:
    return ReportTable(
        "unexplained",
        "Reservations whose payments contradict their revenue",
        (RESERVATION, AMOUNT),
        [(str(reservation), amount) for reservation, amount in sorted(found.unexplained.items())],
        ("Total", sum(found.unexplained.values(), ZERO)),
        note="Tell an administrator. The amount is what was paid less refunds, less the revenue.",
    )


def _build_cash_tables(
    sums_by_cell: Mapping[CashCell, CashSums], cash: Breakdown[CashSums]
) -> list[ReportTable]:
    by_way = add_up((key, sums) for (_, _, key), sums in sums_by_cell.items())
    by_day = add_up((key, sums) for (key, _, _), sums in sums_by_cell.items())
    way, day = ReportColumn("Way of payment"), ReportColumn("Day", DAY)
    return [
        build_table(
            *("way", "Cash by way of payment", [way], CASH_COLUMNS),
            [([WAYS_OF_PAYMENT[key]], sums) for key, sums in sorted(by_way.items())],
            cash.total,
        ),
        build_table(
            *("day", "Cash by day", [day], CASH_COLUMNS),
            [([key], sums) for key, sums in sorted(by_day.items())],
            cash.total,
        ),
        build_center_table(cash, CASH_COLUMNS, attrgetter("net"), title="Cash by center"),
        build_table(
            *("cash", "Cash by day, center and way", [day, ReportColumn("Center"), way]),
            CASH_COLUMNS,
            sorted(
                (
                    ([each, cash.center_names.get(center, "All"), WAYS_OF_PAYMENT[key]], sums)
                    for (each, center, key), sums in sums_by_cell.items()
                ),
                key=itemgetter(0),
            ),
            cash.total,
        ),
    ]
