"""Opens XLSX workbooks from strangers: a few packed bytes can cost gigabytes, or hours.

openpyxl builds trees of the parts of a workbook in memory, many times as large as the parts, and
yields each line that a worksheet leaves out. Therefore all parts are small, except for worksheets
and their texts, and are parsed once before, without building anything, to count what is in them.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO
from xml.parsers import expat

from openpyxl.packaging.manifest import Manifest
from openpyxl.reader.excel import ExcelReader
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS
from openpyxl.xml.functions import fromstring

from roombook.backoffice.spreadsheets import InvalidFile
from roombook.imports import limits
from roombook.imports.limits import Deadline
from roombook.imports.merged_cells import fill_merged_cells

# Parts that grow with the rows, and how many elements they may have.
WORKSHEET = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
TEXTS = re.compile(r"xl/sharedStrings\.xml", re.IGNORECASE)
MAX_ELEMENTS_OF_WORKSHEET = 3_000_000
MAX_ELEMENTS_OF_TEXTS = 1_000_000
MAX_UNPACKED_BYTES = 100 * 2**20
MAX_SMALL_PART_BYTES = 2 * 2**20
MAX_ELEMENTS_OF_SMALL_PART = 50_000
# Of number formats, and of names such as print titles: openpyxl searches them with patterns that
# take the square of the length.
MAX_PATTERN_LENGTH = 255
MAX_PARTS = 1_000
# Sheets, and their print areas and titles.
MAX_SHEETS = 400
# Unpacked to packed, of parts above a size. Rows that are all alike reach 190.
MAX_RATIO = 250
MIN_BYTES_FOR_RATIO = 2**20
# Of one row, or of one text, which may have formats.
MAX_ELEMENTS_OF_ROW = 20_000
MAX_TAG_BYTES = 2**20
# The limits of spreadsheet programs are 32,767 and 8,192.
MAX_TEXT_LENGTH = 100_000
MAX_FORMULA_LENGTH = 8_192
# openpyxl parses and keeps each shared formula of a part, and rewrites it for each cell that uses
# it: about 100 bytes, and 2 microseconds, for each character. A column of formulas shares one.
MAX_SHARED_FORMULAS = 1_000
MAX_LENGTH_OF_SHARED_FORMULAS = 500_000
MAX_LENGTH_OF_SHARED_FORMULA_USES = 5_000_000
# What a shared formula takes besides its characters, as characters.
SHARED_FORMULA_OVERHEAD = 20
ROW = f"{SHEET_MAIN_NS} row"
# openpyxl builds the tree of a text with all texts inside of it.
DEPTH_OF_TEXT = 2
# Other workbooks' values: one part has rows of several sheets.
EXTERNAL_LINKS = "xl/externalLinks/"
MEDIA = "xl/media/"
CHUNK_BYTES = 64 * 1024

TOO_LARGE = "The workbook is too large: split it, or save it as CSV."
DAMAGED = "The workbook cannot be read: it is damaged."


@contextmanager
def open_worksheets(
    content: bytes, deadline: Deadline
) -> Iterator[dict[str, Iterator[Sequence[object]]]]:
    """The lines of worksheets by title. Raises InvalidFile, also for errors while they are read."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            merged_cells = _check_archive(archive, deadline)
        # `load_workbook` does not tell which part of the archive holds a sheet.
        reader = ExcelReader(io.BytesIO(content), read_only=True, keep_links=False)
        reader.read()
        try:
            parts = {sheet.name: part.target for sheet, part in reader.parser.find_sheets()}
            worksheets = {}
            for sheet in reader.wb.worksheets:
                # The size that a sheet declares may be wrong.
                sheet.reset_dimensions()
                lines = sheet.iter_rows(max_col=limits.MAX_COLUMNS + 1)
                worksheets[sheet.title] = fill_merged_cells(lines, merged_cells[parts[sheet.title]])
            yield worksheets
        finally:
            reader.wb.close()
    except InvalidFile:
        raise
    except (InvalidFileException, zipfile.BadZipFile, KeyError) as error:
        raise InvalidFile("This is neither CSV nor an .xlsx workbook.") from error
    # openpyxl raises all kinds of errors on a damaged workbook.
    except Exception as error:
        raise InvalidFile(DAMAGED) from error


