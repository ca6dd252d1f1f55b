"""Reads CSV and XLSX files, independently of the meaning of their rows.

The content of a file decides its format, not its name. Values that cannot be read exactly are
rejected with a message that says what to do; no value is guessed.
"""

import csv
import datetime as dt
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import tablib
from openpyxl.cell.read_only import EMPTY_CELL

from roombook.backoffice.spreadsheets import MAX_CELL_LENGTH, InvalidFile
from roombook.imports import limits
from roombook.imports.limits import Deadline
from roombook.imports.workbooks import Worksheet, open_worksheets
from roombook.spreadsheets import unescape_formula
from roombook.texts import clean_text

MAX_HEADER_LENGTH = 20_000
ZIP_SIGNATURE, OLE_SIGNATURE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


class NumberText(str):
    """The shortest exact text of a number in a workbook. Spreadsheets display 15 digits of it."""

    __slots__ = ()

    @property
    def displayed(self) -> str:
        return format_number(f"{float(self):.15g}")


class ImportTable(tablib.Dataset):
    """The rows of a file, as text; empty rows are left out."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        # For reading it, and for the check of its rows.
        self.deadline = deadline
        # The numbers that spreadsheets show: the header is row 1.
        self.row_numbers: list[int] = []
        # Row number -> column -> why the cell could not be read. Such a cell is empty.
        self.problems: dict[int, dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads the rows of a file."""

    # The columns that are expected, with whether they are text, which is unescaped.
    columns: Mapping[str, bool]
    # The sheet that is preferred.
    sheet_name: str
    # Called with the header and the name of the sheet before the rows are read.
    check_header: Callable[[list[str], str], None]
    deadline: Deadline

    def read(self, content: bytes) -> ImportTable:
        """Raises InvalidFile."""
        if len(content) > limits.MAX_BYTES:
            raise InvalidFile(f"The file is larger than {limits.MAX_BYTES // 2**20} MB: split it.")
        if not content.strip():
            raise InvalidFile("The file is empty.")
        if content.startswith(ZIP_SIGNATURE):
            with open_worksheets(content, self.deadline) as sheets:
                sheet = _choose_sheet(sheets, self.sheet_name)
                lines = sheet.iter_rows(max_col=limits.MAX_COLUMNS + 1)
                return self._fill(lines, normalize_name(sheet.title))
        if content.startswith(OLE_SIGNATURE):
            raise InvalidFile(
                "This is an old .xls workbook, or one with a password:"
                " save it as .xlsx without one."
            )
        return self._read_csv(_decode(content))

    def _read_csv(self, text: str) -> ImportTable:
        delimiter = _find_delimiter(text, set(self.columns))
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            return self._fill(lines)
        except csv.Error as error:
            why = "a cell is too long" if "field limit" in str(error) else str(error)
            raise InvalidFile(f"The CSV cannot be read at line {lines.line_num}: {why}.") from error

    def _fill(self, lines: Iterable[Sequence[object]], sheet_name: str = "") -> ImportTable:
        table = ImportTable(self.deadline)
        header: list[str] = []
        for number, line in enumerate(lines, 1):
            self.deadline.check()
            if number > limits.MAX_LINES:
                raise InvalidFile(limits.TOO_MANY_LINES)
            if not header:
                table.headers = header = _read_header(line)
                self.check_header(header, sheet_name)
                text_positions = [i for i, name in enumerate(header) if self.columns.get(name)]
                continue
            cells, problems = _read_row(number, header, line)
            for position in text_positions:
                cells[position] = unescape_formula(cells[position])
            if not any(cells) and not problems:
                continue
            if len(table.row_numbers) == limits.MAX_ROWS:
                raise InvalidFile(f"There are more than {limits.MAX_ROWS:,} rows: split the file.")
            table.append(cells)
            table.row_numbers.append(number)
            if problems:
                table.problems[number] = problems
        if not header:
            raise InvalidFile("The file is empty.")
        if not table.row_numbers:
            raise InvalidFile("There is a header, and no row below it.")
        return table


