"""Rows on their way out, as CSV or as a workbook: guarded, batch by batch."""

from collections.abc import Callable, Iterator
from typing import IO, Any

from django.db.models import QuerySet

from roombook.imports import files
from roombook.imports.batches import BATCH, batches
from roombook.imports.files import InvalidFile
from roombook.imports.sheet import SpreadsheetResource
from roombook.spreadsheets import escape_formula


class Export:
    """Some rows of a sheet, or all that may be taken out."""

    def __init__(
        self,
        sheet: SpreadsheetResource,
        rows: QuerySet[Any] | None = None,
        *,
        by: Any = None,
        tell: Callable[[int], None] = lambda count: None,
    ) -> None:
        """`by` is who exports, if it is somebody; `tell` is told how many rows are out."""
        self.sheet, self.by, self.tell = sheet, by, tell
        self.rows = sheet.exported() if rows is None else rows
        # How many are out.
        self.count = 0

    def csv(self) -> Iterator[str]:
        return files.csv_lines(self.sheet.columns(), map(self._line, self._instances()))

    def xlsx(self) -> IO[bytes]:
        if self.rows.order_by()[: files.MAX_ROWS + 1].count() > files.MAX_ROWS:
            raise InvalidFile(f"These are more than {files.MAX_ROWS:,} rows: export them as CSV.")
        cells = map(self._cells, self._instances())
        return files.workbook(self.sheet.name, self.sheet.columns(), cells)

    def _instances(self) -> Iterator[Any]:
        """Rows with all that their columns show."""
        for batch in batches(self.rows.iterator(chunk_size=BATCH)):
            self.sheet.attach(batch)
            if self.by is not None:
                self.sheet.looked_at(batch, self.by)
            yield from batch
            self.count += len(batch)
            self.tell(self.count)

    def _line(self, instance: Any) -> list[str]:
        line = []
        for column in self.sheet.in_order():
            text = self.sheet.told(column.column_name, instance)
            line.append(escape_formula(text) if column.widget.is_text else text)
        return line

    def _cells(self, instance: Any) -> list[files.Cell]:
        told = zip(self.sheet.in_order(), self._line(instance), strict=True)
        return [column.widget.cell(column.get_value(instance), text) for column, text in told]
