"""Files of rows, in and out, knowing nothing of what the rows mean.

A file is judged by its content, not by its name. What cannot be read exactly is refused in words
that say what to do; nothing is guessed.
"""

import csv
import datetime as dt
import io
import math
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import IO, Any

import openpyxl
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ERROR_CODES, ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font
from openpyxl.utils.exceptions import InvalidFileException

MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 20_000
# What a workbook holds unpacked: a few packed bytes may be gigabytes.
MAX_UNPACKED = 100 * 1024 * 1024
# A spreadsheet's own bound.
MAX_CELL = 32_767
MAX_COLUMNS = 256

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


class InvalidFile(ValueError):
    """The file as a whole cannot be taken; the message says why, and what to do."""


class NumberCell(str):
    """A number of a workbook: its shortest exact text. Spreadsheets show 15 digits of it."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        return format_number(f"{float(self):.15g}")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the file, numbered as spreadsheets do: the header is row 1."""

    number: int
    cells: dict[str, str]
    # What is wrong with a cell before anybody asks what it means.
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    columns: list[str]
    rows: list[Row]
    # The name of a workbook's sheet.
    sheet: str = ""


# --- in -----------------------------------------------------------------------------------------


def read(content: bytes, *, columns: Iterable[str], sheet: str) -> Table:
    """The rows of a file; `columns` and `sheet` tell what is looked for, and bind nobody."""
    if len(content) > MAX_BYTES:
        raise InvalidFile(f"The file is larger than {MAX_BYTES // 2**20} MB: split it.")
    if not content.strip():
        raise InvalidFile("The file is empty.")
    if content.startswith(ZIP):
        return _read_workbook(content, sheet)
    if content.startswith(OLE):
        raise InvalidFile(
            "This is an old .xls workbook, or one with a password: save it as .xlsx without one."
        )
    return _read_csv(_decoded(content), set(columns))


def _decoded(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidFile('The text is in UTF-16: save it as "CSV UTF-8".')
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidFile(
            f'The text is not in UTF-8 (line {line}): save it as "CSV UTF-8", or as .xlsx.'
        ) from error


def _read_csv(text: str, known: set[str]) -> Table:
    delimiter = _delimiter(text, known)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return _table(enumerate(lines, 1))
    except csv.Error as error:
        why = "a cell is too long" if "field limit" in str(error) else str(error)
        raise InvalidFile(f"The CSV cannot be read at line {lines.line_num}: {why}.") from error


def _delimiter(text: str, known: set[str]) -> str:
    """What parts the cells: spreadsheets of some countries write semicolons."""

    def recognized(delimiter: str) -> int:
        try:
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            return len(known & {name_of(cell) for cell in next(lines, [])})
        except csv.Error:
            return 0

    return max(",;\t", key=recognized)


def _read_workbook(content: bytes, wanted: str) -> Table:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > MAX_UNPACKED:
                raise InvalidFile("The workbook is too large: split it.")
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True)
        try:
            sheet = _sheet(book, wanted)
            return _table(_lines(sheet), sheet=sheet.title)
        finally:
            book.close()
    except InvalidFile:
        raise
    except (InvalidFileException, zipfile.BadZipFile, KeyError) as error:
        raise InvalidFile("This is neither CSV nor an .xlsx workbook.") from error
    # A damaged workbook fails in openpyxl wherever it likes.
    except Exception as error:
        raise InvalidFile("The workbook cannot be read: it is damaged.") from error


def _sheet(book: Any, wanted: str) -> Any:
    named = [each for each in book.worksheets if name_of(each.title) == wanted]
    if named:
        return named[0]
    if len(book.worksheets) != 1:
        names = ", ".join(f'"{each.title}"' for each in book.worksheets)
        raise InvalidFile(
            f'The workbook has the sheets {names}, and none called "{wanted}":'
            " give the right one that name, or keep only that one."
        )
    return book.worksheets[0]