def _decode(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidFile('The text is in UTF-16: save it as "CSV UTF-8".')
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidFile(
            f'The text is not in UTF-8 (line {line}): save it as "CSV UTF-8", or as .xlsx.'
        ) from error


def _find_delimiter(text: str, columns: set[str]) -> str:
    """Return the delimiter with which most columns are known: some countries use semicolons."""
    start = text[:MAX_HEADER_LENGTH]

    def count_known(delimiter: str) -> int:
        try:
            header = next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])
            return len(columns & {normalize_name(cell) for cell in header})
        except csv.Error:
            return 0

    return max(",;\t", key=count_known)


def _choose_sheet(sheets: Sequence[Worksheet], sheet_name: str) -> Worksheet:
    named = [each for each in sheets if normalize_name(each.title) == sheet_name]
    if named:
        return named[0]
    if len(sheets) != 1:
        names = ", ".join(f'"{each.title}"' for each in sheets)
        raise InvalidFile(
            f'The workbook has the sheets {names}, and none called "{sheet_name}":'
            " give the right one that name, or keep only that one."
        )
    return sheets[0]


def _read_header(line: Sequence[Any]) -> list[str]:
    header = [normalize_name(cell) for cell in line[: limits.MAX_COLUMNS + 1]]
    while header and not header[-1]:
        header.pop()
    if not header:
        raise InvalidFile("The first row is empty: it must name the columns.")
    if len(header) > limits.MAX_COLUMNS:
        raise InvalidFile(f"There are more than {limits.MAX_COLUMNS} columns.")
    for position, name in enumerate(header, 1):
        if not name:
            raise InvalidFile(f"Column {position} has no name in the first row.")
        if "\x00" in name:
            raise InvalidFile("This is neither CSV nor an .xlsx workbook.")
    duplicates = sorted({name for name in header if header.count(name) > 1})
    if duplicates:
        raise InvalidFile(f"These columns occur twice: {', '.join(duplicates)}.")
    return header


def _read_row(
    number: int, header: list[str], line: Sequence[Any]
) -> tuple[list[str], dict[str, str]]:
    cells = [""] * len(header)
    problems: dict[str, str] = {}
    too_long = InvalidFile(f"Row {number} has more cells than the header has columns.")
    if len(line) > limits.MAX_COLUMNS + 1:
        raise too_long
    for position, raw in enumerate(line):
        if raw is EMPTY_CELL:
            continue
        problem = ""
        try:
            text = read_cell(raw)
        except ValueError as error:
            text, problem = "", str(error)
        if position < len(header):
            cells[position] = text
            if problem:
                problems[header[position]] = problem
        elif text or problem:
            raise too_long
    # A workbook leaves out empty cells at the end of a row; CSV does not.
    if len(line) < len(header) and isinstance(line, list) and (any(cells) or problems):
        raise InvalidFile(f"Row {number} has fewer cells than the header has columns.")
    return cells, problems


def normalize_name(cell: Any) -> str:
    """Return the name of a column or sheet for comparison: in one case, without outer spaces."""
    value = getattr(cell, "value", cell)
    return "" if value is None else str(value).strip().lower()


def read_cell(cell: Any) -> str:
    """Return a cell as CSV text. Raises ValueError with a message for the author of the file."""
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
            if not math.isfinite(value):
                raise ValueError("This is not a number.")
            return NumberText(format_number(repr(value)))
        case dt.datetime():
            # Spreadsheets count days in floating point.
            rounded = (value + dt.timedelta(microseconds=500_000)).replace(microsecond=0)
            return rounded.isoformat(timespec="seconds" if rounded.second else "minutes")
        case dt.date():
            return value.isoformat()
        case dt.time():
            return value.isoformat(timespec="seconds" if value.second else "minutes")
        case dt.timedelta():
            raise ValueError("This is a duration: write it as text.")
    text = normalize_cell(str(value))
    if len(text) >= MAX_CELL_LENGTH:
        raise ValueError(f"This has {MAX_CELL_LENGTH:,} characters or more: it may have been cut.")
    if "\x00" in str(value):
        raise ValueError("It contains a character that cannot be stored (NUL).")
    return text


def format_number(number: str) -> str:
    """Return the number as text without an exponent and without trailing zeros."""
    text = format(Decimal(number), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def normalize_cell(text: str) -> str:
    """Return text as it is stored: without outer spaces, with one kind of line break."""
    return clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