def _check_archive(archive: zipfile.ZipFile, deadline: Deadline) -> dict[str, list[str]]:
    """Return the ranges of merged cells of each part."""
    entries = archive.infolist()
    if len(entries) > MAX_PARTS or sum(each.file_size for each in entries) > MAX_UNPACKED_BYTES:
        raise InvalidFile(TOO_LARGE)
    for entry in entries:
        # Other methods may need gigabytes to unpack.
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidFile(DAMAGED)
        if entry.file_size > MIN_BYTES_FOR_RATIO and (
            entry.file_size > MAX_RATIO * entry.compress_size
        ):
            raise InvalidFile(TOO_LARGE)
        if _get_max_elements(entry) is None and entry.file_size > MAX_SMALL_PART_BYTES:
            raise InvalidFile(TOO_LARGE)
    merged_cells = {entry.filename: _check_part(archive, entry, deadline) for entry in entries}
    # A worksheet may have more elements than texts may: it must not be read as texts.
    manifest = Manifest.from_tree(fromstring(archive.read("[Content_Types].xml")))
    texts = manifest.find(SHARED_STRINGS)
    if texts is not None and WORKSHEET.search(texts.PartName):
        raise InvalidFile(DAMAGED)
    return merged_cells


def _check_part(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, deadline: Deadline) -> list[str]:
    max_elements = _get_max_elements(entry)
    checker = PartChecker(
        deadline,
        max_elements or MAX_ELEMENTS_OF_SMALL_PART,
        MAX_ELEMENTS_OF_ROW if max_elements else MAX_ELEMENTS_OF_SMALL_PART,
        rows_ascend=not entry.filename.startswith(EXTERNAL_LINKS),
        allow_doctype=entry.filename.startswith(MEDIA),
    )
    with archive.open(entry) as part:
        try:
            checker.read(part)
        except expat.ExpatError:
            # A workbook may have its worksheets under any name. Therefore pictures and settings
            # of printers are read too, up to where openpyxl would fail to read them.
            if entry.filename.lower().endswith(".xml"):
                raise
    return checker.merged_cells


def _get_max_elements(entry: zipfile.ZipInfo) -> int | None:
    """None for a small part."""
    if WORKSHEET.fullmatch(entry.filename):
        return MAX_ELEMENTS_OF_WORKSHEET
    return MAX_ELEMENTS_OF_TEXTS if TEXTS.fullmatch(entry.filename) else None


