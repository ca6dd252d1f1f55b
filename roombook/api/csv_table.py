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

from roombook.spreadsheets import guarded, unguarded

Path: TypeAlias = tuple[str | int, ...]
# Names in the contract's order, each with the shape of what it holds.
Shape: TypeAlias = Mapping[str, "Shape"]

EVERY_ROW = "Success"
MAX_COLUMNS = 512
MAX_DEPTH = 32

INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class Cell(str):
    """Text from a CSV body: it may stand for a number or a boolean, as its field wants."""

    __slots__ = ()


class BadTable(ValueError):
    """The text is no table of this kind; the message never holds a cell's content."""


# --- one cell -----------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """The value as a cell: numbers and booleans as JSON writes them, text guarded."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float | Decimal):
        return repr(float(value))
    return guarded(str(value))


# --- out ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    header: list[str]
    lines: list[dict[str, str]]


def to_table(fields: Mapping[str, Any], *, rows: str | None = None, shape: Shape = {}) -> Table:  # noqa: B006
    """Columns in the order of `shape`; the list named `rows` makes one line an element."""
    elements = fields.get(rows) if rows else None
    if not isinstance(elements, list):
        elements = []
    others = {name: value for name, value in fields.items() if not (elements and name == rows)}
    lines = [dict(leaves(others))]
    for number, element in enumerate(elements):
        if number:
            lines.append(dict(leaves({EVERY_ROW: fields.get(EVERY_ROW)})))
        lines[-1].update(leaves(element, (str(rows),)))
    order = Order({EVERY_ROW: {}, **shape})
    paths = sorted({path: None for line in lines for path in line}, key=order.of)
    return Table(
        header=[name_of(path) for path in paths],
        lines=[{name_of(path): text for path, text in line.items()} for line in lines],
    )


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every value that is not a list or an object, with its path; nothing for no value."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    elif value is not None and value != "":
        yield path, text_of(value)


def name_of(path: Path) -> str:
    return ".".join(str(part) for part in path)


class Order:
    """Sorts paths as the contract lists names; unknown names come last, as they were met."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.strangers: dict[Path, int] = {}

    def of(self, path: Path) -> tuple[int, ...]:
        key = []
        shape = self.shape
        for depth, part in enumerate(path):
            if isinstance(part, int):
                key.append(part)
            elif part in shape:
                key.append(list(shape).index(part))
                shape = shape[part]
            else:
                met = self.strangers.setdefault(path[: depth + 1], len(self.strangers))
                key.append(len(shape) + met)
                shape = {}
        return tuple(key)


# --- in -----------------------------------------------------------------------------------------


def read_request(text: str) -> dict[str, Any]:
    """A request's fields: a header and exactly one row; an empty cell is an absent field."""
    header, lines = read_table(text)
    if len(lines) != 1:
        raise BadTable("There must be exactly one row below the header.")
    return nested(zip(header, lines[0], strict=True))


def read_answer(text: str, *, rows: str | None = None) -> dict[str, Any]:
    """An answer's fields as text, by the rule that wrote them: `rows` as in `to_table`."""
    header, lines = read_table(text)
    inside = f"{rows}."
    own = [name.startswith(inside) for name in header]
    names = [name.removeprefix(inside) for name in header]
    elements = [
        nested((name, cell) for name, cell, is_own in zip(names, line, own, strict=True) if is_own)
        for line in lines
    ]
    first = zip(header, lines[0], own, strict=True)
    fields = nested((name, cell) for name, cell, is_own in first if not is_own)
    if rows and any(elements):
        fields[rows] = elements
    return fields


def read_table(text: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows, all of one length; empty lines do not count."""
    try:
        found = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except csv.Error as error:
        # The reader's own words would be an engineer's riddle, but hold no content.
        raise BadTable(f"The CSV cannot be read: {error}.") from error
    if len(found) < 2:
        raise BadTable("There must be a header and a row.")
    header, *lines = found
    if len(header) > MAX_COLUMNS:
        raise BadTable(f"There may be at most {MAX_COLUMNS} columns.")
    if any(len(line) != len(header) for line in lines):
        raise BadTable("Every row must have as many cells as the header.")
    return header, lines


def nested(cells: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The object that dotted names describe; digits alone are the index of a list."""
    root: dict[str, Any] = {}
    seen = set()
    for name, cell in cells:
        parts = name.split(".")
        if "" in parts or len(parts) > MAX_DEPTH:
            raise BadTable("A column has no usable name.")
        if name in seen:
            raise BadTable("Two columns have the same name.")
        seen.add(name)
        if cell:
            put(root, parts, Cell(unguarded(cell)))
    return {name: with_lists(value) for name, value in root.items()}


def put(root: dict[str, Any], parts: Sequence[str], value: Cell) -> None:
    *folders, last = parts
    node = root
    for part in folders:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise BadTable("A column is both a value and an object.")
    if last in node:
        raise BadTable("A column is both a value and an object.")
    node[last] = value


def with_lists(value: Any) -> Any:
    """Objects whose names are all indices become lists, in the order of the indices."""
    if not isinstance(value, dict):
        return value
    inner = {name: with_lists(value) for name, value in value.items()}
    if all(INDEX.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner
