"""The base class of tables that django-import-export imports, all rows or none, and exports."""

import datetime as dt
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from decimal import Decimal
from typing import Any, ClassVar, Generic, TypeVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, OperationalError
from django.db.models import CheckConstraint, Model, Q, QuerySet
from django.http import HttpRequest
from import_export.fields import Field
from import_export.instance_loaders import BaseInstanceLoader
from import_export.resources import ModelResource

from roombook.backoffice import audit_log
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.backoffice.spreadsheets import CellValue, InvalidFile, SheetColumn
from roombook.db.transactions import in_transaction, lock_by_name
from roombook.errors import DomainError
from roombook.ids import is_id
from roombook.imports import files, widgets
from roombook.imports.files import ImportTable
from roombook.imports.results import ImportRefused, ImportResult, ImportRowResult
from roombook.middleware import get_client_address

# Starts the note in the audit log, before the name of the file.
IMPORT_NOTE = "Imported: "
BATCH_SIZE = 500
# What should be checked is looked up for so many rows of a file.
MAX_ROWS_WITH_NOTES = 50

RowT = TypeVar("RowT", bound=Model)
# A row of a file: column -> text.
Cells = Mapping[str, str]
Errors = dict[str, Any]


class KeyInstanceLoader(BaseInstanceLoader):
    """Reads all rows that a file mentions at once, by id or by key.

    The library's CachedInstanceLoader knows keys of one column only.
    """

    def __init__(self, resource: "SpreadsheetResource[Any]", dataset: ImportTable) -> None:
        super().__init__(resource, dataset)
        rows = dataset.dict
        ids = {int(text) for row in rows if is_id(text := row.get("id", ""))}
        stored = resource.get_queryset().filter(pk__in=ids)
        resource.load_references(rows, stored)
        found = resource.get_queryset().filter(Q(pk__in=ids) | resource.get_candidates(rows))
        if resource.is_locking:
            # Their keys are not locked (no_key): rows that refer to them can be written meanwhile.
            found = found.order_by("pk").select_for_update(no_key=True, of=("self",))
        self.instances = {instance.pk: instance for instance in found}
        self.by_key: dict[Hashable, list[Model]] = defaultdict(list)
        for instance in self.instances.values():
            self.by_key[resource.get_key(instance)].append(instance)
        # Where in the file a row was first.
        self.numbers: dict[Hashable, int] = {}

    def get_instance(self, row: Cells) -> Model | None:
        """Raises ValidationError if the row may not be changed, or could be several."""
        singular = self.resource.singular
        instance, key = None, None
        if text := row.get("id", ""):
            instance = self.instances.get(int(text)) if is_id(text) else None
            if instance is None:
                why = f"There is no {singular} {text[:20]} that you may change."
                raise ValidationError({"id": why})
        elif key := self.resource.get_row_key(row):
            found = self.by_key.get(key, [])
            if len(found) > 1:
                ids = ", ".join(str(each.pk) for each in found[:5])
                raise ValidationError(
                    f"There are several {self.resource.name} of that name: give the id ({ids})."
                )
            instance = found[0] if found else None
        key = instance.pk if instance else key
        first = self.numbers.setdefault(key, self.resource.number)
        if key is not None and first != self.resource.number:
            raise ValidationError(f"Row {first} is the same {singular}.")
        return instance


