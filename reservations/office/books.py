"""The four reports as pages: their figures, charts and tables, made of what the domain counted."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from reservations.office import charts, discounts, outcomes, revenue, utilization
from reservations.office.charts import Chart, HeatMap
from reservations.office.discounts import Cost
from reservations.office.outcomes import Outcomes
from reservations.office.revenue import Takings
from reservations.office.selection import MOST_CENTERS, Selection
from reservations.office.tables import (
    COUNT,
    HOURS,
    MONEY,
    MONTH,
    SHARE,
    Column,
    Table,
    percent,
)
from reservations.office.utilization import Use
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


# --- Revenue -------------------------------------------------------------------------------------

TAKINGS = (
    Column("Bookings", COUNT),
    Column("Billed", MONEY),
    Column("Refunded", MONEY),
    Column("Cancellation fees", MONEY),
    Column("Revenue", MONEY),
    Column("of which tax", MONEY),
    Column("Net of tax", MONEY),
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
        charts=_monthly("Revenue by month", found.by_month, lambda each: each.revenue),
        tables=[
            Table(
                "month",
                "By month",
                [Column("Month", MONTH), *TAKINGS],
                [[month, *_takings(each)] for month, each in found.by_month.items()],
                ["Total", *_takings(total)],
            ),
            _by_center(found, TAKINGS, _takings, lambda each: each.revenue),
            Table(
                "source",
                "By source",
                [Column("Source"), Column("Name"), *TAKINGS],
                [
                    [source.kind, source.name, *_takings(each)]
                    for source, each in _by_size(found.by_source, lambda each: each.revenue)
                ],
                ["Total", "", *_takings(total)],
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


def _takings(takings: Takings) -> list[Any]:
    return [
        takings.bookings,
        takings.billed,
        takings.refunded,
        takings.fees,
        takings.revenue,
        takings.tax,
        takings.net,
    ]


# --- Utilization ---------------------------------------------------------------------------------

USE = (
    Column("Utilization", SHARE),
    Column("Hours sold", HOURS),
    Column("Hours open", HOURS),
    Column("Hours sold outside", HOURS),
    Column("Bookings", COUNT),
)


def utilization_of(selection: Selection) -> Report:
    found = utilization.report(selection)
    total = found.total
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
                [Column("Center"), Column("Rooms", COUNT), *USE],
                [
                    [found.names[pk], sum(each.center == pk for each in found.rooms), *_use(use)]
                    for pk, use in _by_size(found.centers, lambda use: use.share or 0)
                ],
                ["Total", len(found.rooms), *_use(total)],
            ),
            Table(
                "room",
                "By room",
                [Column("Center"), Column("Room"), *USE],
                [[found.names[each.center], each.name, *_use(each.use)] for each in found.rooms],
                ["Total", "", *_use(total)],
            ),
            Table(
                "weekday",
                "By weekday",
                [Column("Weekday"), *USE[:3]],
                [[names[day], *_use(use)[:3]] for day, use in found.by_weekday().items()],
                ["Total", *_use(total)[:3]],
            ),
            Table(
                "hour",
                "By weekday and hour",
                [Column("Weekday"), Column("Hour"), *USE[:3]],
                [
                    [names[day], f"{hour:02}:00", *_use(use)[:3]]
                    for (day, hour), use in sorted(found.cells.items())
                ],
                ["Total", "", *_use(total)[:3]],
                is_for_files=True,
            ),
        ],
        what=(
            "The time of Confirmed, Completed and NoShow reservations within opening hours, of all"
            " opening hours less closures, times the rooms. Hours are those of each center's clock,"
            " also on the days on which it changes."
        ),
    )


def _use(use: Use) -> list[Any]:
    return [use.share, _hours(use.sold), _hours(use.opened), _hours(use.outside), use.bookings]


def _hours(seconds: int) -> float:
    return seconds / SECONDS_AN_HOUR


# --- Cancellations and no-shows ------------------------------------------------------------------

OUTCOMES = (
    Column("Kept", COUNT),
    Column("Cancelled", COUNT),
    Column("Cancelled, %", SHARE),
    Column("Late", COUNT),
    Column("Worth", MONEY),
    Column("No-shows", COUNT),
    Column("No-shows, %", SHARE),
    Column("Declined", COUNT),
    Column("Not answered", COUNT),
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
            Table(
                "month",
                "By month",
                [Column("Month", MONTH), *OUTCOMES],
                [[month, *_outcomes(each)] for month, each in found.by_month.items()],
                ["Total", *_outcomes(total)],
            ),
            _by_center(found, OUTCOMES, _outcomes, lambda each: each.cancelled + each.missed),
        ],
        what=(
            "Reservations that were checked out and were to begin in the period; drafts that were"
            " dropped are none. Kept are Confirmed, Completed and NoShow. The share of no-shows is"
            " of the meetings that are over. Late is less than 24 hours before the start."
        ),
    )


def _of(what: str, share: float | None) -> str:
    return "" if share is None else f"{percent(share)} {what}"


def _outcomes(each: Outcomes) -> list[Any]:
    return [
        each.kept,
        each.cancelled,
        each.cancelled_share,
        each.late,
        each.lost,
        each.missed,
        each.missed_share,
        each.declined,
        each.lapsed,
    ]


# --- Discounts -----------------------------------------------------------------------------------

COST = (
    Column("Promo codes", MONEY),
    Column("Allowances", MONEY),
    Column("Adjustments", MONEY),
    Column("Total", MONEY),
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
        charts=_monthly("Taken off by month", found.by_month, lambda each: each.total),
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
            _by_center(found, COST, _cost, lambda each: each.total),
            Table(
                "month",
                "By month",
                [Column("Month", MONTH), *COST],
                [[month, *_cost(each)] for month, each in found.by_month.items()],
                ["Total", *_cost(total)],
            ),
        ],
        what=(
            "What the bills of Confirmed, Completed and NoShow reservations that begin in the"
            f" period, in {settings.CURRENCY}, took off before tax. An adjustment that adds to a"
            " price counts against the others."
        ),
    )


def _cost(cost: Cost) -> list[Any]:
    return [cost.promotions, cost.allowances, cost.adjustments, cost.total]


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


def _by_center(
    found: Any,
    columns: Sequence[Column],
    told: Callable[[Any], list[Any]],
    size: Callable[[Any], Any],
) -> Table:
    """A line a center, or, of very many, why not."""
    note = ""
    if found.by_center is None:
        note = f"These are more than {MOST_CENTERS:,} centers: choose some to see a line of each."
    return Table(
        "center",
        "By center",
        [Column("Center"), *columns],
        [[found.names[pk], *told(each)] for pk, each in _by_size(found.by_center or {}, size)],
        ["Total", *told(found.total)],
        note=note,
    )


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
