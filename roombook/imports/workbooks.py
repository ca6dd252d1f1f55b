"""Reads a workbook in a process of its own, with limits of memory and processor time.

`python -m roombook.imports.workbooks` gets a line of JSON and the workbook on standard input, and
writes the table as JSON. Whatever a workbook costs, the process that serves requests is unaffected.
"""

import io
import json
import resource
import sys
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from roombook.backoffice.spreadsheets import InvalidFile
from roombook.imports import files
from roombook.imports.displayed_values import CellKind

MAX_OUTPUT_BYTES = 50 * 2**20


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    memory, seconds = request["limits"]
    # Modules are imported by now. A process that reaches the limit of time is killed.
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    settings.configure(**request["settings"])
    columns = {name: CellKind[kind] for name, kind in request["columns"].items()}
    try:
        output = json.dumps(read(sys.stdin.buffer.read(), columns, request["sheet_name"]))
        if len(output) > MAX_OUTPUT_BYTES:
            raise MemoryError
    except InvalidFile as error:
        output = json.dumps({"error": str(error)})
    except MemoryError:
        output = json.dumps({"error": files.TOO_LARGE})
    except (zipfile.BadZipFile, KeyError):
        output = json.dumps({"error": "This is neither CSV nor an .xlsx workbook."})
    # openpyxl raises all kinds of errors on a damaged workbook.
    except Exception:
        output = json.dumps({"error": "The workbook cannot be read: it is damaged."})
    sys.stdout.write(output)


def read(content: bytes, columns: dict[str, CellKind], sheet_name: str) -> dict[str, Any]:
    """Raises InvalidFile, and any other exception if the workbook is damaged."""
    # Of programs that write no default style.
    warnings.simplefilter("ignore")
    book = load_workbook(io.BytesIO(content), keep_links=False)
    sheet = _choose_sheet(book, sheet_name)
    header, rows = files.read_lines(_iterate_lines(sheet), columns)
    return {"header": header, "rows": rows}


def _choose_sheet(book: Workbook, sheet_name: str) -> Worksheet:
    named = [each for each in book.worksheets if files.normalize_name(each.title) == sheet_name]
    if not named and len(book.worksheets) != 1:
        names = ", ".join(f'"{each.title}"' for each in book.worksheets)
        raise InvalidFile(
            f'The workbook has the sheets {names}, and none called "{sheet_name}":'
            " give the right one that name, or keep only that one."
        )
    return (named or book.worksheets)[0]


def _iterate_lines(sheet: Worksheet) -> Iterator[Sequence[object]]:
    """The cells of each row. A cell that is merged over several rows counts for each of them."""
    ranges = sheet.merged_cells.ranges
    refused = [str(each) for each in ranges if each.min_col < each.max_col or each.min_row == 1]
    if refused:
        raise InvalidFile(
            f"Cells are merged across columns or with the header ({', '.join(refused[:5])}):"
            " unmerge them, and write each value in its own cell. The first row names the columns:"
            " delete a title above it."
        )
    merged = {
        (row, each.min_col): sheet.cell(each.min_row, each.min_col)
        for each in ranges
        for row in range(each.min_row + 1, each.max_row + 1)
    }
    for line in sheet.iter_rows(max_col=min(sheet.max_column, files.MAX_COLUMNS + 1)):
        # Rows that are empty otherwise stay empty.
        if any(cell.value is not None for cell in line):
            yield [merged.get((cell.row, cell.column), cell) for cell in line]
        else:
            yield line


if __name__ == "__main__":
    main()
