"""What an import would do to each row of a file."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.utils.html import format_html
from import_export.results import Result, RowResult

# So many rows of a kind are displayed, and so much of a cell; all rows are counted.
MAX_DISPLAYED_ROWS = 300
MAX_DISPLAYED_CHARACTERS = 200


class ImportRowResult(RowResult):
    """What would become of one row of the file."""

    def __init__(self) -> None:
        super().__init__()
        # As spreadsheets number them: the header is row 1.
        self.number = 0
        # The columns of the stored row as they were read; empty if the row is new.
        self.before: dict[str, Any] = {}
        # Column -> its text now, and its text after the import.
        self.changes: dict[str, tuple[str, str]] = {}
        # The columns of values that empty cells would clear.
        self.cleared: list[str] = []
        # A column, and what should be checked about it.
        self.notes: list[tuple[str, str]] = []

    def render_diff(self, columns: Iterable[str]) -> list[str]:
        """The cells of a preview; those that stay as they are are empty."""
        cells = [str(self.number), str(self.object_repr)]
        for column in columns:
            texts = self.changes.get(column, ("", ""))
            before, after = (text[:MAX_DISPLAYED_CHARACTERS] for text in texts)
            html = "<del>{}</del> <ins>{}</ins>"
            cells.append(format_html(html, before, after) if before else after)
        return cells


class ImportResult(Result):
    """What would become of a file. `rows` has the new and changed rows only."""

    rows: list[ImportRowResult]

    def append_row_result(self, row_result: ImportRowResult) -> None:
        if row_result.is_new() or row_result.is_update():
            self.rows.append(row_result)

    def append_invalid_row(self, number: int, row: object, validation_error: Exception) -> None:
        if len(self.invalid_rows) < MAX_DISPLAYED_ROWS:
            super().append_invalid_row(number, row, validation_error)

    def valid_rows(self) -> list[ImportRowResult]:
        """The rows that a preview displays."""
        changed = [row for row in self.rows if row.is_update()][:MAX_DISPLAYED_ROWS]
        return changed + [row for row in self.rows if row.is_new()][:MAX_DISPLAYED_ROWS]

    @property
    def rows_with_notes(self) -> list[ImportRowResult]:
        return [row for row in self.rows if row.notes][:MAX_DISPLAYED_ROWS]

    @property
    def is_shortened(self) -> bool:
        """Whether there are more rows than a preview displays."""
        displayed = len(self.valid_rows()) + len(self.invalid_rows)
        return displayed < len(self.rows) + self.totals[RowResult.IMPORT_TYPE_INVALID]

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
        """The same for two checks that would write the same over the same rows."""
        digest = hashlib.sha256()
        for row in self.rows:
            written = [row.number, row.import_type, row.instance.pk, row.changes]
            digest.update(json.dumps(written).encode())
        return digest.hexdigest()


class ImportRefused(Exception):
    """Nothing was written; the message says why. `result` is what the file would do now."""

    def __init__(self, message: str, result: ImportResult) -> None:
        super().__init__(message)
        self.result = result
