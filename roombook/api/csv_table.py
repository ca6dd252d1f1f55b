"""Nested fields <-> dotted columns, both ways, pure (B1.3, B2.5).

Writing and reading back lose nothing but empty lists and objects, if no name holds a dot or looks
like an index. Cells are text; `text_of` writes numbers and booleans as JSON does.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from roombook.spreadsheets import escape_formula, unescape_formula

FieldPath: TypeAlias = tuple[str | int, ...]
# Names in the contract's order, each with the shape of what it holds.
FieldTree: TypeAlias = Mapping[str, "FieldTree"]

FIELD_ON_EVERY_ROW = "Success"
MAX_COLUMNS = 512
MAX_COLUMN_DEPTH = 32

INDEX_PATTERN = re.compile(r"0|[1-9][0-9]{0,8}")


class CSVCell(str):
    """Text from a CSV body: it may stand for a number or a boolean, as its field wants."""

    __slots__ = ()


class InvalidTable(ValueError):
    """The text is no table of this kind; the message never holds a cell's content."""


# --- one cell -----------------------------------------------------------------------------------


def format_cell(value: Any) -> str:
    """The value as a cell: numbers and booleans as JSON writes them, text guarded."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float | Decimal):
        return repr(float(value))
    return escape_formula(str(value))


# --- out ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CSVTable:
    header: list[str]
    lines: list[dict[str, str]]


def build_table(
    fields: Mapping[str, Any],
    *,
    rows: str | None = None,
    field_tree: FieldTree = {},  # noqa: B006
) -> CSVTable:
    """Columns in the order of `shape`; the list named `rows` makes one line an element."""
    elements = fields.get(rows) if rows else None
    if not isinstance(elements, list):
        elements = []
    others = {name: value for name, value in fields.items() if not (elements and name == rows)}
    lines = [dict(iterate_leaves(others))]
    for number, element in enumerate(elements):
        if number:
            lines.append(dict(iterate_leaves({FIELD_ON_EVERY_ROW: fields.get(FIELD_ON_EVERY_ROW)})))
        lines[-1].update(iterate_leaves(element, (str(rows),)))
    order = FieldOrder({FIELD_ON_EVERY_ROW: {}, **field_tree})
    paths = sorted({path: None for line in lines for path in line}, key=order.sort_key)
    return CSVTable(
        header=[join_path(path) for path in paths],
        lines=[{join_path(path): text for path, text in line.items()} for line in lines],
    )


def iterate_leaves(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Every value that is not a list or an object, with its path; nothing for no value."""
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


class FieldOrder:
    """Sorts paths as the contract lists names; unknown names come last, as they were met."""

    def __init__(self, shape: FieldTree) -> None:
        self.shape = shape
        self.unknown_paths: dict[FieldPath, int] = {}

    def sort_key(self, path: FieldPath) -> tuple[int, ...]:
        key = []
        shape = self.shape
        for depth, part in enumerate(path):
            if isinstance(part, int):
                key.append(part)
            elif part in shape:
                key.append(list(shape).index(part))
                shape = shape[part]
            else:
                met = self.unknown_paths.setdefault(path[: depth + 1], len(self.unknown_paths))
                key.append(len(shape) + met)
                shape = {}
        return tuple(key)


# --- in -----------------------------------------------------------------------------------------


def parse_request(text: str) -> dict[str, Any]:
    """A request's fields: a header and exactly one row; an empty cell is an absent field."""
    header, lines = parse_rows(text)
    if len(lines) != 1:
        raise InvalidTable("There must be exactly one row below the header.")
    return build_object(zip(header, lines[0], strict=True))


def parse_response(text: str, *, rows: str | None = None) -> dict[str, Any]:
    """An answer's fields as text, by the rule that wrote them: `rows` as in `to_table`."""
    header, lines = parse_rows(text)
    inside = f"{rows}."
    own = [name.startswith(inside) for name in header]
    names = [name.removeprefix(inside) for name in header]
    elements = [
        build_object(
            (name, cell) for name, cell, is_own in zip(names, line, own, strict=True) if is_own
        )
        for line in lines
    ]
    first = zip(header, lines[0], own, strict=True)
    fields = build_object((name, cell) for name, cell, is_own in first if not is_own)
    if rows and any(elements):
        fields[rows] = elements
    return fields


def parse_rows(text: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows, all of one length; empty lines do not count."""
    try:
        found = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except csv.Error as error:
        # The reader's own words would be an engineer's riddle, but hold no content.
        raise InvalidTable(f"The CSV cannot be read: {error}.") from error
    if len(found) < 2:
        raise InvalidTable("There must be a header and a row.")
    header, *lines = found
    if len(header) > MAX_COLUMNS:
        raise InvalidTable(f"There may be at most {MAX_COLUMNS} columns.")
    if any(len(line) != len(header) for line in lines):
        raise InvalidTable("Every row must have as many cells as the header.")
    return header, lines


def build_object(cells: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The object that dotted names describe; digits alone are the index of a list."""
    root: dict[str, Any] = {}
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


def set_value(root: dict[str, Any], parts: Sequence[str], value: CSVCell) -> None:
    *folders, last = parts
    node = root
    for part in folders:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise InvalidTable("A column is both a value and an object.")
    if last in node:
        raise InvalidTable("A column is both a value and an object.")
    node[last] = value


def convert_to_lists(value: Any) -> Any:
    """Objects whose names are all indices become lists, in the order of the indices."""
    if not isinstance(value, dict):
        return value
    inner = {name: convert_to_lists(value) for name, value in value.items()}
    if all(INDEX_PATTERN.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner
