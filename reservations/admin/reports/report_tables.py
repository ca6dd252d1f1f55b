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
from reservations.admin.reports.selection import MOST_CENTERS, Selection
from reservations.admin.reports.tables import (
    COUNT,
    HOURS,
    MONEY,
    MONTH,
    SHARE,
    Column,
    Table,
    percent,
)
from roombook import dates, money

SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that stands for the report, with what it means."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A report as its page shows it; `what` says what is counted."""

    figures: Sequence[Figure]
    tables: Sequence[Table]
    what: str
    charts: Sequence[Chart] = field(default_factory=list)
    heat_map: HeatMap | None = None


@dataclass(frozen=True, slots=True)
class Sums:
    """What a report adds up, as columns; `read` leads from a sum to each one's value."""

    columns: Sequence[tuple[Column, Callable[[Any], Any]]]

    @property
    def heads(self) -> list[Column]:
        return [column for column, _ in self.columns]

    def cells(self, of: Any) -> list[Any]:
        return [read(of) for _, read in self.columns]

    def by_month(self, found: Any) -> Table:
        return Table(
            "month",
            "By month",
            [Column("Month", MONTH), *self.heads],
            [[month, *self.cells(each)] for month, each in found.by_month.items()],
            ["Total", *self.cells(found.total)],
        )

    def by_center(self, found: Any, size: Callable[[Any], Any]) -> Table:
        """A line a center, the largest first, or, of very many, why not."""
        note = ""
        if found.by_center is None:
            note = (
                f"These are more than {MOST_CENTERS:,} centers: choose some to see a line of each."
            )
        return Table(
            "center",
            "By center",
            [Column("Center"), *self.heads],
            [
                [found.names[pk], *self.cells(each)]
                for pk, each in _by_size(found.by_center or {}, size)
            ],
            ["Total", *self.cells(found.total)],
            note=note,
        )


# --- Revenue -------------------------------------------------------------------------------------

TAKINGS = Sums(
    [
        (Column("Bookings", COUNT), attrgetter("bookings")),
        (Column("Billed", MONEY), attrgetter("billed")),
        (Column("Refunded", MONEY), attrgetter("refunded")),
        (Column("Cancellation fees", MONEY), attrgetter("fees")),
        (Column("Revenue", MONEY), attrgetter("revenue")),
        (Column("of which tax", MONEY), attrgetter("tax")),
        (Column("Net of tax", MONEY), attrgetter("net")),
    ]
)


