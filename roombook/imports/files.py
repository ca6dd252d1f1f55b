"""Reads CSV and XLSX files as tables of texts, independently of the meaning of their rows.

The content of a file decides its format, not its name. Values that cannot be read exactly are
refused with a message that says what to do; no value is guessed.
"""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tablib
from django.conf import settings

from roombook.backoffice.spreadsheets import MAX_CELL_LENGTH, InvalidFile
from roombook.imports.displayed_values import CellKind, read_value
from roombook.spreadsheets import ERROR, unescape_formulas
from roombook.texts import clean_text

MAX_BYTES = 10 * 2**20
# Each is checked and saved like a form: 2,000 rooms take 15 seconds, and a proxy waits for 60.
MAX_ROWS, MAX_ROWS_OF_A_PAGE = 10_000, 2_000
# Including empty ones: a stray cell far below or beside a table costs as much as all between.
MAX_LINES, MAX_COLUMNS = 100_000, 256
# What the process that reads a workbook may use: 10,000 rows of 17 columns take 135 MB and
# 4 seconds of processor time. In all it takes less time than proxies and gunicorn wait.
MAX_MEMORY_BYTES = 768 * 2**20
MAX_PROCESSOR_SECONDS = 20
MAX_SECONDS = 45
# How spreadsheets write text in CSV that others would read as a number.
TEXT_OF_FORMULA = re.compile(r'="((?:[^"]|"")*)"')
ZIP_SIGNATURE, OLE_SIGNATURE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
TOO_LARGE = "The workbook is too large: split it, or save it as CSV."

# The number of a row, as spreadsheets display it, and its cells: text, or [what is wrong with it].
Row = tuple[int, list[str | list[str]]]


class ImportTable(tablib.Dataset):
    """The rows of a file, as text; empty rows are left out."""

    def __init__(self, header: list[str], rows: Iterable[Row]) -> None:
        numbered = [*rows]
        # The header is row 1.
        self.row_numbers = [number for number, _ in numbered]
        super().__init__(
            *(
                [each if isinstance(each, str) else UnreadableCell(*each) for each in cells]
                for _, cells in numbered
            ),
            headers=header,
        )


class UnreadableCell(str):
    """A cell that counts as empty, because it cannot be read."""

    problem: str

    def __new__(cls, problem: str) -> "UnreadableCell":
        cell = super().__new__(cls)
        cell.problem = problem
        return cell


def read_file(content: bytes, columns: Mapping[str, CellKind], sheet_name: str) -> ImportTable:
    """The table in a file. In a workbook, the sheet of that name is preferred. Raises InvalidFile.

    `columns` are those that are expected, and what each holds.
    """
    if len(content) > MAX_BYTES:
        raise InvalidFile(f"The file is larger than {MAX_BYTES // 2**20} MB: split it.")
    if not content.strip():
        raise InvalidFile("The file is empty.")
    if content.startswith(ZIP_SIGNATURE):
        return ImportTable(**_read_workbook(content, columns, sheet_name))
    if content.startswith(OLE_SIGNATURE):
        raise InvalidFile(
            "This is an old .xls workbook, or one with a password: save it as .xlsx without one."
        )
    return ImportTable(*_read_csv(_decode(content), columns))


