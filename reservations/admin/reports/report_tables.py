"""The four reports as pages: their figures, charts and tables, made of what the domain counted."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from django.conf import settings

from reservations.admin.reports import charts, discounts, outcomes, revenue, utilization
from reservations.admin.reports.charts import Chart, HeatMap
from reservations.admin.reports.selection import MAX_CENTERS, ReportSelection
from reservations.admin.reports.tables import (
    COUNT,
    HOURS,
    MONEY,
    MONTH,
    SHARE,
    ReportColumn,
    ReportTable,
    format_percent,
)
from roombook import dates, money

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One number that stands for the report, with what it means."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A report as its page shows it; `what` says what is counted."""

    figures: Sequence[ReportFigure]
    tables: Sequence[ReportTable]
    what: str
    charts: Sequence[Chart] = field(default_factory=list)
    heat_map: HeatMap | None = None


@dataclass(frozen=True, slots=True)
class MetricColumns:
    """What a report adds up, as columns; `read` leads from a sum to each one's value."""

    columns: Sequence[tuple[ReportColumn, Callable[[Any], Any]]]

    @property
    def heads(self) -> list[ReportColumn]:
        return [column for column, _ in self.columns]

    def cells(self, of: Any) -> list[Any]:
        return [read(of) for _, read in self.columns]

    def by_month(self, found: Any) -> ReportTable:
        return ReportTable(
            "month",
            "By month",
            [ReportColumn("Month", MONTH), *self.heads],
            [[month, *self.cells(each)] for month, each in found.by_month.items()],
            ["Total", *self.cells(found.total)],
        )

    def by_center(self, found: Any, size: Callable[[Any], Any]) -> ReportTable:
        """A line a center, the largest first, or, of very many, why not."""
        note = ""
        if found.by_center is None:
            note = (
                f"These are more than {MAX_CENTERS:,} centers: choose some to see a line of each."
            )
        return ReportTable(
            "center",
            "By center",
            [ReportColumn("Center"), *self.heads],
            [
                [found.names[pk], *self.cells(each)]
                for pk, each in _sort_by_size(found.by_center or {}, size)
            ],
            ["Total", *self.cells(found.total)],
            note=note,
        )


# --- Revenue -------------------------------------------------------------------------------------

REVENUE_COLUMNS = MetricColumns(
    [
        (ReportColumn("Bookings", COUNT), attrgetter("bookings")),
        (ReportColumn("Billed", MONEY), attrgetter("billed")),
        (ReportColumn("Refunded", MONEY), attrgetter("refunded")),
        (ReportColumn("Cancellation fees", MONEY), attrgetter("fees")),
        (ReportColumn("Revenue", MONEY), attrgetter("revenue")),
        (ReportColumn("of which tax", MONEY), attrgetter("tax")),
        (ReportColumn("Net of tax", MONEY), attrgetter("net")),
    ]
)


def build_revenue_report(selection: ReportSelection) -> Report:
    found = revenue.measure_revenue(selection)
    total = found.total
    return Report(
        figures=[
            ReportFigure("Revenue", money.format_amount(total.revenue), "tax included"),
            ReportFigure(
                "Net of tax",
                money.format_amount(total.net),
                f"{money.format_amount(total.tax)} is tax",
            ),
            ReportFigure("Bookings", f"{total.bookings:,}"),
            ReportFigure("Refunded", money.format_amount(total.refunded)),
            ReportFigure("Cancellation fees", money.format_amount(total.fees)),
        ],
        charts=_build_monthly_charts("Revenue by month", found.by_month, attrgetter("revenue")),
        tables=[
            REVENUE_COLUMNS.by_month(found),
            REVENUE_COLUMNS.by_center(found, attrgetter("revenue")),
            ReportTable(
                "source",
                "By source",
                [ReportColumn("Source"), ReportColumn("Name"), *REVENUE_COLUMNS.heads],
                [
                    [source.kind, source.name, *REVENUE_COLUMNS.cells(each)]
                    for source, each in _sort_by_size(found.by_source, attrgetter("revenue"))
                ],
                ["Total", "", *REVENUE_COLUMNS.cells(total)],
                note="A booking is its partner's, else its promo code's, else direct.",
            ),
        ],
        what=(
            f"Meetings in {settings.CURRENCY} that begin in the period, by the clock of their"
            " center. Revenue is what Confirmed, Completed and NoShow reservations were billed,"
            " less what was given back of it, plus what is kept of cancelled ones. Requests that"
            " are not answered are no revenue yet."
        ),
    )


# --- Utilization ---------------------------------------------------------------------------------


def _to_hours(seconds: int) -> float:
    return seconds / SECONDS_PER_HOUR


