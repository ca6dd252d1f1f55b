"""A report is a cube: facts, which are added up by dimensions, and tables and charts of measures.

A chart needs no script and no image: it is text in boxes of a length, so it scales, prints, works
with screen readers and follows the dark theme. The same figures are in a table of the report.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from roombook import dates, money
from roombook.backoffice.spreadsheets import CellValue
from roombook.money import from_hundredths

# The page shows the first rows only, the exported files have all of them.
MAX_ROWS_ON_PAGE = 50
SECONDS_PER_HOUR = 3600


class Sums(dict[str, int]):
    """What facts add up to, by name. Money is in hundredths, time in seconds.

    Like a Counter, but there are thousands of them in a report, and these are made much faster.
    """

    def __missing__(self, name: str) -> int:
        return 0

    def add(self, other: "Sums") -> None:
        for name, number in other.items():
            self[name] += number


class Member(NamedTuple):
    """A row of the database, such as a center. Two of them may have the same name."""

    name: str
    pk: Any

    def __str__(self) -> str:
        return self.name


# --- Columns -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How the values of a column are displayed on the page and in exported files."""

    render: Callable[[Any], str]
    number_format: str = "General"
    # Exported files keep numbers, and show other values like the page without this.
    export: Callable[[Any], str] | None = None

    @property
    def is_number(self) -> bool:
        return self.number_format != "General"

    def display(self, value: Any) -> str:
        if value is None:
            return "-"
        return value if isinstance(value, str) else self.render(value)

    def to_cell(self, value: Any) -> CellValue:
        """The value for exported files."""
        if value is None or self.is_number or isinstance(value, str):
            return value
        return (self.export or self.render)(value)


def format_percent(share: float) -> str:
    """A share in percent: ``34%``, or ``2.5%`` if it is below 10 %."""
    percent = share * 100
    return f"{percent:.1f}%" if 0 < percent < 10 else f"{percent:.0f}%"


TEXT = ColumnFormat(str)
MONEY = ColumnFormat(money.format_amount, "#,##0.00")
SHARE = ColumnFormat(format_percent, "0.0%")
HOURS = ColumnFormat("{:,.1f}".format, "#,##0.00")
COUNT = ColumnFormat("{:,}".format, "#,##0")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A column of what facts are grouped by; ``key`` is its name in the facts."""

    key: str
    name: str
    format: ColumnFormat = TEXT


MONTH = Dimension("month", "Month", ColumnFormat(dates.format_month, export="{:%Y-%m}".format))
DAY = Dimension("day", "Day", ColumnFormat(dates.format_day, export="{:%Y-%m-%d}".format))
CENTER = Dimension("center", "Center")


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of figures, which are computed from sums."""

    name: str
    format: ColumnFormat
    # None where there is nothing to divide by.
    read: Callable[[Sums], Any]
    # Whether the total of the table is that of its rows: an account can be in several of them.
    adds_up: bool = True

    def display(self, sums: Sums) -> str:
        return self.format.display(self.read(sums))

    def get_size(self, sums: Sums) -> float:
        return float(self.read(sums) or 0)


def count(name: str, key: str, *, adds_up: bool = True) -> Measure:
    return Measure(name, COUNT, itemgetter(key), adds_up)


def debit(name: str, *accounts: str, less: Collection[str] = ()) -> Measure:
    """The amount on these accounts together, if debits are above zero."""

    def read(sums: Sums) -> Decimal:
        return from_hundredths(
            sum(sums[each] for each in accounts) - sum(sums[each] for each in less)
        )

    return Measure(name, MONEY, read)


def credit(name: str, *accounts: str) -> Measure:
    """The amount on these accounts together, if credits are above zero."""
    return debit(name, less=accounts)


def share(name: str, part: str, *whole: str) -> Measure:
    """The part of the whole, 0 to 1; None if there is nothing to divide by."""

    def read(sums: Sums) -> float | None:
        divisor = sum(sums[each] for each in whole)
        return sums[part] / divisor if divisor else None

    return Measure(name, SHARE, read)


def hours(name: str, key: str) -> Measure:
    return Measure(name, HOURS, lambda sums: sums[key] / SECONDS_PER_HOUR)


# --- What is shown -------------------------------------------------------------------------------


