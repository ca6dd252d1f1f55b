"""Reads CSV and XLSX files, independently of the meaning of their rows.

The content of a file decides its format, not its name. Values that cannot be read exactly are
rejected with a message that says what to do; no value is guessed.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tablib

from roombook.backoffice.spreadsheets import MAX_CELL_LENGTH, InvalidFile
from roombook.imports import limits
from roombook.imports.displayed_values import CellKind, read_value
from roombook.imports.limits import Deadline
from roombook.imports.workbooks import open_worksheets
from roombook.spreadsheets import ERROR, unescape_formulas
from roombook.texts import clean_text

MAX_HEADER_LENGTH = 20_000
# How spreadsheets write text in CSV that others would read as a number.
TEXT_OF_FORMULA = re.compile(r'="((?:[^"]|"")*)"')
ZIP_SIGNATURE, OLE_SIGNATURE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


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

    # The columns that are expected, and what each holds.
    columns: Mapping[str, CellKind]
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
                title = _choose_sheet([*sheets], self.sheet_name)
                return self._fill(sheets[title], normalize_name(title))
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
                kinds = [self.columns.get(name, CellKind.TEXT) for name in header]
                continue
            cells, problems = _read_row(number, header, kinds, line)
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


def _choose_sheet(titles: list[str], sheet_name: str) -> str:
    named = [title for title in titles if normalize_name(title) == sheet_name]
    if not named and len(titles) != 1:
        names = ", ".join(f'"{title}"' for title in titles)
        raise InvalidFile(
            f'The workbook has the sheets {names}, and none called "{sheet_name}":'
            " give the right one that name, or keep only that one."
        )
    return (named or titles)[0]


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
    number: int, header: list[str], kinds: list[CellKind], line: Sequence[Any]
) -> tuple[list[str], dict[str, str]]:
    cells, problems = [""] * len(header), {}
    if len(line) > limits.MAX_COLUMNS + 1 or any(map(normalize_name, line[len(header) :])):
        raise InvalidFile(f"Row {number} has more cells than the header has columns.")
    for position, (raw, kind) in enumerate(zip(line, kinds, strict=False)):
        try:
            cells[position] = read_cell(raw, kind)
        except ValueError as error:
            problems[header[position]] = str(error)
    # A workbook leaves out empty cells at the end of a row; CSV does not.
    if len(line) < len(header) and isinstance(line, list) and (any(cells) or problems):
        raise InvalidFile(f"Row {number} has fewer cells than the header has columns.")
    return cells, problems


def normalize_name(cell: Any) -> str:
    """Return the name of a column or sheet for comparison: in one case, without outer spaces."""
    value = getattr(cell, "value", cell)
    return "" if value is None else str(value).strip().lower()


def read_cell(cell: Any, kind: CellKind) -> str:
    """Return a cell as text. Raises ValueError with a message for the author of the file."""
    value = getattr(cell, "value", cell)
    match getattr(cell, "data_type", ""):
        case "f":
            raise ValueError("This is a formula: paste its value instead.")
        case "e":
            raise ValueError(f"This is an error of the spreadsheet ({value}).")
    if value is None:
        return ""
    if not isinstance(value, str):
        return read_value(value, cell.number_format, kind)
    text = normalize_cell(value)
    if len(text) >= MAX_CELL_LENGTH:
        raise ValueError(f"This has {MAX_CELL_LENGTH:,} characters or more: it may have been cut.")
    if "\x00" in value:
        raise ValueError("It contains a character that cannot be stored (NUL).")
    # In a workbook, text is no formula whatever it begins with.
    if value is cell:
        if match := TEXT_OF_FORMULA.fullmatch(text):
            return normalize_cell(match[1].replace('""', '"'))
        if text.startswith(("=", "\uff1d")):
            raise ValueError("This is a formula: paste its value instead.")
        if re.fullmatch(ERROR, text):
            raise ValueError(f"This is an error of the spreadsheet ({text[:20]}).")
    return unescape_formulas(text)


def normalize_cell(text: str) -> str:
    """Return text as it is stored: without outer spaces, with one kind of line break."""
    return clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