def _read_workbook(
    content: bytes, columns: Mapping[str, CellKind], sheet_name: str
) -> dict[str, Any]:
    """Read a workbook in a process of its own, because a small one can cost gigabytes, or hours."""
    request = {
        "columns": {name: kind.name for name, kind in columns.items()},
        "sheet_name": sheet_name,
        "limits": (MAX_MEMORY_BYTES, MAX_PROCESSOR_SECONDS),
        "settings": {name: getattr(settings, name) for name in ("CURRENCY", "LOCALE")},
    }
    try:
        process = subprocess.run(
            [sys.executable, "-m", "roombook.imports.workbooks"],
            input=json.dumps(request).encode() + b"\n" + content,
            stdout=subprocess.PIPE,
            timeout=MAX_SECONDS,
            check=False,
            cwd=settings.BASE_DIR,
            # It knows no secrets.
            env={},
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidFile(TOO_LARGE) from error
    # A signal ended it, for example at the limit of processor time.
    if process.returncode < 0:
        raise InvalidFile(TOO_LARGE)
    process.check_returncode()
    answer: dict[str, Any] = json.loads(process.stdout)
    if "error" in answer:
        raise InvalidFile(answer["error"])
    return answer


def _read_csv(text: str, columns: Mapping[str, CellKind]) -> tuple[list[str], list[Row]]:
    lines = csv.reader(
        io.StringIO(text, newline=""), delimiter=_find_delimiter(text, columns), strict=True
    )
    try:
        return read_lines(lines, columns)
    except csv.Error as error:
        why = "a cell is too long" if "field limit" in str(error) else str(error)
        raise InvalidFile(f"The CSV cannot be read at line {lines.line_num}: {why}.") from error


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


def _find_delimiter(text: str, columns: Iterable[str]) -> str:
    """The delimiter with which most columns are known: some countries use semicolons."""
    names = text.split("\n", 1)[0].lower()

    def count_known(delimiter: str) -> int:
        return len({name.strip(' "\r') for name in names.split(delimiter)} & {*columns})

    return max(",;\t", key=count_known)


def read_lines(
    lines: Iterable[Sequence[object]], columns: Mapping[str, CellKind]
) -> tuple[list[str], list[Row]]:
    """The names of the columns, and the rows that are not empty. Raises InvalidFile."""
    numbered = enumerate(lines, 1)
    header = _read_header(next(numbered, (1, []))[1], columns)
    kinds = [columns[name] for name in header]
    rows: list[Row] = []
    for number, line in numbered:
        if number > MAX_LINES:
            raise InvalidFile(
                f"There are more than {MAX_LINES:,} lines, empty ones included:"
                " remove those, or split the file."
            )
        if any(map(normalize_name, line[len(header) :])):
            raise InvalidFile(f"Row {number} has more cells than the header has columns.")
        cells = [_read_cell(*each) for each in zip(line, kinds, strict=False)]
        if not any(cells):
            continue
        if len(cells) < len(header):
            raise InvalidFile(f"Row {number} has fewer cells than the header has columns.")
        if len(rows) == MAX_ROWS:
            raise InvalidFile(f"There are more than {MAX_ROWS:,} rows: split the file.")
        rows.append((number, cells))
    if not rows:
        raise InvalidFile("There is a header, and no row below it.")
    return header, rows


def _read_header(line: Sequence[object], columns: Mapping[str, CellKind]) -> list[str]:
    header = [*map(normalize_name, line)]
    while header and not header[-1]:
        header.pop()
    if not header:
        raise InvalidFile("The first row is empty: it must name the columns.")
    if len(header) > MAX_COLUMNS:
        raise InvalidFile(f"There are more than {MAX_COLUMNS} columns.")
    if "\x00" in "".join(header):
        raise InvalidFile("This is neither CSV nor an .xlsx workbook.")
    if not columns.keys() & {*header}:
        raise InvalidFile(
            "The first row must name the columns, and names none of them: delete what stands above"
            f" their names. There are: {', '.join(columns)}."
        )
    if "" in header:
        raise InvalidFile(f"Column {header.index('') + 1} has no name in the first row.")
    if unknown := [name for name in header if name not in columns]:
        names = ", ".join(f'"{name[:50]}"' for name in unknown)
        raise InvalidFile(f"Unknown columns: {names}. There are: {', '.join(columns)}.")
    if duplicates := sorted({name for name in header if header.count(name) > 1}):
        raise InvalidFile(f"These columns occur twice: {', '.join(duplicates)}.")
    return header


def normalize_name(cell: Any) -> str:
    """The name of a column or sheet for comparison: in lower case, without outer spaces."""
    value = getattr(cell, "value", cell)
    return "" if value is None else str(value).strip().lower()


def _read_cell(cell: object, kind: CellKind) -> str | list[str]:
    try:
        return read_cell(cell, kind)
    except ValueError as error:
        return [str(error)]


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