TIME_COLUMNS = MetricColumns(
    [
        (ReportColumn("Utilization", SHARE), attrgetter("share")),
        (ReportColumn("Hours sold", HOURS), lambda use: _to_hours(use.sold)),
        (ReportColumn("Hours open", HOURS), lambda use: _to_hours(use.opened)),
    ]
)
UTILIZATION_COLUMNS = MetricColumns(
    [
        *TIME_COLUMNS.columns,
        (ReportColumn("Hours sold outside", HOURS), lambda use: _to_hours(use.outside)),
        (ReportColumn("Bookings", COUNT), attrgetter("bookings")),
    ]
)


def build_utilization_report(selection: ReportSelection) -> Report:
    found = utilization.measure_utilization(selection)
    total = found.total
    rooms = Counter(each.center for each in found.rooms)
    names = charts.get_weekday_names("wide")
    return Report(
        figures=[
            ReportFigure(
                "Utilization", "-" if total.share is None else format_percent(total.share)
            ),
            ReportFigure("Hours sold", HOURS.told(_to_hours(total.sold)), "within opening hours"),
            ReportFigure(
                "Hours open", HOURS.told(_to_hours(total.opened)), f"of {len(found.rooms):,} rooms"
            ),
            ReportFigure(
                "Hours sold outside", HOURS.told(_to_hours(total.outside)), "of opening hours"
            ),
        ],
        charts=[charts.build_weekday_chart("Utilization by weekday", found.by_weekday())],
        heat_map=charts.build_heat_map("Utilization by weekday and hour, percent", found.cells),
        tables=[
            ReportTable(
                "center",
                "By center",
                [ReportColumn("Center"), ReportColumn("Rooms", COUNT), *UTILIZATION_COLUMNS.heads],
                [
                    [found.names[pk], rooms[pk], *UTILIZATION_COLUMNS.cells(use)]
                    for pk, use in _sort_by_size(found.centers, lambda use: use.share or 0)
                ],
                ["Total", len(found.rooms), *UTILIZATION_COLUMNS.cells(total)],
            ),
            ReportTable(
                "room",
                "By room",
                [ReportColumn("Center"), ReportColumn("Room"), *UTILIZATION_COLUMNS.heads],
                [
                    [found.names[each.center], each.name, *UTILIZATION_COLUMNS.cells(each.use)]
                    for each in found.rooms
                ],
                ["Total", "", *UTILIZATION_COLUMNS.cells(total)],
            ),
            ReportTable(
                "weekday",
                "By weekday",
                [ReportColumn("Weekday"), *TIME_COLUMNS.heads],
                [[names[day], *TIME_COLUMNS.cells(use)] for day, use in found.by_weekday().items()],
                ["Total", *TIME_COLUMNS.cells(total)],
            ),
            ReportTable(
                "hour",
                "By weekday and hour",
                [ReportColumn("Weekday"), ReportColumn("Hour"), *TIME_COLUMNS.heads],
                [
                    [names[day], f"{hour:02}:00", *TIME_COLUMNS.cells(use)]
                    for (day, hour), use in sorted(found.cells.items())
                ],
                ["Total", "", *TIME_COLUMNS.cells(total)],
                is_for_files=True,
            ),
        ],
        what=(
            "The time of Confirmed, Completed and NoShow reservations within opening hours, of all"
            " opening hours less closures, times the rooms. Hours are those of each center's clock,"
            " also on the days on which it changes."
        ),
    )


# --- Cancellations and no-shows ------------------------------------------------------------------

OUTCOME_COLUMNS = MetricColumns(
    [
        (ReportColumn("Kept", COUNT), attrgetter("kept")),
        (ReportColumn("Cancelled", COUNT), attrgetter("cancelled")),
        (ReportColumn("Cancelled, %", SHARE), attrgetter("cancelled_share")),
        (ReportColumn("Late", COUNT), attrgetter("late")),
        (ReportColumn("Worth", MONEY), attrgetter("lost")),
        (ReportColumn("No-shows", COUNT), attrgetter("missed")),
        (ReportColumn("No-shows, %", SHARE), attrgetter("missed_share")),
        (ReportColumn("Declined", COUNT), attrgetter("declined")),
        (ReportColumn("Not answered", COUNT), attrgetter("lapsed")),
    ]
)


