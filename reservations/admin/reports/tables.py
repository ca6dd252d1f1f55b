"""Figures as a table, told three ways: on the page, as CSV, as a sheet of a workbook."""

import csv
import datetime as dt
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from roombook import dates, money
from roombook.spreadsheets import escape_formula

# What a page shows; the rest is in the files.
MAX_ROWS_ON_PAGE = 50
# A sheet's name has 31 characters at most.
MAX_SHEET_NAME_LENGTH = 31


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How a value is written for people, and in a workbook."""

    name: str
    number_format: str = "General"

    def told(self, value: Any) -> str:
        if value is None:
            return "-"
        if isinstance(value, str):
            return value
        match self.name:
            case "money":
                return money.format_amount(value)
            case "share":
                return format_percent(value)
            case "hours":
                return f"{value:,.1f}"
            case "count":
                return f"{value:,}"
            case "month":
                return dates.format_month(value)
            case _:
                return str(value)


TEXT = ColumnFormat("text")
MONEY = ColumnFormat("money", "#,##0.00")
SHARE = ColumnFormat("share", "0.0%")
HOURS = ColumnFormat("hours", "#,##0.00")
COUNT = ColumnFormat("count", "#,##0")
MONTH = ColumnFormat("month")

NUMBERS = {MONEY, SHARE, HOURS, COUNT}


def format_percent(share: float) -> str:
    """A share as people say it: `34%`, `2.5%` where it is little."""
    whole = share * 100
    return f"{whole:.1f}%" if 0 < whole < 10 else f"{whole:.0f}%"


@dataclass(frozen=True, slots=True)
class ReportColumn:
    name: str
    kind: ColumnFormat = TEXT

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of values in the order of the columns; `total` is one row more."""

    key: str
    title: str
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[Any]]
    total: Sequence[Any] | None = None
    note: str = ""
    is_for_files: bool = False  # as a chart on the page tells it already

    @property
    def shown(self) -> list[list[tuple[str, bool]]]:
        """The rows of the page: each cell in words, and whether it is a number."""
        return [self._told(row) for row in self.rows[:MAX_ROWS_ON_PAGE]]

    @property
    def told_total(self) -> list[tuple[str, bool]] | None:
        return None if self.total is None else self._told(self.total)

    @property
    def left_out(self) -> int:
        return max(len(self.rows) - MAX_ROWS_ON_PAGE, 0)

    def _told(self, row: Sequence[Any]) -> list[tuple[str, bool]]:
        return [
            (column.kind.told(value), column.is_number)
            for column, value in zip(self.columns, row, strict=True)
        ]

    @property
    def all_rows(self) -> Iterator[Sequence[Any]]:
        yield from self.rows
        if self.total is not None:
            yield self.total


@dataclass(frozen=True, slots=True)
class ReportExport:
    """The tables of one report, with what they are about."""

    name: str
    about: Sequence[tuple[str, str]]
    tables: Sequence[ReportTable] = field(default_factory=list)

    def table(self, key: str | None) -> ReportTable | None:
        return next((each for each in self.tables if each.key == key), None)


# --- CSV -----------------------------------------------------------------------------------------


class CsvEcho:
    """What a CSV writer writes to; gives each line back."""

    def write(self, text: str) -> str:
        return text


def render_csv(table: ReportTable) -> Iterator[str]:
    """Line by line; numbers with a point and nothing else, text that no spreadsheet runs."""
    writer = csv.writer(CsvEcho())
    # So that spreadsheets read it as UTF-8.
    yield "\ufeff" + writer.writerow([escape_formula(column.name) for column in table.columns])
    for row in table.all_rows:
        yield writer.writerow([_plain(value) for value in row])


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int | Decimal):
        return str(value)
    return escape_formula(_text(value))


def _text(value: Any) -> str:
    return f"{value:%Y-%m}" if isinstance(value, dt.date) else str(value)


# --- XLSX ----------------------------------------------------------------------------------------


def render_xlsx(book: ReportExport) -> bytes:
    """A workbook: what it is about, then a sheet a table."""
    workbook = Workbook(write_only=True)
    _write(workbook.create_sheet("About"), [("Report", book.name), *book.about])
    for table in book.tables:
        sheet = workbook.create_sheet(table.title[:MAX_SHEET_NAME_LENGTH])
        sheet.freeze_panes = "A2"
        for number, column in enumerate(table.columns, start=1):
            width = 14 if column.is_number else 28
            sheet.column_dimensions[get_column_letter(number)].width = width
        sheet.append([_bold(sheet, escape_formula(column.name)) for column in table.columns])
        for row in table.rows:
            sheet.append(_cells(sheet, table, row))
        if table.total is not None:
            sheet.append(_cells(sheet, table, table.total, font=Font(bold=True)))
    written = io.BytesIO()
    workbook.save(written)
    return written.getvalue()


def _write(sheet: Any, rows: Iterable[tuple[str, str]]) -> None:
    sheet.column_dimensions["A"].width = 20
    sheet.column_dimensions["B"].width = 100
    for name, value in rows:
        sheet.append([_bold(sheet, name), escape_formula(value)])


def _bold(sheet: Any, text: str) -> WriteOnlyCell:
    cell = WriteOnlyCell(sheet, value=text)
    cell.font = Font(bold=True)
    return cell


def _cells(
    sheet: Any, table: ReportTable, row: Sequence[Any], font: Font | None = None
) -> list[WriteOnlyCell]:
    cells = []
    for column, value in zip(table.columns, row, strict=True):
        is_number = isinstance(value, int | float | Decimal) or value is None
        cell = WriteOnlyCell(sheet, value=value if is_number else escape_formula(_text(value)))
        cell.number_format = column.kind.number_format
        if font is not None:
            cell.font = font
        cells.append(cell)
    return cells
