"""Generates the tables of docs/contract.md from the serializers (`make contract-docs`).

The prose of the page is kept. What stands between `<!-- operations: NAME -->` (or
`<!-- types: NAMES -->`) and `<!-- end -->` is generated here.
"""

import inspect
import re
from pathlib import Path

from roombook import urls
from roombook.api.serializers import ContractSerializer
from tests.contract.schema import (
    find_serializer_classes,
    get_operation_name,
    get_operations,
    get_type_name,
)

PAGE = Path(__file__).parents[2] / "docs/contract.md"
BLOCK = re.compile(r"<!-- (operations|types): ([^>]*?) -->\n.*?<!-- end -->\n", re.S)


def render_page(page: str) -> str:
    """Return the page with its generated blocks up to date."""
    patterns = {"contract": urls.contract_paths, "extensions": urls.extension_paths}
    operations = get_operations([*urls.contract_paths, *urls.extension_paths]).values()
    serializer_classes = find_serializer_classes(operations)

    def render_block(match: re.Match[str]) -> str:
        kind, names = match[1], match[2].split()
        if kind == "operations":
            parts = [render_operations(patterns[name]) for name in names]
        else:
            parts = [render_type(serializer_classes[name]) for name in names]
        return f"<!-- {kind}: {' '.join(names)} -->\n\n" + "\n".join(parts) + "\n<!-- end -->\n"

    return BLOCK.sub(render_block, page)


def render_operations(patterns) -> str:
    lines = ["| Operation | Path | Request | Response |", "|---|---|---|---|"]
    for path, view in get_operations(patterns).items():
        cells = [get_operation_name(view), f"`{path}`"]
        cells += [render_fields(view.Input()), render_fields(view.Output())]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def render_fields(serializer) -> str:
    cells = []
    for name, field in serializer.fields.items():
        shown_name = f"**{name}**" if field.required else name
        cells.append(f"{shown_name} `{get_type_name(field)}`")
    return ", ".join(cells) or "none"


def render_type(serializer_class) -> str:
    description = " ".join((inspect.getdoc(serializer_class) or "").split("\n\n")[0].split())
    fields = serializer_class().fields
    (base,) = serializer_class.__bases__
    if base is not ContractSerializer:
        inherited = base().fields
        fields = {name: field for name, field in fields.items() if name not in inherited}
        description += f" All fields of {base.__name__}, in its order, and then:"
    rows = [
        f"| {name} | `{get_type_name(field)}` |{' ' + field.help_text if field.help_text else ''} |"
        for name, field in fields.items()
    ]
    head = ["| Field | Type | |", "|---|---|---|"]
    return "\n".join([f"**{serializer_class.__name__}**: {description}", "", *head, *rows, ""])


def update_page() -> None:
    """Write the page; called by `make contract-docs`."""
    PAGE.write_text(render_page(PAGE.read_text()))
