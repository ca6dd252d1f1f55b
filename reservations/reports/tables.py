"""Report tables, and their export as CSV and XLSX."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, NamedTuple

from roombook import dates, money
from roombook.backoffice.spreadsheets import (
    CellValue,
    Sheet,
    SheetColumn,
    iterate_csv,
    write_workbook,
)

# Amounts, numbers, shares, names and months; None where there is nothing to divide by.
ReportValue = Decimal | int | float | str | dt.date | None

# The page shows the first rows only, the exported files have all of them.
MAX_ROWS_ON_PAGE = 50
# A limit of the XLSX format.
MAX_SHEET_NAME_LENGTH = 31


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How the values of a column are displayed on the page and in a workbook."""

    render: Callable[[Any], str]
    number_format: str = "General"
    # How exported files show a date.
    date_format: str = "%Y-%m"

    @property
    def is_number(self) -> bool:
        return self.number_format != "General"

    def display(self, value: ReportValue) -> str:
        if value is None:
            return "-"
        return value if isinstance(value, str) else self.render(value)

    def to_cell(self, value: ReportValue) -> CellValue:
        """The value for exported files."""
        return value.strftime(self.date_format) if isinstance(value, dt.date) else value


def format_percent(share: float) -> str:
    """A share in percent: ``34%``, or ``2.5%`` if it is below 10 %."""
    percent = share * 100
    return f"{percent:.1f}%" if 0 < percent < 10 else f"{percent:.0f}%"


TEXT = ColumnFormat(str)
MONEY = ColumnFormat(money.format_amount, "#,##0.00")
SHARE = ColumnFormat(format_percent, "0.0%")
HOURS = ColumnFormat("{:,.1f}".format, "#,##0.00")
COUNT = ColumnFormat("{:,}".format, "#,##0")
MONTH = ColumnFormat(dates.format_month)
DAY = ColumnFormat(dates.format_day, date_format="%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column; ``attribute`` is where ``build_table`` reads its values from."""

    name: str
    format: ColumnFormat = TEXT
    attribute: str = ""


class ReportCell(NamedTuple):
    """A cell of the page, optionally with a link."""

    text: str
    is_number: bool
    url: str


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of values in the order of the columns, and optionally a row of totals."""

    key: str
    title: str
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[ReportValue]]
    total: Sequence[ReportValue] | None = None
    note: str = ""
    # A chart shows it on the page.
    is_for_files: bool = False
    # By row: the pages that its first and its last cell lead to, or "".
    links: Sequence[tuple[str, str]] = ()

    @property
    def page_rows(self) -> list[list[ReportCell]]:
        """The rows that the page shows."""
        shown = self.rows[:MAX_ROWS_ON_PAGE]
        links = [*self.links, *[("", "")] * len(shown)]
        return [self._display(row, *link) for row, link in zip(shown, links, strict=False)]

    @property
    def page_total(self) -> list[ReportCell] | None:
        return None if self.total is None else self._display(self.total)

    @property
    def omitted_rows(self) -> int:
        return max(len(self.rows) - MAX_ROWS_ON_PAGE, 0)

    def _display(
        self, row: Sequence[ReportValue], first_link: str = "", last_link: str = ""
    ) -> list[ReportCell]:
        between = [""] * (len(row) - 2)
        return [
            ReportCell(column.format.display(value), column.format.is_number, link)
            for column, value, link in zip(
                self.columns, row, [first_link, *between, last_link], strict=True
            )
        ]

    def get_cells(self, row: Sequence[ReportValue]) -> list[CellValue]:
        """The values of a row for exported files.

        Numbers stay numbers; text that a spreadsheet would execute is escaped.
        """
        return [
            column.format.to_cell(value) for column, value in zip(self.columns, row, strict=True)
        ]

    @property
    def rows_and_total(self) -> list[Sequence[ReportValue]]:
        return [*self.rows, *([] if self.total is None else [self.total])]


def build_table(
    key: str,
    title: str,
    labels: Sequence[ReportColumn],
    metrics: Sequence[ReportColumn],
    rows: Iterable[tuple[Sequence[ReportValue], object]],
    total: object,
    *,
    note: str = "",
    is_for_files: bool = False,
) -> ReportTable:
    """Build a table of labels and metrics from pairs of labels and sums.

    ``metrics`` name the attributes of the sums that they show.
    """

    def read(sums: object) -> list[ReportValue]:
        return [getattr(sums, column.attribute) for column in metrics]

    return ReportTable(
        key,
        title,
        [*labels, *metrics],
        [[*row_labels, *read(sums)] for row_labels, sums in rows],
        ["Total", *[""] * (len(labels) - 1), *read(total)],
        note,
        is_for_files,
    )


# --- Files ---------------------------------------------------------------------------------------


def render_csv(table: ReportTable) -> Iterator[str]:
    """Yield the lines of a CSV file: plain numbers, and text that no spreadsheet executes."""
    rows = map(table.get_cells, table.rows_and_total)
    return iterate_csv([column.name for column in table.columns], rows)


def render_workbook(
    name: str, about: Iterable[tuple[str, str]], tables: Iterable[ReportTable]
) -> IO[bytes]:
    """Render a workbook: a sheet about the report, and a sheet for each table."""
    about_columns = [SheetColumn("Report", 20), SheetColumn(name, 100)]
    return write_workbook([Sheet("About", about_columns, [*about]), *map(_build_sheet, tables)])


def _build_sheet(table: ReportTable) -> Sheet:
    return Sheet(
        table.title[:MAX_SHEET_NAME_LENGTH],
        [
            SheetColumn(
                column.name,
                14 if column.format.is_number else 28,
                column.format.number_format,
            )
            for column in table.columns
        ],
        [table.get_cells(row) for row in table.rows],
        table.get_cells(table.total) if table.total else (),
    )