class SpreadsheetResource(ModelResource, Generic[RowT]):
    """A table of rows of one model. Without a user, there are no limits.

    A preview is the library's dry run: all is written, and rolled back.
    """

    # What files, commands and the audit log call the table, and what a row is called.
    name: ClassVar[str]
    singular: ClassVar[str]
    # The columns by which a row without an id is found.
    key: ClassVar[tuple[str, ...]]
    # A file without ids must have one column of each group.
    required_columns: ClassVar[tuple[tuple[str, ...], ...]]
    # Foreign keys that a row displays.
    related: ClassVar[tuple[str, ...]] = ()
    # The row of a template, by attribute; others have their default. Their references fit together:
    # the templates can be imported one after the other.
    example: ClassVar[Mapping[str, Any]]
    more_examples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    # Fields that are computed when a row is saved.
    derived_fields: ClassVar[tuple[str, ...]] = ()
    can_import: bool
    can_export: bool

    WIDGETS_MAP: ClassVar = {
        "AutoField": widgets.IntegerWidget,
        "BooleanField": widgets.BooleanWidget,
        "DateField": widgets.DateWidget,
        "DateTimeField": widgets.DateTimeWidget,
        "DecimalField": widgets.DecimalWidget,
        "FloatField": widgets.FloatWidget,
        "IntegerField": widgets.IntegerWidget,
    }

    class Meta:
        instance_loader_class = KeyInstanceLoader
        use_bulk = True
        use_transactions = True
        report_skipped = False
        # The library would copy each row with all that it refers to.
        skip_diff = True
        store_instance = True
        store_row_values = True
        clean_model_instances = True

    def __init__(self, user: AbstractBaseUser | AnonymousUser | None = None) -> None:
        super().__init__()
        self.user = user
        self.header = list(self._meta.fields)
        self.model_fields = {each.name: each for each in self._meta.model._meta.concrete_fields}
        self.columns = {field.attribute: name for name, field in self.fields.items()}

    @classmethod
    def field_from_django_field(cls, field_name: str, django_field: Any, readonly: bool) -> Field:
        """Unlike in the library, an empty cell is not the model's default."""
        widget = cls.widget_from_django_field(django_field, widgets.TextWidget)(django_field)
        if django_field.primary_key:
            widget.help_text = "its number; empty for a new one"
        # A row that was found by its key keeps its id, whatever the cell says.
        return Field(field_name, field_name, widget, readonly=django_field.primary_key)

    # --- What subclasses say --------------------------------------------------------------------

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[RowT]) -> None:
        """Read what the rows name: centers, rates, types. `stored` are the rows found by id."""

    def get_candidates(self, rows: Sequence[Cells]) -> Q:
        """Match all stored rows whose keys the file may have."""
        raise NotImplementedError

    def get_key(self, instance: RowT) -> Hashable:
        raise NotImplementedError

    def prepare_row(self, row: Cells) -> None:
        """Find what a row belongs to. Raises ValidationError."""

    def can_add(self, instance: RowT) -> bool:
        """Whether the user may add this row."""
        return True

    def get_errors(self, instance: RowT, original: RowT | None) -> dict[str, str]:
        """What is wrong beyond the model's own rules, by attribute."""
        return {}

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        """What somebody should check about a row, by column."""
        return iter(())

    def may_look_up(self) -> bool:
        """Whether to run queries for the notes about another row."""
        self.lookups += 1
        return self.lookups <= MAX_ROWS_WITH_NOTES

    def get_title(self, instance: RowT) -> str:
        """What a preview calls the row."""
        return str(instance)

    def save_related(self, rows: Sequence[ImportRowResult]) -> None:
        """Write what is not in the model's own table."""

    def after_save(self, rows: Sequence[ImportRowResult], request: HttpRequest) -> None:
        """After an import in the back office was committed."""

    # --- Reading a file -------------------------------------------------------------------------

    @classmethod
    def read_file(cls, content: bytes) -> ImportTable:
        """Raises InvalidFile."""
        columns = {name: cls.fields[name].widget.kind for name in cls._meta.fields}
        table = files.read_file(content, columns, cls.name)
        others = {each.name for each in RESOURCES.values() if each.name != cls.name}
        if table.title in others:
            raise InvalidFile(f'The sheet is called "{table.title}": this page imports {cls.name}.')
        if unknown := [name for name in table.headers if name not in columns]:
            names = ", ".join(f'"{name[:50]}"' for name in unknown)
            raise InvalidFile(f"Unknown columns: {names}. There are: {', '.join(columns)}.")
        missing = [
            " or ".join(f'"{name}"' for name in group)
            for group in cls.required_columns
            if "id" not in table.headers and not {*group} & {*table.headers}
        ]
        if missing:
            raise InvalidFile(f"Missing columns: {', '.join(missing)}.")
        return table

    # --- Import ---------------------------------------------------------------------------------

    def import_data(
        self,
        dataset: ImportTable,
        dry_run: bool = False,
        *,
        request: HttpRequest | None = None,
        **confirmed: Any,
    ) -> ImportResult:
        """Import a file, all rows or none; see `_import`. Raises ImportRefused.

        If rows are wrong, the result says so and nothing was written.
        """
        try:
            result: ImportResult = self._import(dataset, dry_run, request=request, **confirmed)
        except DomainError as error:
            raise ImportRefused(error.message) from error
        except OperationalError as error:
            why = "Some of these rows are in use right now: try again in a minute."
            raise ImportRefused(why) from error
        except IntegrityError as error:
            why = "The database refused a row, which may be there twice: check the file."
            raise ImportRefused(why) from error
        if request is not None and not dry_run and not result.has_validation_errors():
            self.after_save(result.rows, request)
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
        now: dt.datetime | None = None,
        request: HttpRequest | None = None,
        **kwargs: object,
    ) -> ImportResult:
        """`digest` is that of the confirmed preview, if there was one."""
        self.header, self.row_numbers = dataset.headers, dataset.row_numbers
        self.lookups, self.is_locking = 0, not dry_run
        if not dry_run:
            # One import of a kind at a time: the second sees what the first one added.
            lock_by_name(f"import {self.name}")
        result: ImportResult = super().import_data(
            dataset, dry_run, rollback_on_validation_errors=True
        )
        if result.error_rows:
            # Not an error in the file, but a bug.
            raise result.error_rows[0].errors[0].error
        if result.base_errors:
            self._find_refused_rows(result, result.base_errors[0].error)
        if dry_run or result.has_validation_errors():
            return result
        if digest not in (None, result.digest):
            raise ImportRefused("Something changed since the preview: upload the file again.")
        if not may_clear and any(row.cleared for row in result.rows):
            raise ImportRefused("Confirm that values are to be cleared: upload the file again.")
        self.save_related(result.rows)
        address = get_client_address(request) or None if request else None
        AuditEntry.objects.bulk_create(
            (
                audit_log.build_entry(
                    row.instance,
                    AuditAction.CREATE if row.is_new() else AuditAction.UPDATE,
                    changes=self._get_audit_changes(row),
                    note=f"{IMPORT_NOTE}{file_name}, row {row.number}.",
                    by=self.user,
                    network_address=address,
                    timestamp=now,
                )
                for row in result.rows
            ),
            batch_size=BATCH_SIZE,
        )
        return result

    def _find_refused_rows(self, result: ImportResult, error: Exception) -> None:
        """Name the rows that a constraint of the database refuses."""
        model = self._meta.model
        broken = [each for each in model._meta.constraints if each.name in str(error)]
        for row, constraint in ((row, each) for row in result.rows for each in broken):
            try:
                constraint.validate(model, row.instance)
            except ValidationError as refused:
                names = [self.columns.get(name, name) for name in get_constraint_fields(constraint)]
                column = next((name for name in names if row.row_values.get(name)), None)
                column = column or next((each for each in names if each in self.header), "")
                self.refuse_row(result, row, column or NON_FIELD_ERRORS, refused.messages)
        if not result.invalid_rows:
            raise error

    def refuse_row(
        self, result: ImportResult, row: ImportRowResult, column: str, messages: list[str]
    ) -> None:
        """Count a row that was written already as a wrong one, so that nothing is imported."""
        result.append_invalid_row(row.number, row.row_values, ValidationError({column: messages}))
        result.totals[row.import_type] -= 1
        result.totals[row.IMPORT_TYPE_INVALID] += 1

    def _get_audit_changes(self, row: ImportRowResult) -> dict[str, list[str]]:
        """From what to what, by the model's fields, as the audit log writes other changes."""
        changes = {}
        for column, (before, after) in row.changes.items():
            if field := self.model_fields.get(self.fields[column].attribute):
                values = (
                    getattr(row.original, field.attname, None),
                    getattr(row.instance, field.attname),
                )
                changes[field.name] = [str(value) for value in values]
            else:
                changes[column] = [before or "None", after or "None"]
        return changes

    # --- The library's hooks, in the order in which it calls them --------------------------------

    @classmethod
    def get_result_class(cls) -> type[ImportResult]:
        return ImportResult

    @classmethod
    def get_row_result_class(cls) -> type[ImportRowResult]:
        return ImportRowResult

    def get_import_fields(self) -> list[Field]:
        return [self.fields[name] for name in self.header]

    def before_import_row(self, row: Cells, *, row_number: int, **kwargs: object) -> None:
        self.number = self.row_numbers[row_number - 1]

    def get_instance(self, instance_loader: KeyInstanceLoader, row: Cells) -> Model | None:
        """A row that is not found has its cells checked nevertheless."""
        self.lookup_error: ValidationError | None = None
        try:
            self.prepare_row(row)
            return instance_loader.get_instance(row)
        except ValidationError as error:
            self.lookup_error = error
            return None

    def get_row_key(self, row: Cells) -> Hashable:
        """The key of a row of the file; None if it cannot be read."""
        probe = self.init_instance(row)
        try:
            for column in {*self.key} & row.keys():
                self.import_field(self.fields[column], probe, row, record=probe, resource=self)
        except ValueError:
            return None
        return self.get_key(probe)

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
        if import_validation_errors or self.original is None:
            return False
        if self.get_errors(instance, self.original):
            return False
        return self._get_texts(instance) == self.texts

    def validate_instance(
        self,
        instance: RowT,
        import_validation_errors: Errors | None = None,
        validate_unique: bool = True,
    ) -> None:
        """Like the library's, but without a query for each foreign key and each constraint.

        Foreign keys were found already, and the database checks the constraints of all rows.
        """
        if instance.pk is None and not self.lookup_error and not self.can_add(instance):
            raise ValidationError(f"You may not add {self.name} there.")
        errors = dict(import_validation_errors or {})
        try:
            if self.lookup_error:
                raise self.lookup_error
            exclude = {
                name
                for name, field in self.model_fields.items()
                if name in errors
                or name not in self.columns
                or (field.is_relation and getattr(instance, field.attname) is not None)
            }
            instance.clean_fields(exclude)
            if not errors:
                instance.clean()
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        for name, why in self.get_errors(instance, self.original).items():
            errors.setdefault(name, [ValidationError(why)])
        if errors:
            found = {self.columns.get(name, name): each for name, each in errors.items()}
            order = [NON_FIELD_ERRORS, *self._meta.fields, *found]
            raise ValidationError({name: found[name] for name in sorted(found, key=order.index)})

    def after_import_row(self, row: Cells, row_result: ImportRowResult, **kwargs: object) -> None:
        row_result.number = self.number
        if row_result.is_skip():
            return
        row_result.original = self.original
        texts = zip(self.texts, self._get_texts(row_result.instance), strict=True)
        row_result.describe(
            dict(zip(self.header, texts, strict=True)), row, self.get_title(row_result.instance)
        )
        row_result.notes = list(self.get_notes(row_result))

    def get_bulk_update_fields(self) -> list[str]:
        names = {self.fields[name].attribute for name in self.header} - {"id"}
        return sorted({*self.derived_fields} | (names & self.model_fields.keys()))

    def bulk_update(
        self,
        using_transactions: bool,
        dry_run: bool,
        raise_errors: bool,
        batch_size: int | None = None,
        result: ImportResult | None = None,
    ) -> None:
        """`bulk_update` of Django has a CASE for each value, and is many times slower than this.

        The rows are locked, so that this only updates them.
        """
        fields = self.get_bulk_update_fields()
        try:
            if self.update_instances and fields:
                self._meta.model.objects.bulk_create(
                    self.update_instances,
                    update_conflicts=True,
                    unique_fields=["pk"],
                    update_fields=fields,
                )
        except Exception as error:
            self.handle_import_error(result, error, raise_errors)
        finally:
            self.update_instances.clear()

    def after_import(self, dataset: ImportTable, result: ImportResult, **kwargs: object) -> None:
        """No ids are imported, so that the sequence is right already."""
        for invalid in result.invalid_rows:
            invalid.number = self.row_numbers[invalid.number - 1]
        if not result.invalid_rows:
            result.diff_headers = ["row", "which", *self.header]

    # --- Export ---------------------------------------------------------------------------------

    def get_example_rows(self) -> Iterator[list[CellValue]]:
        for example in (self.example, *self.more_examples):
            instance = self._meta.model()
            for attribute, value in example.items():
                setattr(instance, attribute, value)
            yield [self.export_field(self.fields[name], instance) for name in self._meta.fields]

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


def get_constraint_fields(constraint: Any) -> list[str]:
    """The names of the fields that a constraint compares. All but the checks compare names."""

    def iterate(node: Any) -> Iterator[str]:
        for child in node.children:
            if isinstance(child, Q):
                yield from iterate(child)
            else:
                yield child[0].partition("__")[0]

    if isinstance(constraint, CheckConstraint):
        return list(dict.fromkeys(iterate(constraint.condition)))
    return ["name"]


# Every resource, by its name; apps register theirs when they are ready.
RESOURCES: dict[str, type[SpreadsheetResource[Any]]] = {}


def register(*resources: type[SpreadsheetResource[Any]]) -> None:
    RESOURCES.update({resource.name: resource for resource in resources})
