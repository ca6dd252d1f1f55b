"""The parts that every report consists of: key figures, charts and tables."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from reservations.reports.aggregates import Breakdown, KeyT, SumsT
from reservations.reports.charts import Chart, HeatMap, build_chart
from reservations.reports.selection import MAX_CENTERS
from reservations.reports.tables import MONTH, ReportColumn, ReportTable, build_table
from roombook import dates, money


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One number that summarizes the report."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A report as its page shows it; ``description`` says what is counted."""

    figures: Sequence[ReportFigure]
    tables: Sequence[ReportTable]
    description: str
    charts: Sequence[Chart] = field(default_factory=list)
    heat_map: HeatMap | None = None


def build_month_table(breakdown: Breakdown[SumsT], metrics: Sequence[ReportColumn]) -> ReportTable:
    return build_table(
        *("month", "By month", [ReportColumn("Month", MONTH)], metrics),
        [([month], sums) for month, sums in breakdown.by_month.items()],
        breakdown.total,
    )


def build_center_table(
    breakdown: Breakdown[SumsT],
    metrics: Sequence[ReportColumn],
    get_size: Callable[[SumsT], float | Decimal],
    *,
    key: str = "center",
    title: str = "By center",
) -> ReportTable:
    """A row for each center, the largest first, or a note if there are too many centers."""
    note = ""
    if breakdown.by_center is None:
        note = f"These are more than {MAX_CENTERS:,} centers: choose some to see a line of each."
    by_size = sort_by_size(breakdown.by_center or {}, get_size)
    return build_table(
        *(key, title, [ReportColumn("Center")], metrics),
        [([breakdown.center_names[center]], sums) for center, sums in by_size],
        breakdown.total,
        note=note,
    )


def build_month_chart(title: str, amounts: Mapping[dt.date, Decimal]) -> Chart:
    """A chart of an amount of money by month."""
    return build_chart(
        title,
        [
            (
                dates.format_month(month),
                float(amount),
                money.format_compact_amount(amount),
                money.format_amount(amount),
            )
            for month, amount in amounts.items()
        ],
    )


def sort_by_size(
    sums: Mapping[KeyT, SumsT], get_size: Callable[[SumsT], float | Decimal]
) -> list[tuple[KeyT, SumsT]]:
    """The items, the largest first."""
    return sorted(sums.items(), key=lambda item: -get_size(item[1]))
