"""What an import would do to each row of a file."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.utils.html import format_html
from import_export.results import Result, RowResult

# So many rows of a kind are displayed, and so much of a cell; all rows are counted.
MAX_DISPLAYED_ROWS = 300
MAX_DISPLAYED_CHARACTERS = 200


class ImportRefused(Exception):
    """Nothing was written; the message says why."""


class ImportRowResult(RowResult):
    """What would become of one row of the file."""

    def __init__(self) -> None:
        super().__init__()
        # As spreadsheets number them: the header is row 1.
        self.number = 0
        # Column -> its text now, and its text after the import.
        self.changes: dict[str, tuple[str, str]] = {}
        # The columns of values that empty cells would clear.
        self.cleared: list[str] = []
        # A column, and what should be checked about it.
        self.notes: list[tuple[str, str]] = []

    def describe(
        self, header: Sequence[str], changes: dict[str, tuple[str, str]], row: Any, title: str
    ) -> None:
        """Set the changes, and the cells of the preview; what stays as it is has an empty one."""
        self.changes, self.object_repr = changes, title
        self.cleared = [name for name, pair in changes.items() if pair[0] and not row[name]]
        self.diff = [str(self.number), title]
        for name in header:
            before, after = (
                text[:MAX_DISPLAYED_CHARACTERS] for text in changes.get(name, ("", ""))
            )
            html = "<del>{}</del> <ins>{}</ins>"
            self.diff.append(format_html(html, before, after) if before else after)


class ImportResult(Result):
    """What would become of a file. `rows` has the new and changed rows, and those with errors."""

    rows: list[ImportRowResult]

    def append_row_result(self, row_result: ImportRowResult) -> None:
        if row_result.is_new() or row_result.is_update():
            super().append_row_result(row_result)

    def append_invalid_row(self, number: int, row: Any, validation_error: Exception) -> None:
        if len(self.invalid_rows) < MAX_DISPLAYED_ROWS:
            super().append_invalid_row(number, row, validation_error)

    def valid_rows(self) -> list[ImportRowResult]:
        """The rows that a preview displays."""
        changed = [row for row in self.rows if row.is_update()][:MAX_DISPLAYED_ROWS]
        return changed + [row for row in self.rows if row.is_new()][:MAX_DISPLAYED_ROWS]

    @property
    def rows_with_notes(self) -> list[ImportRowResult]:
        return [row for row in self.rows if row.notes]

    @property
    def is_shortened(self) -> bool:
        """Whether there are more rows than a preview displays."""
        if self.invalid_rows:
            return len(self.invalid_rows) < self.totals[RowResult.IMPORT_TYPE_INVALID]
        return len(self.valid_rows()) < len(self.rows)

    @property
    def summary(self) -> str:
        """1 new, 2 changed, 3 unchanged; errors only if there are any."""
        new, changed, _, unchanged, _, invalid = self.totals.values()
        text = f"{new:,} new, {changed:,} changed, {unchanged:,} unchanged"
        return f"{text}, {invalid:,} with errors" if invalid else text

    def describe_losses(self, singular: str) -> str:
        """How many values the file would clear: 3 rooms lose their rate."""
        counts = Counter(column.replace("_", " ") for row in self.rows for column in row.cleared)
        return "; ".join(
            f"{count:,} {singular}{'s lose their' if count > 1 else ' loses its'} {name}"
            for name, count in counts.items()
        )

    @property
    def digest(self) -> str:
        """The same for two imports that would write the same over the same rows."""
        rows = [(row.number, row.is_update() and row.instance.pk, row.changes) for row in self.rows]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
