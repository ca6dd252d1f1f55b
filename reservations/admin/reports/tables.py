"""Report tables, and their export as CSV and XLSX."""

import csv
import datetime as dt
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from roombook import dates, money
from roombook.spreadsheets import escape_formula

# The page shows the first rows only, the exported files have all of them.
MAX_ROWS_ON_PAGE = 50
# A limit of the XLSX format.
MAX_SHEET_NAME_LENGTH = 31


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How the values of a column are displayed on the page and in a workbook."""

    render: Callable[[Any], str]
    number_format: str = "General"

    @property
    def is_number(self) -> bool:
        return self.number_format != "General"

    def display(self, value: Any) -> str:
        if value is None:
            return "-"
        return value if isinstance(value, str) else self.render(value)


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


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column; ``attribute`` is where ``build_table`` reads its values from."""

    name: str
    format: ColumnFormat = TEXT
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of values in the order of the columns, and optionally a row of totals."""

    key: str
    title: str
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[Any]]
    total: Sequence[Any] | None = None
    note: str = ""
    # A chart shows it on the page.
    is_for_files: bool = False

    @property
    def page_rows(self) -> list[list[tuple[str, bool]]]:
        """The rows that the page shows: each cell as text, and whether it is a number."""
        return [self._display(row) for row in self.rows[:MAX_ROWS_ON_PAGE]]

    @property
    def page_total(self) -> list[tuple[str, bool]] | None:
        return None if self.total is None else self._display(self.total)

    @property
    def omitted_rows(self) -> int:
        return max(len(self.rows) - MAX_ROWS_ON_PAGE, 0)

    def _display(self, row: Sequence[Any]) -> list[tuple[str, bool]]:
        return [
            (column.format.display(value), column.format.is_number)
            for column, value in zip(self.columns, row, strict=True)
        ]

    @property
    def rows_and_total(self) -> list[Sequence[Any]]:
        return [*self.rows, *([] if self.total is None else [self.total])]


def build_table(
    key: str,
    title: str,
    labels: Sequence[ReportColumn],
    metrics: Sequence[ReportColumn],
    rows: Iterable[tuple[Sequence[Any], object]],
    total: object,
    *,
    note: str = "",
    is_for_files: bool = False,
) -> ReportTable:
    """Build a table of labels and metrics from pairs of labels and sums.

    ``metrics`` name the attributes of the sums that they show.
    """

    def read(sums: object) -> list[Any]:
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


# --- CSV -----------------------------------------------------------------------------------------


class EchoBuffer:
    """The file for a CSV writer that returns each line instead of storing it."""

    def write(self, text: str) -> str:
        return text


def render_csv(table: ReportTable) -> Iterator[str]:
    """Yield the lines of a CSV file: plain numbers, and text that no spreadsheet executes."""
    writer = csv.writer(EchoBuffer())
    # The byte order mark makes spreadsheets read the file as UTF-8.
    yield "\ufeff" + writer.writerow([escape_formula(column.name) for column in table.columns])
    for row in table.rows_and_total:
        yield writer.writerow([_to_csv(value) for value in row])


def _to_csv(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int | Decimal):
        return str(value)
    return _to_safe_text(value)


def _to_safe_text(value: Any) -> str:
    return escape_formula(f"{value:%Y-%m}" if isinstance(value, dt.date) else str(value))


# --- XLSX ----------------------------------------------------------------------------------------


def render_xlsx(
    name: str, about: Iterable[tuple[str, str]], tables: Iterable[ReportTable]
) -> bytes:
    """Render a workbook: a sheet about the report, and a sheet for each table."""
    workbook = Workbook(write_only=True)
    _write_about(workbook.create_sheet("About"), [("Report", name), *about])
    for table in tables:
        sheet = workbook.create_sheet(table.title[:MAX_SHEET_NAME_LENGTH])
        sheet.freeze_panes = "A2"
        for number, column in enumerate(table.columns, start=1):
            width = 14 if column.format.is_number else 28
            sheet.column_dimensions[get_column_letter(number)].width = width
        sheet.append(
            [_build_bold_cell(sheet, escape_formula(column.name)) for column in table.columns]
        )
        for row in table.rows_and_total:
            sheet.append(_build_cells(sheet, table, row, is_bold=row is table.total))
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def _write_about(sheet: Any, rows: Iterable[tuple[str, str]]) -> None:
    sheet.column_dimensions["A"].width = 20
    sheet.column_dimensions["B"].width = 100
    for name, value in rows:
        sheet.append([_build_bold_cell(sheet, name), escape_formula(value)])


def _build_bold_cell(sheet: Any, value: Any) -> WriteOnlyCell:
    cell = WriteOnlyCell(sheet, value=value)
    cell.font = Font(bold=True)
    return cell


def _build_cells(
    sheet: Any, table: ReportTable, row: Sequence[Any], *, is_bold: bool
) -> list[WriteOnlyCell]:
    cells = []
    for column, value in zip(table.columns, row, strict=True):
        is_number = isinstance(value, int | float | Decimal) or value is None
        content = value if is_number else _to_safe_text(value)
        cell = _build_bold_cell(sheet, content) if is_bold else WriteOnlyCell(sheet, value=content)
        cell.number_format = column.format.number_format
        cells.append(cell)
    return cells