class PartChecker:
    """Counts what is in a part of a workbook, and refuses more than it may have."""

    def __init__(
        self,
        deadline: Deadline,
        max_elements: int,
        max_elements_of_row: int,
        *,
        rows_ascend: bool,
        allow_doctype: bool,
    ) -> None:
        self.deadline = deadline
        self.max_elements = max_elements
        self.max_elements_of_row = max_elements_of_row
        self.rows_ascend = rows_ascend
        self.allow_doctype = allow_doctype
        self.max_text_length = MAX_TEXT_LENGTH
        self.elements = self.elements_of_row = self.text_length = 0
        self.rows = self.cells = self.sheets = 0
        # How many elements are open, and how many where cells of the current row begin.
        self.depth = 0
        self.depth_of_cells = -1
        # The row of a worksheet that is open: its depth, or 0; and its number.
        self.depth_of_row = self.row_number = 0
        # The shared formula that is open, with its length so far; and the lengths of all.
        self.shared_formula: str | None = None
        self.formula_length = 0
        self.shared_formulas: dict[str, int] = {}
        self.length_of_shared_formulas = self.length_of_uses = 0
        self.merged_cells: list[str] = []

    def read(self, part: IO[bytes]) -> None:
        """Raises InvalidFile, or ExpatError."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        if self.allow_doctype:
            # Drawings (SVG) may have one.
            parser.EntityDeclHandler = self._refuse_declaration
        else:
            parser.StartDoctypeDeclHandler = self._refuse_declaration
        count = 0
        while chunk := part.read(CHUNK_BYTES):
            self.deadline.check()
            parser.Parse(chunk, False)
            count += len(chunk)
            if count - parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise InvalidFile(TOO_LARGE)
        parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.text_length = 0
        self.max_text_length = MAX_TEXT_LENGTH
        self.elements += 1
        self.elements_of_row += 1
        if name == ROW:
            self._start_row(attributes)
        match name.rpartition(" ")[2]:
            case "row" if self.depth_of_row in (0, self.depth):
                self.rows += 1
                self.elements_of_row = self.cells = 0
                self.depth_of_cells = self.depth + 1
            case "si" if self.depth == DEPTH_OF_TEXT:
                self.elements_of_row = 0
            case "sheet":
                self.sheets += 1
            case "numFmt":
                if len(attributes.get("formatCode", "")) > MAX_PATTERN_LENGTH:
                    raise InvalidFile(TOO_LARGE)
            case "definedName" if "_xlnm" in attributes.get("name", ""):
                self.sheets += 1
                self.max_text_length = MAX_PATTERN_LENGTH
            case "mergeCell":
                self.merged_cells.append(attributes.get("ref", ""))
            case "f":
                self.max_text_length = MAX_FORMULA_LENGTH
                self._start_formula(attributes)
        if self.depth == self.depth_of_cells:
            self.cells += 1
        if self.rows > limits.MAX_LINES:
            raise InvalidFile(limits.TOO_MANY_LINES)
        if self.cells > limits.MAX_COLUMNS:
            raise InvalidFile(f"A row has more than {limits.MAX_COLUMNS} cells.")
        if (
            self.elements > self.max_elements
            or self.elements_of_row > self.max_elements_of_row
            or self.sheets > MAX_SHEETS
        ):
            raise InvalidFile(TOO_LARGE)

    def _start_row(self, attributes: dict[str, str]) -> None:
        """Refuses a row that openpyxl would read and not yield: nobody would check the time."""
        number = self.row_number + 1
        if "r" in attributes:
            # Some programs write "1.0".
            number = int(float(attributes["r"]))
        if self.depth_of_row or (self.rows_ascend and number <= self.row_number):
            raise InvalidFile(DAMAGED)
        self.depth_of_row, self.row_number = self.depth, number

    def _start_formula(self, attributes: dict[str, str]) -> None:
        self.shared_formula = None
        if attributes.get("t") == "shared":
            self.shared_formula = attributes.get("si", "")
            self.formula_length = 0
            self.length_of_uses += self.shared_formulas.get(self.shared_formula, 0)
            if self.length_of_uses > MAX_LENGTH_OF_SHARED_FORMULA_USES:
                raise InvalidFile(TOO_LARGE)

    def _add_to_shared_formula(self, key: str, length: int) -> None:
        self.formula_length += length
        known = self.shared_formulas.get(key, 0)
        added = self.formula_length + SHARED_FORMULA_OVERHEAD - known
        if added > 0:
            self.shared_formulas[key] = known + added
            self.length_of_shared_formulas += added
            if (
                len(self.shared_formulas) > MAX_SHARED_FORMULAS
                or self.length_of_shared_formulas > MAX_LENGTH_OF_SHARED_FORMULAS
            ):
                raise InvalidFile(TOO_LARGE)

    def _end(self, name: str) -> None:
        if self.depth == self.depth_of_row:
            self.depth_of_row = 0
        if name.rpartition(" ")[2] == "f":
            self.shared_formula = None
        self.depth -= 1
        if self.depth < self.depth_of_cells - 1:
            self.depth_of_cells = -1

    def _add_text(self, text: str) -> None:
        if self.shared_formula is not None:
            self._add_to_shared_formula(self.shared_formula, len(text))
        self.text_length += len(text)
        if self.text_length > self.max_text_length:
            raise InvalidFile(TOO_LARGE)

    def _refuse_declaration(self, *args: object) -> None:
        raise InvalidFile(DAMAGED)