class ReportCell(NamedTuple):
    """A cell of the page, optionally with a link."""

    text: str
    is_number: bool
    url: str


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A row for each member or combination of them, and optionally a row of totals.

    Rows are computed when they are read: files have all of them, and the page only the first.
    """

    key: str
    title: str
    dimensions: Sequence[Dimension]
    measures: Sequence[Measure]
    found: Sequence[tuple[tuple[Any, ...], Sums]]
    total: Sequence[Any] | None = None
    note: str = ""
    # A chart shows it on the page.
    is_for_files: bool = False
    # The pages that the first and the last cell of a row lead to, or "", by its members.
    get_links: Callable[..., tuple[str, str]] | None = None

    @property
    def columns(self) -> list[Dimension | Measure]:
        return [*self.dimensions, *self.measures]

    @property
    def rows(self) -> list[list[Any]]:
        return [self._read(*each) for each in self.found]

    def _read(self, members: Sequence[Any], sums: Sums) -> list[Any]:
        return [*members, *(each.read(sums) for each in self.measures)]

    @property
    def page_rows(self) -> list[list[ReportCell]]:
        """The rows that the page shows."""
        return [
            self._display(
                self._read(members, sums), *(self.get_links(*members) if self.get_links else ())
            )
            for members, sums in self.found[:MAX_ROWS_ON_PAGE]
        ]

    @property
    def page_total(self) -> list[ReportCell] | None:
        return None if self.total is None else self._display(self.total)

    @property
    def omitted_rows(self) -> int:
        return max(len(self.found) - MAX_ROWS_ON_PAGE, 0)

    def _display(
        self, row: Sequence[Any], first_link: str = "", last_link: str = ""
    ) -> list[ReportCell]:
        links = [first_link, *[""] * (len(row) - 2), last_link]
        return [
            ReportCell(column.format.display(value), column.format.is_number, link)
            for column, value, link in zip(self.columns, row, links, strict=True)
        ]

    def get_cells(self, row: Sequence[Any]) -> list[CellValue]:
        """The values of a row for exported files. Numbers stay numbers."""
        return [
            column.format.to_cell(value) for column, value in zip(self.columns, row, strict=True)
        ]


class ChartBar(NamedTuple):
    """A bar: ``text`` is its value in words, ``length`` is 0 to 100 in every locale."""

    label: str
    text: str
    length: str
    hint: str = ""


class Chart(NamedTuple):
    """Bars on one scale."""

    title: str
    bars: Sequence[ChartBar]

    @property
    def description(self) -> str:
        """The chart as a sentence, for screen readers."""
        return f"{self.title}: " + ", ".join(f"{bar.label} {bar.text}" for bar in self.bars)


class HeatMapCell(NamedTuple):
    """A cell; ``strength`` is 0 to 100 percent of the largest value, None if closed."""

    text: str
    strength: int | None
    hint: str


class HeatMap(NamedTuple):
    """Weekdays as rows, hours as columns."""

    title: str
    hours: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatMapCell]]]


class ReportFigure(NamedTuple):
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


# --- The cube ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cube:
    """Facts: their members by dimension, and what they add to the sums.

    A fact without a dimension belongs to the total, and to no row of a table by that dimension.
    """

    facts: Sequence[tuple[Mapping[str, Any], Sums]]

    @cached_property
    def total(self) -> Sums:
        return self.by().get((), Sums())

    def by(self, *keys: str) -> dict[tuple[Any, ...], Sums]:
        """The sums by these dimensions."""
        found: dict[tuple[Any, ...], Sums] = {}
        for members, sums in self.facts:
            if all(key in members for key in keys):
                found.setdefault(tuple(members[key] for key in keys), Sums()).add(sums)
        return found

    def summarize(self, measure: Measure, note: str = "", label: str = "") -> ReportFigure:
        return ReportFigure(label or measure.name, measure.display(self.total), note)

    def tabulate(
        self,
        key: str,
        title: str,
        dimensions: Sequence[Dimension],
        measures: Sequence[Measure],
        *,
        order: Measure | None = None,
        omits_zeros: bool = False,
        get_links: Callable[..., tuple[str, str]] | None = None,
        note: str = "",
        is_for_files: bool = False,
    ) -> ReportTable:
        """A row for each member in the order of the facts, or by ``order``; and the total."""
        found = list(self.by(*(each.key for each in dimensions)).items())
        if order:  # What is largest is first.
            found.sort(key=lambda item: (-order.get_size(item[1]), item[0]))
        if omits_zeros:
            found = [item for item in found if any(each.read(item[1]) for each in measures)]
        total = [each.read(self.total) if each.adds_up else None for each in measures]
        return ReportTable(
            key=key,
            title=title,
            dimensions=dimensions,
            measures=measures,
            found=found,
            total=["Total", *[""] * (len(dimensions) - 1), *total],
            get_links=get_links,
            note=note,
            is_for_files=is_for_files,
        )

    def tabulate_centers(
        self,
        measures: Sequence[Measure],
        *,
        order: Measure,
        title: str = "By center",
        note: str = "",
    ) -> ReportTable:
        return self.tabulate("center", title, [CENTER], measures, order=order, note=note)

    def draw(
        self,
        title: str,
        dimension: Dimension,
        measure: Measure,
        describe: Callable[[Sums], str] | None = None,
        *,
        full: float = 0,
    ) -> Chart:
        """A bar for each member, with a description of its sums as a hint.

        The longest bar has the full length, or a bar of the value ``full``.
        """
        found = list(self.by(dimension.key).items())
        full = full or max((measure.get_size(sums) for _, sums in found), default=0)
        render = money.format_compact_amount if measure.format is MONEY else measure.format.display
        bars = []
        for (member,), sums in found:
            size = measure.get_size(sums)
            length = f"{min(max(size / full, 0), 1) * 100:.1f}" if full else "0"
            hint = (describe or measure.display)(sums)
            text = render(measure.read(sums))
            bars.append(ChartBar(dimension.format.display(member), text, length, hint))
        return Chart(title, bars)
