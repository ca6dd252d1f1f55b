"""Merged cells of a worksheet: a file stores only the first one of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from openpyxl.utils import range_boundaries

from roombook.backoffice.spreadsheets import InvalidFile


def fill_merged_cells(
    lines: Iterable[Sequence[object]], references: Iterable[str]
) -> Iterator[Sequence[object]]:
    """Yield the lines with a cell that is merged over several rows in each of them.

    Raises InvalidFile for ranges such as B2:C4, whose value belongs to no single column.
    """
    # First row -> columns, each with its last row.
    starts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    refused = []
    for reference in references:
        left, top, right, bottom = range_boundaries(reference)
        if left == right and top > 1:
            starts[top].append((left - 1, bottom))
        else:
            refused.append(reference)
    if refused:
        raise InvalidFile(
            f"Cells are merged across columns or with the header ({', '.join(refused[:5])}):"
            " unmerge them, and write each value in its own cell."
        )
    merged: dict[int, tuple[int, object]] = {}
    for number, line in enumerate(lines, 1):
        cells = list(line)
        # Rows that are empty otherwise stay empty.
        if merged and any(getattr(cell, "value", None) is not None for cell in cells):
            for column, (last, cell) in merged.items():
                if number <= last:
                    cells[column] = cell
        for column, last in starts.get(number, ()):
            if column < len(cells):
                merged[column] = (last, cells[column])
        yield tuple(cells)
