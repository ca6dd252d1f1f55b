"""The base class of resources: files of rows, imported all or nothing, and exported."""

import datetime as dt
import difflib
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import IO, Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, OperationalError, models
from django.http import HttpRequest
from import_export.fields import Field

from roombook.backoffice import audit_log
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.backoffice.spreadsheets import (
    CellValue,
    InvalidFile,
    Sheet,
    SheetColumn,
    iterate_csv,
    write_workbook,
)
from roombook.db.transactions import in_transaction, lock_by_name
from roombook.errors import DomainError
from roombook.imports import files
from roombook.imports.batches import BATCH_SIZE, batches
from roombook.imports.checking import CheckingResource, RowT
from roombook.imports.files import ImportTable
from roombook.imports.results import ImportRefused, ImportResult, ImportRowResult
from roombook.middleware import get_client_address

# How similar a known column must be to be suggested for an unknown one.
MIN_SIMILARITY = 0.8
# Starts the note in the audit log, before the name of the file.
IMPORT_NOTE = "Imported: "


class SpreadsheetResource(CheckingResource[RowT]):
    """Rows of one model that `user` may import and export; without a user, all."""

    can_import: bool
    can_export: bool
    # What a preview asks if the file changes a column: the column, the label, and the choices, of
    # which the first is the default. `answer` is the value of the choice.
    question: ClassVar[tuple[str, str, list[tuple[str, str]]] | None] = None
    answer = ""

    def __init__(self, user: AbstractBaseUser | AnonymousUser | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.user = user
        self.exported_count = 0

    # --- What subclasses say --------------------------------------------------------------------

    def prepare_save(self, instances: Sequence[RowT]) -> None:
        """Compute derived fields; the rows are locked."""

    def save_extra_attributes(self, rows: Sequence[ImportRowResult]) -> None:
        """Write what is not in the model's own table."""

    def after_save(self, rows: Sequence[ImportRowResult], request: HttpRequest) -> None:
        """After an import in the back office was committed."""

    def log_export(self, instances: Sequence[RowT]) -> None:
        """Record whose personal data is exported."""

    # --- Reading a file -------------------------------------------------------------------------

    @classmethod
    def get_columns(cls) -> list[str]:
        return list(cls._meta.fields)

    @classmethod
    def read_file(cls, content: bytes) -> ImportTable:
        """Raises InvalidFile."""
        columns = {name: cls.fields[name].widget.kind for name in cls.get_columns()}
        table = files.read_file(content, columns, cls.name)
        cls.check_header(table.headers, table.title)
        return table

    @classmethod
    def check_header(cls, header: Sequence[str], sheet_name: str) -> None:
        """Raises InvalidFile for columns that are unknown or missing."""
        others = [each for each in RESOURCES.values() if each.name != cls.name]
        if sheet_name in [each.name for each in others]:
            raise InvalidFile(
                f'The sheet is called "{sheet_name}": this page imports {cls.name};'
                f" {sheet_name} have a page of their own."
            )
        columns = cls.get_columns()
        unknown = [name for name in header if name not in columns]
        if unknown:
            text = f"Unknown columns: {', '.join(map(cls._describe_unknown, unknown))}."
            matching = [each for each in others if set(header) <= set(each.get_columns())]
            if matching:
                text += f" They are those of {matching[0].name}, which have a page of their own."
            raise InvalidFile(f"{text} There are: {', '.join(columns)}.")
        missing = [
            " or ".join(f'"{name}"' for name in group)
            for group in cls.required_columns
            if "id" not in header and not set(group) & set(header)
        ]
        if missing:
            raise InvalidFile(f"Missing columns: {', '.join(missing)}.")

    @classmethod
    def _describe_unknown(cls, name: str) -> str:
        similar = difflib.get_close_matches(name, cls.get_columns(), 1, MIN_SIMILARITY)
        return f'"{name[:50]}"' + (f' (is it "{similar[0]}"?)' if similar else "")

    # --- Import ---------------------------------------------------------------------------------

    def import_data(
        self,
        dataset: ImportTable,
        dry_run: bool = False,
        *,
        digest: str | None = None,
        may_clear: bool = True,
        answer: str = "",
        file_name: str = "",
        now: dt.datetime | None = None,
        request: HttpRequest | None = None,
        **kwargs: object,
    ) -> ImportResult:
        """Check a file and, unless `dry_run`, write it, all rows or none. Raises ImportRefused.

        `digest` is that of the preview that was confirmed, if there was one. `may_clear` tells
        whether empty cells may clear values.
        """
        self.answer = answer
        result = self.check(dataset)
        if not dry_run:
            if digest not in (None, result.digest):
                why = "Something changed since the preview: this is what the file would do now."
                raise ImportRefused(why, result)
            if not may_clear and any(row.cleared for row in result.rows):
                raise ImportRefused("Confirm below that these values are to be cleared.", result)
            self.save(result, file_name=file_name, now=now, request=request)
        return result

    def save(
        self,
        result: ImportResult,
        *,
        file_name: str,
        now: dt.datetime | None,
        request: HttpRequest | None = None,
    ) -> None:
        """Write what was checked, all of it or nothing. Raises ImportRefused."""
        if result.has_validation_errors():
            raise ImportRefused("Rows with errors cannot be imported.", result)
        author = {
            "by": self.user,
            "network_address": get_client_address(request) or None if request else None,
            "timestamp": now,
        }
        try:
            self._save(result, file_name, author)
        except DomainError as error:
            raise ImportRefused(error.message, result) from error
        except IntegrityError as error:
            why = "The database changed in the meantime, and refused a row: check the file again."
            raise ImportRefused(why, result) from error
        except OperationalError as error:
            why = "Some of these rows are in use right now: try again in a minute."
            raise ImportRefused(why, result) from error
        if request is not None:
            self.after_save(result.rows, request)

    @in_transaction
    def _save(self, result: ImportResult, file_name: str, author: dict[str, Any]) -> None:
        new = [row for row in result.rows if row.is_new()]
        changed = [row for row in result.rows if row.is_update()]
        objects = self._meta.model._base_manager
        # One import of a kind at a time: the second sees what the first one added.
        lock_by_name(f"import {self.name}")
        self._lock_unchanged(changed, result)
        self._ensure_still_new(new, result)
        for batch in batches(new):
            instances = [row.instance for row in batch]
            for instance in instances:
                # An attempt before this one may have been rolled back.
                instance.pk, instance._state.adding = None, True
            self.prepare_save(instances)
            objects.bulk_create(instances)
        fields = self._get_written_fields(changed)
        for batch in batches(changed):
            instances = [row.instance for row in batch]
            self.prepare_save(instances)
            if fields:
                # The rows exist and are locked, so that this only updates. `bulk_update` writes a
                # CASE for each value of each row, which is many times slower.
                objects.bulk_create(
                    instances, update_conflicts=True, unique_fields=["pk"], update_fields=fields
                )
        for batch in batches([*new, *changed]):
            self.save_extra_attributes(batch)
            AuditEntry.objects.bulk_create(
                audit_log.build_entry(
                    row.instance,
                    AuditAction.CREATE if row.is_new() else AuditAction.UPDATE,
                    changes=self._get_audit_changes(row),
                    note=f"{IMPORT_NOTE}{file_name}, row {row.number}.",
                    **author,
                )
                for row in batch
            )

    def _lock_unchanged(self, changed: Sequence[ImportRowResult], result: ImportResult) -> None:
        """Lock the rows, in the order of their ids, and refuse if they are not as checked."""
        # Not their keys (no_key): rows that refer to them can still be written.
        rows = self._meta.model._base_manager.select_for_update(no_key=True).order_by("pk")
        for batch in batches(sorted(changed, key=lambda row: row.instance.pk)):
            locked = rows.in_bulk([row.instance.pk for row in batch])
            self.load_extra_attributes(list(locked.values()))
            for row in batch:
                stored = locked.get(row.instance.pk)
                if stored is None or self.get_stored_values(stored) != row.before:
                    self._refuse_row(row, "changed", result)

    def _ensure_still_new(self, new: Sequence[ImportRowResult], result: ImportResult) -> None:
        """Refuse to add what somebody added meanwhile; the database does not enforce every key."""
        row_by_key = {self.get_instance_key(row.instance): row for row in new}
        for key, pk in self.iterate_stored_keys(row_by_key) if row_by_key else ():
            if key in row_by_key and pk not in self.ids_by_key.get(key, ()):
                self._refuse_row(row_by_key[key], "added", result)

    def _refuse_row(self, row: ImportRowResult, verb: str, result: ImportResult) -> None:
        raise ImportRefused(
            f"Row {row.number} ({row.object_repr}) was {verb} by somebody in the meantime:"
            " check the file again.",
            result,
        )

    def _get_written_fields(self, changed: Sequence[ImportRowResult]) -> list[str]:
        attributes = {self.fields[name].attribute for row in changed for name in row.changes}
        fields = attributes & self.model_fields.keys()
        return sorted(fields | set(self.derived_fields)) if fields else []

    def _get_audit_changes(self, row: ImportRowResult) -> dict[str, list[str]]:
        """From what to what, by the model's fields, as the audit log writes other changes."""
        changes = {}
        for column, (before, after) in row.changes.items():
            field = self.model_fields.get(self.fields[column].attribute)
            if field is None:
                changes[column] = [before or "None", after or "None"]
            else:
                values = row.before.get(field.attname), getattr(row.instance, field.attname)
                changes[field.name] = [str(value) for value in values]
        return changes

    # --- Export ---------------------------------------------------------------------------------

    def export_csv(self, queryset: models.QuerySet[RowT] | None = None) -> Iterator[str]:
        """The rows that the user may export, or those of them in `queryset`, as lines of CSV."""
        rows = map(self.export_resource, self.iter_queryset(self.filter_export(queryset)))
        return iterate_csv(self.get_columns(), rows)

    def export_workbook(self, queryset: models.QuerySet[RowT] | None = None) -> IO[bytes]:
        """The same as a workbook. Raises InvalidFile if it cannot hold them."""
        queryset = self.filter_export(queryset)
        if queryset.order_by()[: files.MAX_ROWS + 1].count() > files.MAX_ROWS:
            raise InvalidFile(f"There are more than {files.MAX_ROWS:,} rows: export them as CSV.")
        rows = map(self.export_resource, self.iter_queryset(queryset))
        columns = [SheetColumn(name, max(10, len(name) + 3)) for name in self.get_columns()]
        return write_workbook([Sheet(self.name, columns, rows)])

    def get_export_fields(self, selected_fields: object = None) -> list[Field]:
        return [self.fields[name] for name in self.get_columns()]

    def iter_queryset(self, queryset: models.QuerySet[RowT]) -> Iterator[RowT]:
        """The rows with their extra attributes, a batch at a time."""
        for batch in batches(queryset.iterator(chunk_size=BATCH_SIZE)):
            self.load_extra_attributes(batch)
            if self.user is not None:
                self.log_export(batch)
            for instance in batch:
                self.exported_count += 1
                self.report_progress(self.exported_count)
                yield instance

    def export_field(self, field: Field, instance: RowT, **kwargs: object) -> CellValue:
        text = self.render(field.column_name, instance)
        value = field.get_value(instance)
        if isinstance(value, Decimal | float):
            # With all its places.
            return Decimal(text)
        # Times stay text: those of a workbook have no time zone.
        is_native = isinstance(value, bool | int) or type(value) is dt.date
        return value if is_native else text


# Every resource, by its name; apps register theirs when they are ready.
RESOURCES: dict[str, type[SpreadsheetResource[Any]]] = {}


def register(*resources: type[SpreadsheetResource[Any]]) -> None:
    RESOURCES.update({resource.name: resource for resource in resources})
