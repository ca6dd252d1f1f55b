"""Reads the API's CSV responses back, by the rules of `csv_table`."""

from typing import Any

from roombook.api.csv_table import build_object, parse_rows


def parse_response(text: str, *, rows_field: str | None = None) -> dict[str, Any]:
    """Return a response's fields as text; `rows_field` as in `csv_table.build_table`."""
    rows_field, _, inner_field = (rows_field or "").partition(".")
    header, rows = parse_rows(text)
    prefix = f"{rows_field}."
    in_list = [name.startswith(prefix) for name in header]
    names = [name.removeprefix(prefix) for name in header]
    elements = [
        build_object(
            (name, cell) for name, cell, inside in zip(names, row, in_list, strict=True) if inside
        )
        for row in rows
    ]
    first_row = zip(header, rows[0], in_list, strict=True)
    fields = build_object((name, cell) for name, cell, inside in first_row if not inside)
    if inner_field:
        elements = group_elements(elements, inner_field)
    if rows_field and any(elements):
        fields[rows_field] = elements
    return fields


def group_elements(elements: list[dict[str, Any]], inner_field: str) -> list[dict[str, Any]]:
    """Collect the inner elements of neighbors that are equal apart from them."""
    grouped: list[dict[str, Any]] = []
    for element in elements:
        inner = element.pop(inner_field, None)
        if not grouped or {**grouped[-1], inner_field: None} != {**element, inner_field: None}:
            grouped.append(element)
        if inner:
            grouped[-1].setdefault(inner_field, []).append(inner)
    return grouped