def _lines(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    # What the sheet says of its own size may be wrong.
    sheet.reset_dimensions()
    yield from enumerate(sheet.iter_rows(max_col=MAX_COLUMNS + 1), 1)


def name_of(cell: Any) -> str:
    """A column's name as it is compared: any case, no space around."""
    value = getattr(cell, "value", cell)
    return "" if value is None else str(value).strip().lower()


def _table(lines: Iterator[tuple[int, Sequence[Any]]], sheet: str = "") -> Table:
    """Header and rows; lines without a single cell do not count."""
    header: list[str] = []
    rows: list[Row] = []
    for number, line in lines:
        if not header:
            header = _trimmed([name_of(cell) for cell in line])
            _check_header(header)
            continue
        row = _row(number, header, line)
        if row is None:
            continue
        if len(rows) == MAX_ROWS:
            raise InvalidFile(f"There are more than {MAX_ROWS:,} rows: split the file.")
        rows.append(row)
    if not header:
        raise InvalidFile("The file is empty.")
    if not rows:
        raise InvalidFile("There is a header, and no row below it.")
    return Table(columns=header, rows=rows, sheet=sheet)


def _trimmed(cells: list[str]) -> list[str]:
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _check_header(header: list[str]) -> None:
    if not header:
        raise InvalidFile("The first row is empty: it must name the columns.")
    if len(header) > MAX_COLUMNS:
        raise InvalidFile(f"There are more than {MAX_COLUMNS} columns.")
    for place, name in enumerate(header, 1):
        if not name:
            raise InvalidFile(f"Column {place} has no name in the first row.")
        if "\x00" in name:
            raise InvalidFile("This is neither CSV nor an .xlsx workbook.")
    doubled = sorted({name for name in header if header.count(name) > 1})
    if doubled:
        raise InvalidFile(f"These columns stand there twice: {', '.join(doubled)}.")


def _row(number: int, header: list[str], line: Sequence[Any]) -> Row | None:
    if len(line) > MAX_COLUMNS + 1:
        raise InvalidFile(f"Row {number} has more cells than the header has columns.")
    cells: dict[str, str] = {}
    problems: dict[str, str] = {}
    is_empty = True
    for place, raw in enumerate(line):
        name = header[place] if place < len(header) else ""
        try:
            text = text_of(raw)
            check_text(text)
        except ValueError as error:
            text, problems[name] = "", str(error)
        if not name and (text or name in problems):
            raise InvalidFile(f"Row {number} has more cells than the header has columns.")
        if name:
            cells[name] = text
            is_empty = is_empty and not text
    if is_empty and not problems:
        return None
    if len(cells) < len(header) and isinstance(line, list):
        raise InvalidFile(f"Row {number} has fewer cells than the header has columns.")
    # A workbook leaves empty cells at the end of a row away.
    return Row(number, {name: cells.get(name, "") for name in header}, problems)


def text_of(cell: Any) -> str:
    """A cell as text: as CSV would have it, in the one way in which we write things."""
    value = getattr(cell, "value", cell)
    match getattr(cell, "data_type", ""):
        case "f":
            raise ValueError("This is a formula: paste its value instead.")
        case "e":
            raise ValueError(f"This is an error of the spreadsheet ({value}).")
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number(value)
        case dt.datetime():
            # Spreadsheets count days in floating point.
            rounded = (value + dt.timedelta(microseconds=500_000)).replace(microsecond=0)
            return rounded.isoformat(timespec="seconds" if rounded.second else "minutes")
        case dt.date():
            return value.isoformat()
        case dt.time():
            return value.isoformat(timespec="seconds" if value.second else "minutes")
        case dt.timedelta():
            raise ValueError("This is a length of time: write it as text.")
    return normalize_cell(str(value))


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("This is no number.")
    return NumberCell(format_number(repr(value)))


def format_number(number: str) -> str:
    """The number without an exponent and without a needless point."""
    written = format(Decimal(number), "f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def normalize_cell(text: str) -> str:
    """Text as it is kept: no space around, one kind of line break."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def check_text(text: str) -> None:
    if len(text) > MAX_CELL:
        raise ValueError(f"This is longer than {MAX_CELL:,} characters.")
    if "\x00" in text:
        raise ValueError("There is a character in it that cannot be kept (NUL).")


# --- out ----------------------------------------------------------------------------------------

Cell = str | bool | int | float | Decimal | dt.date | None


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The table as CSV, line by line; cells come guarded."""
    yield _csv_line(columns)
    for row in rows:
        yield _csv_line(row)


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def workbook(name: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> IO[bytes]:
    """The table as an .xlsx workbook, in a file that vanishes when it is closed."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(name)
    sheet.freeze_panes = "A2"
    for place, column in enumerate(columns):
        letter = openpyxl.utils.get_column_letter(place + 1)
        sheet.column_dimensions[letter].width = max(10, len(column) + 3)
    try:
        sheet.append([_heading(sheet, column) for column in columns])
        for number, row in enumerate(rows, 2):
            sheet.append([_written(sheet, each, number) for each in row])
    except BaseException:
        # It holds a file open, which only saving would remove.
        sheet.close()
        sheet._writer.cleanup()
        raise
    # Not in memory: it may be large. Not with `with`: the response closes it.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    book.save(file)
    file.seek(0)
    return file


def _heading(sheet: Any, column: str) -> Any:
    cell = WriteOnlyCell(sheet, column)
    cell.font = Font(bold=True)
    return cell


def _written(sheet: Any, value: Cell, number: int) -> Any:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        if len(value) > MAX_CELL or ILLEGAL_CHARACTERS_RE.search(value):
            raise InvalidFile(
                f"Row {number} holds text that no spreadsheet can: export CSV instead."
            )
        if value not in ERROR_CODES:
            return value
        # Text that only looks like a spreadsheet's error.
        cell = WriteOnlyCell(sheet, value)
        cell.data_type = "s"
        return cell
    cell = WriteOnlyCell(sheet, value)
    if isinstance(value, dt.date):
        cell.number_format = "yyyy-mm-dd"
    elif isinstance(value, Decimal):
        places = -int(value.as_tuple().exponent)
        cell.number_format = f"0.{'0' * places}" if places > 0 else "0"
    return cell