def build_outcomes_report(selection: ReportSelection) -> Report:
    found = outcomes.count_outcomes(selection)
    total = found.total
    return Report(
        figures=[
            ReportFigure(
                "Cancelled",
                f"{total.cancelled:,}",
                _format_share("of the bookings", total.cancelled_share),
            ),
            ReportFigure("Cancelled late", f"{total.late:,}", "within 24 hours of the start"),
            ReportFigure(
                "Worth", money.format_amount(total.lost), "the bills of what was cancelled"
            ),
            ReportFigure(
                "No-shows",
                f"{total.missed:,}",
                _format_share("of the meetings", total.missed_share),
            ),
            ReportFigure(
                "Declined", f"{total.declined:,}", f"{total.lapsed:,} not answered in time"
            ),
        ],
        charts=[
            charts.build_chart(
                "Cancelled, of all bookings, by month",
                [
                    (
                        dates.format_month(month),
                        each.cancelled_share or 0,
                        SHARE.told(each.cancelled_share),
                        f"{each.cancelled:,} of {each.kept + each.cancelled:,}",
                    )
                    for month, each in found.by_month.items()
                ],
            ),
        ],
        tables=[
            OUTCOME_COLUMNS.by_month(found),
            OUTCOME_COLUMNS.by_center(found, lambda each: each.cancelled + each.missed),
        ],
        what=(
            "Reservations that were checked out and were to begin in the period; drafts that were"
            " dropped are none. Kept are Confirmed, Completed and NoShow. The share of no-shows is"
            " of the meetings that are over. Late is less than 24 hours before the start."
        ),
    )


def _format_share(what: str, share: float | None) -> str:
    return "" if share is None else f"{format_percent(share)} {what}"


# --- Discounts -----------------------------------------------------------------------------------

DISCOUNT_COLUMNS = MetricColumns(
    [
        (ReportColumn("Promo codes", MONEY), attrgetter("promotions")),
        (ReportColumn("Allowances", MONEY), attrgetter("allowances")),
        (ReportColumn("Adjustments", MONEY), attrgetter("adjustments")),
        (ReportColumn("Total", MONEY), attrgetter("total")),
    ]
)


def build_discounts_report(selection: ReportSelection) -> Report:
    found = discounts.measure_discounts(selection)
    total = found.total
    return Report(
        figures=[
            ReportFigure("Taken off", money.format_amount(total.total), "before tax"),
            ReportFigure("by promo codes", money.format_amount(total.promotions)),
            ReportFigure("by allowances", money.format_amount(total.allowances)),
            ReportFigure("by adjustments of staff", money.format_amount(total.adjustments)),
        ],
        charts=_build_monthly_charts("Taken off by month", found.by_month, attrgetter("total")),
        tables=[
            ReportTable(
                "code",
                "Promo codes",
                [
                    ReportColumn("Promo code"),
                    ReportColumn("Uses", COUNT),
                    ReportColumn("Taken off", MONEY),
                    ReportColumn("Billed with it", MONEY),
                ],
                [[each.code, each.uses, each.cost, each.billed] for each in found.codes],
                [
                    "Total",
                    sum(each.uses for each in found.codes),
                    total.promotions,
                    sum((each.billed for each in found.codes), money.ZERO),
                ],
            ),
            ReportTable(
                "allowance",
                "Allowances",
                [
                    ReportColumn("Allowance"),
                    ReportColumn("Accounts", COUNT),
                    ReportColumn("Bookings", COUNT),
                    ReportColumn("Hours", COUNT),
                    ReportColumn("Taken off", MONEY),
                ],
                [
                    [each.description, each.accounts, each.bookings, each.hours, each.cost]
                    for each in found.allowances
                ],
                [
                    *("Total", None, None),
                    sum(each.hours for each in found.allowances),
                    total.allowances,
                ],
            ),
            DISCOUNT_COLUMNS.by_center(found, attrgetter("total")),
            DISCOUNT_COLUMNS.by_month(found),
        ],
        what=(
            "What the bills of Confirmed, Completed and NoShow reservations that begin in the"
            f" period, in {settings.CURRENCY}, took off before tax. An adjustment that adds to a"
            " price counts against the others."
        ),
    )


# --- All -----------------------------------------------------------------------------------------


def _build_monthly_charts(
    title: str, months: Mapping[dt.date, Any], sum_of: Callable[[Any], Any]
) -> list[Chart]:
    return [
        charts.build_chart(
            title,
            [
                (
                    dates.format_month(month),
                    float(sum_of(each)),
                    money.format_compact_amount(sum_of(each)),
                    money.format_amount(sum_of(each)),
                )
                for month, each in months.items()
            ],
        )
    ]


def _sort_by_size(sums: Mapping[Any, Any], size: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """The largest first."""
    return sorted(sums.items(), key=lambda item: -size(item[1]))


# The end of the address, the name, and what makes it.
REPORTS: dict[str, tuple[str, Callable[[ReportSelection], Report]]] = {
    "revenue": ("Revenue", build_revenue_report),
    "utilization": ("Utilization", build_utilization_report),
    "cancellations": ("Cancellations and no-shows", build_outcomes_report),
    "discounts": ("Discounts", build_discounts_report),
}