def revenue_of(selection: Selection) -> Report:
    found = revenue.report(selection)
    total = found.total
    return Report(
        figures=[
            Figure("Revenue", money.display(total.revenue), "tax included"),
            Figure("Net of tax", money.display(total.net), f"{money.display(total.tax)} is tax"),
            Figure("Bookings", f"{total.bookings:,}"),
            Figure("Refunded", money.display(total.refunded)),
            Figure("Cancellation fees", money.display(total.fees)),
        ],
        charts=_monthly("Revenue by month", found.by_month, attrgetter("revenue")),
        tables=[
            TAKINGS.by_month(found),
            TAKINGS.by_center(found, attrgetter("revenue")),
            Table(
                "source",
                "By source",
                [Column("Source"), Column("Name"), *TAKINGS.heads],
                [
                    [source.kind, source.name, *TAKINGS.cells(each)]
                    for source, each in _by_size(found.by_source, attrgetter("revenue"))
                ],
                ["Total", "", *TAKINGS.cells(total)],
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


def _hours(seconds: int) -> float:
    return seconds / SECONDS_AN_HOUR


USE_OF_TIME = Sums(
    [
        (Column("Utilization", SHARE), attrgetter("share")),
        (Column("Hours sold", HOURS), lambda use: _hours(use.sold)),
        (Column("Hours open", HOURS), lambda use: _hours(use.opened)),
    ]
)
USE = Sums(
    [
        *USE_OF_TIME.columns,
        (Column("Hours sold outside", HOURS), lambda use: _hours(use.outside)),
        (Column("Bookings", COUNT), attrgetter("bookings")),
    ]
)


def utilization_of(selection: Selection) -> Report:
    found = utilization.report(selection)
    total = found.total
    rooms = Counter(each.center for each in found.rooms)
    names = charts.weekday_names("wide")
    return Report(
        figures=[
            Figure("Utilization", "-" if total.share is None else percent(total.share)),
            Figure("Hours sold", HOURS.told(_hours(total.sold)), "within opening hours"),
            Figure(
                "Hours open", HOURS.told(_hours(total.opened)), f"of {len(found.rooms):,} rooms"
            ),
            Figure("Hours sold outside", HOURS.told(_hours(total.outside)), "of opening hours"),
        ],
        charts=[charts.by_weekday("Utilization by weekday", found.by_weekday())],
        heat_map=charts.heat_map("Utilization by weekday and hour, percent", found.cells),
        tables=[
            Table(
                "center",
                "By center",
                [Column("Center"), Column("Rooms", COUNT), *USE.heads],
                [
                    [found.names[pk], rooms[pk], *USE.cells(use)]
                    for pk, use in _by_size(found.centers, lambda use: use.share or 0)
                ],
                ["Total", len(found.rooms), *USE.cells(total)],
            ),
            Table(
                "room",
                "By room",
                [Column("Center"), Column("Room"), *USE.heads],
                [
                    [found.names[each.center], each.name, *USE.cells(each.use)]
                    for each in found.rooms
                ],
                ["Total", "", *USE.cells(total)],
            ),
            Table(
                "weekday",
                "By weekday",
                [Column("Weekday"), *USE_OF_TIME.heads],
                [[names[day], *USE_OF_TIME.cells(use)] for day, use in found.by_weekday().items()],
                ["Total", *USE_OF_TIME.cells(total)],
            ),
            Table(
                "hour",
                "By weekday and hour",
                [Column("Weekday"), Column("Hour"), *USE_OF_TIME.heads],
                [
                    [names[day], f"{hour:02}:00", *USE_OF_TIME.cells(use)]
                    for (day, hour), use in sorted(found.cells.items())
                ],
                ["Total", "", *USE_OF_TIME.cells(total)],
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

OUTCOMES = Sums(
    [
        (Column("Kept", COUNT), attrgetter("kept")),
        (Column("Cancelled", COUNT), attrgetter("cancelled")),
        (Column("Cancelled, %", SHARE), attrgetter("cancelled_share")),
        (Column("Late", COUNT), attrgetter("late")),
        (Column("Worth", MONEY), attrgetter("lost")),
        (Column("No-shows", COUNT), attrgetter("missed")),
        (Column("No-shows, %", SHARE), attrgetter("missed_share")),
        (Column("Declined", COUNT), attrgetter("declined")),
        (Column("Not answered", COUNT), attrgetter("lapsed")),
    ]
)


def outcomes_of(selection: Selection) -> Report:
    found = outcomes.report(selection)
    total = found.total
    return Report(
        figures=[
            Figure(
                "Cancelled", f"{total.cancelled:,}", _of("of the bookings", total.cancelled_share)
            ),
            Figure("Cancelled late", f"{total.late:,}", "within 24 hours of the start"),
            Figure("Worth", money.display(total.lost), "the bills of what was cancelled"),
            Figure("No-shows", f"{total.missed:,}", _of("of the meetings", total.missed_share)),
            Figure("Declined", f"{total.declined:,}", f"{total.lapsed:,} not answered in time"),
        ],
        charts=[
            charts.chart(
                "Cancelled, of all bookings, by month",
                [
                    (
                        dates.month(month),
                        each.cancelled_share or 0,
                        SHARE.told(each.cancelled_share),
                        f"{each.cancelled:,} of {each.kept + each.cancelled:,}",
                    )
                    for month, each in found.by_month.items()
                ],
            ),
        ],
        tables=[
            OUTCOMES.by_month(found),
            OUTCOMES.by_center(found, lambda each: each.cancelled + each.missed),
        ],
        what=(
            "Reservations that were checked out and were to begin in the period; drafts that were"
            " dropped are none. Kept are Confirmed, Completed and NoShow. The share of no-shows is"
            " of the meetings that are over. Late is less than 24 hours before the start."
        ),
    )


def _of(what: str, share: float | None) -> str:
    return "" if share is None else f"{percent(share)} {what}"


# --- Discounts -----------------------------------------------------------------------------------

COST = Sums(
    [
        (Column("Promo codes", MONEY), attrgetter("promotions")),
        (Column("Allowances", MONEY), attrgetter("allowances")),
        (Column("Adjustments", MONEY), attrgetter("adjustments")),
        (Column("Total", MONEY), attrgetter("total")),
    ]
)


def discounts_of(selection: Selection) -> Report:
    found = discounts.report(selection)
    total = found.total
    return Report(
        figures=[
            Figure("Taken off", money.display(total.total), "before tax"),
            Figure("by promo codes", money.display(total.promotions)),
            Figure("by allowances", money.display(total.allowances)),
            Figure("by adjustments of staff", money.display(total.adjustments)),
        ],
        charts=_monthly("Taken off by month", found.by_month, attrgetter("total")),
        tables=[
            Table(
                "code",
                "Promo codes",
                [
                    Column("Promo code"),
                    Column("Uses", COUNT),
                    Column("Taken off", MONEY),
                    Column("Billed with it", MONEY),
                ],
                [[each.code, each.uses, each.cost, each.billed] for each in found.codes],
                [
                    "Total",
                    sum(each.uses for each in found.codes),
                    total.promotions,
                    sum((each.billed for each in found.codes), money.zero),
                ],
            ),
            Table(
                "allowance",
                "Allowances",
                [
                    Column("Allowance"),
                    Column("Accounts", COUNT),
                    Column("Bookings", COUNT),
                    Column("Hours", COUNT),
                    Column("Taken off", MONEY),
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
            COST.by_center(found, attrgetter("total")),
            COST.by_month(found),
        ],
        what=(
            "What the bills of Confirmed, Completed and NoShow reservations that begin in the"
            f" period, in {settings.CURRENCY}, took off before tax. An adjustment that adds to a"
            " price counts against the others."
        ),
    )


# --- All -----------------------------------------------------------------------------------------


def _monthly(
    title: str, months: Mapping[dt.date, Any], sum_of: Callable[[Any], Any]
) -> list[Chart]:
    return [
        charts.chart(
            title,
            [
                (
                    dates.month(month),
                    float(sum_of(each)),
                    money.short(sum_of(each)),
                    money.display(sum_of(each)),
                )
                for month, each in months.items()
            ],
        )
    ]


def _by_size(sums: Mapping[Any, Any], size: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """The largest first."""
    return sorted(sums.items(), key=lambda item: -size(item[1]))


# The end of the address, the name, and what makes it.
REPORTS: dict[str, tuple[str, Callable[[Selection], Report]]] = {
    "revenue": ("Revenue", revenue_of),
    "utilization": ("Utilization", utilization_of),
    "cancellations": ("Cancellations and no-shows", outcomes_of),
    "discounts": ("Discounts", discounts_of),
}
