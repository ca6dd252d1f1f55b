"""The base class of tables that django-import-export imports, all rows or none, and exports."""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from decimal import Decimal
from typing import Any, ClassVar, Generic, TypeVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, OperationalError
from django.db.models import Model, QuerySet
from import_export.fields import Field
from import_export.resources import ModelResource

from roombook.backoffice import audit_log
from roombook.backoffice.spreadsheets import CellValue, InvalidFile, SheetColumn
from roombook.db.transactions import in_transaction, lock_by_name
from roombook.ids import parse_id
from roombook.imports import files, widgets
from roombook.imports.files import ImportTable
from roombook.imports.results import ImportRefused, ImportResult, ImportRowResult

# Starts the note in the audit log, before the name of the file.
IMPORT_NOTE = "Imported: "
# What should be checked is looked up for so many rows of a file.
MAX_ROWS_WITH_NOTES = 50

RowT = TypeVar("RowT", bound=Model)
# A row of a file: column -> text.
Cells = Mapping[str, str]
Errors = dict[str, Any]


class SpreadsheetResource(ModelResource, Generic[RowT]):
    """A table of rows of one model. Without a user, there are no limits.

    A preview is the library's dry run: all is written, and rolled back.
    """

    # What files, commands and the audit log call the table, and what a row is called.
    name: ClassVar[str]
    singular: ClassVar[str]
    # The columns by which a row without an id is found, and those that it must have, if not all.
    key: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, ...]] = ()
    # Cells of the row of a template; others have their default. The templates fit together: they
    # can be imported one after the other.
    example: ClassVar[Mapping[str, CellValue]]
    more_examples: ClassVar[Sequence[Mapping[str, CellValue]]] = ()
    can_import: bool
    can_export: bool

    class Meta:
        use_transactions = True
        report_skipped = False
        # The library would copy each row with all that it refers to.
        skip_diff = True
        store_instance = True
        store_row_values = True

    def __init__(self, user: AbstractBaseUser | AnonymousUser | None = None) -> None:
        super().__init__()
        self.user = user
        self.header = list(self._meta.fields)
        self.model_fields = {each.name: each for each in self._meta.model._meta.concrete_fields}
        self.columns = {field.attribute: name for name, field in self.fields.items()}
        # The foreign keys that a row displays.
        self.related = {
            attribute.rpartition("__")[0] or attribute
            for attribute in self.columns
            if getattr(self.model_fields.get(attribute.partition("__")[0]), "is_relation", False)
        }

    @classmethod
    def field_from_django_field(cls, field_name: str, django_field: Any, readonly: bool) -> Field:
        """Unlike in the library, an empty cell is not the model's default."""
        widget = widgets.build_widget(django_field)
        if django_field.primary_key:
            widget.help_text = "its number; empty for a new one"
        # A row that was found by its key keeps its id, whatever the cell says.
        return Field(field_name, field_name, widget, readonly=django_field.primary_key)

    # --- What subclasses say --------------------------------------------------------------------

    def prepare_row(self, row: Cells) -> None:
        """Find what a row belongs to. Raises ValidationError."""

    def get_scope(self, instance: RowT) -> dict[str, Any]:
        """The lookups that match every row that may have the key of this one."""
        return {}

    def get_key(self, instance: RowT) -> Hashable:
        return tuple(self.get_scope(instance).items())

    def can_add(self, instance: RowT) -> bool:
        """Whether the user may add this row."""
        return True

    def get_errors(self, instance: RowT, original: RowT | None) -> dict[str, str]:
        """What is wrong beyond the model's own rules, by attribute."""
        return {}

    def get_notes(self, instance: RowT) -> Iterator[tuple[str, str]]:
        """What somebody should check about a row that is not saved yet, by column."""
        return iter(())

    def may_look_up(self) -> bool:
        """Whether to run queries for the notes about another row."""
        self.lookups += 1
        return self.lookups <= MAX_ROWS_WITH_NOTES

    def get_title(self, instance: RowT) -> str:
        """What a preview calls the row."""
        return str(instance)

    # --- Reading a file -------------------------------------------------------------------------

    @classmethod
    def read_file(cls, content: bytes) -> ImportTable:
        """Raises InvalidFile."""
        columns = {name: cls.fields[name].widget.kind for name in cls._meta.fields}
        table = files.read_file(content, columns, cls.name)
        missing = [
            f'"{name}"'
            for name in cls.required or cls.key
            if not {"id", name, f"{name}_id"} & {*table.headers}
        ]
        if missing:
            raise InvalidFile(f"Missing columns: {', '.join(missing)}.")
        return table

    # --- Import ---------------------------------------------------------------------------------

    def import_data(
        self, dataset: ImportTable, dry_run: bool = False, **confirmed: Any
    ) -> ImportResult:
        """Import a file, all rows or none; see `_import`. Raises ImportRefused.

        If rows are wrong, the result says so and nothing was written.
        """
        try:
            result: ImportResult = self._import(dataset, dry_run, **confirmed)
        except OperationalError as error:
            why = "Some of these rows are in use right now: try again in a minute."
            raise ImportRefused(why) from error
        except IntegrityError as error:
            why = "The database refused a row, which may be there twice: check the file."
            raise ImportRefused(why) from error
        return result

    @in_transaction
    def _import(
        self,
        dataset: ImportTable,
        dry_run: bool,
        *,
        digest: str | None = None,
        may_clear: bool = True,
        file_name: str = "",
        **kwargs: object,
    ) -> ImportResult:
        """`digest` is that of the confirmed preview, if there was one."""
        self.header, self.row_numbers = dataset.headers, dataset.row_numbers
        self.file_name, self.lookups, self.is_locking = file_name, 0, not dry_run
        # Where in the file a row was first, by its id or its key.
        self.first_numbers: dict[Hashable, int] = {}
        self.groups: dict[Hashable, dict[Hashable, list[Any]]] = {}
        if not dry_run:
            # One import of a kind at a time: the second sees what the first one added.
            lock_by_name(f"import {self.name}")
        result: ImportResult = super().import_data(
            dataset, dry_run, rollback_on_validation_errors=True
        )
        if dry_run or result.has_validation_errors():
            return result
        if digest not in (None, result.digest):
            raise ImportRefused("Something changed since the preview: upload the file again.")
        if not may_clear and any(row.cleared for row in result.rows):
            raise ImportRefused("Confirm that values are to be cleared: upload the file again.")
        return result

    def group(
        self, rows: QuerySet[Any], get_key: Callable[[Any], Hashable], **where: Any
    ) -> dict[Hashable, list[Any]]:
        """The rows that cells may name, by that name. They are read once an import."""
        place = rows.model, get_key, *where.items()
        if place not in self.groups:
            self.groups[place] = defaultdict(list)
            for each in rows.filter(**where):
                self.groups[place][get_key(each)].append(each)
        return self.groups[place]

    # --- The library's hooks, in the order in which it calls them --------------------------------

    @classmethod
    def get_result_class(cls) -> type[ImportResult]:
        return ImportResult

    @classmethod
    def get_row_result_class(cls) -> type[ImportRowResult]:
        return ImportRowResult

    def get_import_fields(self) -> list[Field]:
        return [self.fields[name] for name in self.header]

    def import_row(
        self, row: Cells, instance_loader: object, *, row_number: int, **kwargs: object
    ) -> ImportRowResult:
        self.number = self.row_numbers[row_number - 1]
        note = f"{IMPORT_NOTE}{self.file_name}, row {self.number}."
        with audit_log.recording(actor=self.user, note=note):
            result: ImportRowResult = super().import_row(
                row, instance_loader, row_number=row_number, **kwargs
            )
        for each in result.errors:
            self.handle_import_error(result, each.error)
        return result

    def handle_import_error(
        self, result: object, error: Exception, raise_errors: object = None
    ) -> None:
        """Not an error in the file, but a bug, or a row that somebody else writes right now."""
        raise error

    def get_instance(self, instance_loader: object, row: Cells) -> RowT | None:
        """A row that is not found has its cells checked nevertheless."""
        self.lookup_error: ValidationError | None = None
        try:
            self.prepare_row(row)
            return self._find(row)
        except ValidationError as error:
            self.lookup_error = error
            return None

    def _find(self, row: Cells) -> RowT | None:
        """Find the stored row by its id, or by its key, however that is typed.

        The library's loaders take texts of one spelling. Raises ValidationError if the row may not
        be changed, or could be several.
        """
        text, key, found = row.get("id", ""), None, []
        pk = parse_id(text)
        if not text and (probe := self._read_key(row)):
            key = self.get_key(probe)
            found = self.group(self.get_queryset(), self.get_key, **self.get_scope(probe))[key]
            pk = found[0].pk if found else None
        if len(found) > 1:
            ids = ", ".join(str(each.pk) for each in found[:5])
            why = f"There are several {self.name} of that name: give the id ({ids})."
            raise ValidationError(why)
        rows = self.get_queryset()
        if self.is_locking:
            # Not in a preview, which customers who book a room would wait for. Its key is not
            # locked (no_key): rows that refer to it can be written meanwhile.
            rows = rows.select_for_update(no_key=True, of=("self",))
        instance = None if pk is None else rows.filter(pk=pk).first()
        if text and instance is None:
            why = f"There is no {self.singular} {text[:20]} that you may change."
            raise ValidationError({"id": why})
        self._require_first(pk or key)
        return instance

    def _require_first(self, key: Hashable) -> None:
        """Raise ValidationError if a row before it has the same key."""
        first = self.first_numbers.setdefault(key, self.number)
        if first != self.number and key is not None:
            raise ValidationError(f"Row {first} is the same {self.singular}.")

    def _read_key(self, row: Cells) -> RowT | None:
        """A row with the key of a row of the file; None if it cannot be read."""
        probe: RowT = self.init_instance(row)
        try:
            for column in {*self.key} & row.keys():
                self.import_field(self.fields[column], probe, row, record=probe, resource=self)
        except ValueError:
            return None
        return probe

    def after_init_instance(self, instance: RowT, new: bool, row: Cells, **kwargs: object) -> None:
        self.original = None if new else copy(instance)
        self.texts = [""] * len(self.header) if new else self._get_texts(instance)

    def _get_texts(self, instance: RowT) -> list[str]:
        return [field.export(instance) for field in self.get_import_fields()]

    def import_instance(self, instance: RowT, row: Cells, **kwargs: object) -> None:
        super().import_instance(instance, row, record=instance, resource=self)

    def skip_row(
        self,
        instance: RowT,
        original: RowT,
        row: Cells,
        import_validation_errors: Errors | None = None,
    ) -> bool:
        """Compare texts, because a file may have fewer digits than the database."""
        pairs = zip(self.header, self.texts, self._get_texts(instance), strict=True)
        # Column -> its text now, and its text after the import.
        self.changes = {name: (before, after) for name, before, after in pairs if before != after}
        is_wrong = import_validation_errors or self.get_errors(instance, self.original)
        return not (is_wrong or self.changes or self.original is None)

    def validate_instance(
        self,
        instance: RowT,
        import_validation_errors: Errors | None = None,
        validate_unique: bool = True,
    ) -> None:
        """Report what is wrong by column, with what could not be found."""
        if instance.pk is None and not self.lookup_error and not self.can_add(instance):
            raise ValidationError(f"You may not add {self.name} there.")
        errors = dict(import_validation_errors or {})
        try:
            if self.lookup_error:
                raise self.lookup_error
            # What a foreign key refers to was read from the database, or found by its name.
            found_rows = {
                name
                for name, each in self.model_fields.items()
                if each.is_relation and getattr(instance, each.attname) is not None
            }
            instance.clean_fields(errors.keys() | found_rows)
            if not errors:
                # These rules are about all values.
                instance.clean()
                # No stored row has the key of a new one, by which it was looked up. A name is
                # compared with all others of its center, which takes long for many rows.
                is_renamed = self.original and self.get_key(self.original) != self.get_key(instance)
                if is_renamed:
                    self._require_first(self.get_key(instance))
                instance.validate_unique(None if is_renamed else {"name"})
                instance.validate_constraints()
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        for name, why in self.get_errors(instance, self.original).items():
            errors.setdefault(name, [ValidationError(why)])
        if errors:
            found = {self.columns.get(name, name): each for name, each in errors.items()}
            order = [NON_FIELD_ERRORS, *self._meta.fields, *found]
            raise ValidationError({name: found[name] for name in sorted(found, key=order.index)})

    def before_save_instance(self, instance: RowT, row: Cells, **kwargs: object) -> None:
        self.notes = list(self.get_notes(instance))

    def do_instance_save(self, instance: RowT, is_create: bool) -> None:
        """Write only what differs: the service counts in other columns meanwhile."""
        if is_create:
            instance.save(force_insert=True)
            return
        fields = self.model_fields.values()
        instance.save(
            update_fields=[
                each.name
                for each in fields
                if getattr(instance, each.attname) != getattr(self.original, each.attname)
            ]
        )

    def after_import_row(self, row: Cells, row_result: ImportRowResult, **kwargs: object) -> None:
        if row_result.is_skip():
            return
        row_result.number, row_result.original = self.number, self.original
        row_result.describe(self.header, self.changes, row, self.get_title(row_result.instance))
        row_result.notes = self.notes

    def after_import(self, dataset: ImportTable, result: ImportResult, **kwargs: object) -> None:
        """No ids are imported, so that the sequence is right already."""
        for invalid in result.invalid_rows:
            invalid.number = self.row_numbers[invalid.number - 1]
        if not result.invalid_rows:
            result.diff_headers = ["row", "which", *self.header]

    # --- Export ---------------------------------------------------------------------------------

    def get_example_rows(self) -> Iterator[list[CellValue]]:
        empty = self._meta.model()
        defaults = {name: self.export_field(self.fields[name], empty) for name in self._meta.fields}
        for example in (self.example, *self.more_examples):
            yield [*{**defaults, **example}.values()]

    @classmethod
    def get_sheet_columns(cls) -> list[SheetColumn]:
        return [SheetColumn(name, max(10, len(name) + 3)) for name in cls._meta.fields]

    def export_field(self, field: Field, instance: RowT, **kwargs: object) -> CellValue:
        text: str = field.export(instance)
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
