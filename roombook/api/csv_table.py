"""Converts nested fields to dotted CSV columns and back (B1.3, B2.5).

A round trip loses only empty lists and objects, if no name contains a dot or looks like an index.
Cells are text; `format_cell` writes numbers and booleans as JSON does.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from roombook.spreadsheets import escape_formula, unescape_formula

FieldPath: TypeAlias = tuple[str | int, ...]
# Field names in the contract's order, each with the tree of the object that it holds.
FieldTree: TypeAlias = Mapping[str, "FieldTree"]

FIELD_ON_EVERY_ROW = "Success"
MAX_COLUMNS = 512
MAX_COLUMN_DEPTH = 32

INDEX_PATTERN = re.compile(r"0|[1-9][0-9]{0,8}")


class CSVCell(str):
    """Text from a CSV body, which its field may read as a number or a boolean."""

    __slots__ = ()


class InvalidTable(ValueError):
    """The text is not a table of the expected form. The message never contains a cell's text."""


def format_cell(value: object) -> str:
    """Return the value as a cell: numbers and booleans as in JSON, text guarded."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float | Decimal):
        return repr(float(value))
    return escape_formula(str(value))


# --- Responses ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CSVTable:
    """Column names and, for each row, the cells by column name; empty cells are left out."""

    header: list[str]
    rows: list[dict[str, str]]


def build_table(
    fields: Mapping[str, object], *, rows_field: str | None = None, field_tree: FieldTree
) -> CSVTable:
    """Return the columns in the order of `field_tree`, and one row for each element of the list
    in `rows_field`; all other fields are in the first row. `Rooms.FreeTimes` gives one row for each
    element of the inner lists, with the other fields of its outer element."""
    rows_field, _, inner_field = (rows_field or "").partition(".")
    elements = fields.get(rows_field) if rows_field else None
    if not isinstance(elements, list):
        elements = []
    if inner_field:
        elements = [
            {**element, inner_field: inner}
            for element in elements
            for inner in element.get(inner_field) or [None]
        ]
    others = {name: each for name, each in fields.items() if not (elements and name == rows_field)}
    rows = [dict(iterate_leaves(others))]
    for number, element in enumerate(elements):
        if number:
            repeated = {FIELD_ON_EVERY_ROW: fields.get(FIELD_ON_EVERY_ROW)}
            rows.append(dict(iterate_leaves(repeated)))
        rows[-1].update(iterate_leaves(element, (str(rows_field),)))
    order = FieldOrder({FIELD_ON_EVERY_ROW: {}, **field_tree})
    paths = sorted({path: None for row in rows for path in row}, key=order.sort_key)
    return CSVTable(
        header=[join_path(path) for path in paths],
        rows=[{join_path(path): cell for path, cell in row.items()} for row in rows],
    )


def iterate_leaves(value: object, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Yield every value that is not a list or an object, with its path; skip empty values."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from iterate_leaves(inner, (*path, name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from iterate_leaves(inner, (*path, index))
    elif value is not None and value != "":
        yield path, format_cell(value)


def join_path(path: FieldPath) -> str:
    return ".".join(str(part) for part in path)


def split_path(name: str) -> FieldPath:
    parts = name.split(".")
    return tuple(int(part) if INDEX_PATTERN.fullmatch(part) else part for part in parts)


class FieldOrder:
    """Sorts paths in the contract's order of fields; unknown fields come last, as first met."""

    def __init__(self, field_tree: FieldTree) -> None:
        self.field_tree = field_tree
        self.unknown_paths: dict[FieldPath, int] = {}

    def sort_key(self, path: FieldPath) -> tuple[int, ...]:
        key = []
        tree = self.field_tree
        for depth, part in enumerate(path):
            if isinstance(part, int):
                key.append(part)
            elif part in tree:
                key.append(list(tree).index(part))
                tree = tree[part]
            else:
                known_paths = len(self.unknown_paths)
                position = self.unknown_paths.setdefault(path[: depth + 1], known_paths)
                key.append(len(tree) + position)
                tree = {}
        return tuple(key)


# --- Requests -------------------------------------------------------------------------------------


def parse_request(text: str) -> dict[str, object]:
    """Return a request's fields: a header and exactly one row; an empty cell is an absent field."""
    header, rows = parse_rows(text)
    if len(rows) != 1:
        raise InvalidTable("There must be exactly one row below the header.")
    return build_object(zip(header, rows[0], strict=True))


def parse_rows(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows, all of the same length; empty lines are skipped."""
    try:
        found = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except csv.Error as error:
        # The csv module's messages do not quote the content.
        raise InvalidTable(f"The CSV cannot be read: {error}.") from error
    if len(found) < 2:
        raise InvalidTable("There must be a header and a row.")
    header, *rows = found
    if len(header) > MAX_COLUMNS:
        raise InvalidTable(f"There may be at most {MAX_COLUMNS} columns.")
    if any(len(row) != len(header) for row in rows):
        raise InvalidTable("Every row must have as many cells as the header.")
    return header, rows


def build_object(cells: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return the object that dotted names describe; a name of digits is the index of a list."""
    root: dict[str, object] = {}
    seen = set()
    for name, cell in cells:
        parts = name.split(".")
        if "" in parts or len(parts) > MAX_COLUMN_DEPTH:
            raise InvalidTable("A column has no usable name.")
        if name in seen:
            raise InvalidTable("Two columns have the same name.")
        seen.add(name)
        if cell:
            set_value(root, parts, CSVCell(unescape_formula(cell)))
    return {name: convert_to_lists(value) for name, value in root.items()}


def set_value(root: dict[str, object], parts: Sequence[str], value: CSVCell) -> None:
    *parents, last = parts
    node = root
    for part in parents:
        inner = node.setdefault(part, {})
        if not isinstance(inner, dict):
            raise InvalidTable("A column is both a value and an object.")
        node = inner
    if last in node:
        raise InvalidTable("A column is both a value and an object.")
    node[last] = value


def convert_to_lists(value: object) -> object:
    """Convert objects whose names are all indices to lists, in the order of the indices."""
    if not isinstance(value, dict):
        return value
    inner = {name: convert_to_lists(each) for name, each in value.items()}
    if all(INDEX_PATTERN.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner
