"""The data files, and how they are imported."""

import csv
import datetime as dt
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from roombook.backoffice.spreadsheets import iterate_csv
from roombook.imports.resources import RESOURCES
from roombook.imports.widgets import format_datetime

FOLDER = Path(__file__).parent / "data"
# A day or a time relative to the import: today+300d, now-30d.
RELATIVE = re.compile(r"(today|now)([+-]\d+)d")


def read_json(name: str) -> Any:
    return json.loads((FOLDER / name).read_text("utf-8"), parse_float=Decimal)


def read_picture(name: str) -> bytes:
    return (FOLDER / "pictures" / name).read_bytes()


def read_csv(name: str, *, now: dt.datetime) -> list[dict[str, str]]:
    def resolve(cell: str) -> str:
        if not (match := RELATIVE.fullmatch(cell)):
            return cell
        when = now + dt.timedelta(int(match[2]))
        return when.date().isoformat() if match[1] == "today" else format_datetime(when)

    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return [
            {column: resolve(cell) for column, cell in row.items()} for row in csv.DictReader(file)
        ]


def import_rows(resource_name: str, rows: Iterable[dict[str, str]]) -> None:
    """Import rows as `import_centers` does."""
    table = [*rows]
    content = "".join(iterate_csv([*table[0]], [[*row.values()] for row in table]))
    resource = RESOURCES[resource_name]()
    resource.import_data(resource.read_file(content.encode()), file_name=f"{resource_name}.csv")
