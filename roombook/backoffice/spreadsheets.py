"""Writes CSV and XLSX files, and the responses that download them."""

import datetime as dt
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import IO, NamedTuple

from django.http import FileResponse, StreamingHttpResponse
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from roombook.spreadsheets import SEPARATORS, escape_formulas
from roombook.texts import clean_text

# The limit of spreadsheet programs.
MAX_CELL_LENGTH = 32_767
MUST_BE_QUOTED = re.compile(rf'["{SEPARATORS}]')
XLSX_CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

# A value as openpyxl writes it.
CellValue = str | bool | int | float | Decimal | dt.date | None


class InvalidFile(ValueError):
    """The whole file cannot be read; the message says why, and what to do."""


class SheetColumn(NamedTuple):
    name: str
    width: int
    # Empty: that of the value.
    number_format: str = ""


class Sheet(NamedTuple):
    """A table in a workbook."""

    name: str
    columns: Sequence[SheetColumn]
    rows: Iterable[Sequence[CellValue]]
    total: Sequence[CellValue] = ()


def iterate_csv(columns: Sequence[CellValue], rows: Iterable[Sequence[CellValue]]) -> Iterator[str]:
    """Yield the table as CSV, line by line, with texts that no spreadsheet runs as a formula."""
    for cells in chain([columns], rows):
        yield ",".join(map(_format_cell, cells)) + "\r\n"


def _format_cell(value: CellValue) -> str:
    match value:
        case None:
            return ""
        case str():
            text = escape_formulas(value)
            # csv.writer quotes commas only; some programs also split at semicolons, tabs and pipes.
            return '"' + text.replace('"', '""') + '"' if MUST_BE_QUOTED.search(text) else text
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.4f}"
        case dt.datetime():
            return f"{value:%Y-%m-%d %H:%M}"
    return str(value)


def write_workbook(sheets: Iterable[Sheet]) -> IO[bytes]:
    """Return an .xlsx workbook in a temporary file that closing deletes."""
    book = Workbook(write_only=True)
    for sheet in sheets:
        _write_sheet(book, sheet)
    # Not a context manager: the response closes the file.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    book.save(file)
    file.seek(0)
    return file


def _write_sheet(book: Workbook, sheet: Sheet) -> None:
    # Read first: the sheet has a file that only saving removes.
    rows = list(sheet.rows)
    target = book.create_sheet(sheet.name)
    target.freeze_panes = "A2"
    for position, column in enumerate(sheet.columns, 1):
        target.column_dimensions[get_column_letter(position)].width = column.width
    formats = [column.number_format for column in sheet.columns]

    def append_row(values: Sequence[CellValue], *, is_bold: bool = False) -> None:
        cells = zip(values, formats, strict=True)
        target.append([_build_cell(target, *each, is_bold=is_bold) for each in cells])

    append_row([column.name for column in sheet.columns], is_bold=True)
    for row in rows:
        append_row(row)
    if sheet.total:
        append_row(sheet.total, is_bold=True)


def _build_cell(sheet: object, value: CellValue, number_format: str, *, is_bold: bool) -> object:
    if isinstance(value, str):
        # What the format cannot hold is left out: one such text must not stop an export.
        value = escape_formulas(clean_text(value))[:MAX_CELL_LENGTH]
    if value is None or value == "":
        return None
    if isinstance(value, str) and not is_bold:
        return value
    cell = WriteOnlyCell(sheet, value)
    if is_bold:
        cell.font = Font(bold=True)
    if number_format:
        cell.number_format = number_format
    elif isinstance(value, dt.date):
        cell.number_format = "yyyy-mm-dd"
    elif isinstance(value, Decimal):
        places = -int(value.as_tuple().exponent)
        cell.number_format = f"0.{'0' * places}" if places > 0 else "0"
    return cell


def download_csv(lines: Iterable[str], file_name: str) -> StreamingHttpResponse:
    """Return the response that sends lines of CSV as they come."""
    # Spreadsheets recognize UTF-8 by the byte order mark.
    content = (line.encode(errors="replace") for line in chain(["\ufeff"], lines))
    response = StreamingHttpResponse(content, content_type="text/csv; charset=utf-8")
    return _send_as_file(response, file_name)


def download_workbook(book: IO[bytes], file_name: str) -> StreamingHttpResponse:
    return _send_as_file(FileResponse(book, content_type=XLSX_CONTENT_TYPE), file_name)


def _send_as_file(response: StreamingHttpResponse, file_name: str) -> StreamingHttpResponse:
    response["Content-Disposition"] = f'attachment; filename="{file_name}"'
    response["Cache-Control"] = "no-store"
    # A proxy passes each part on when it comes.
    response["X-Accel-Buffering"] = "no"
    return response
