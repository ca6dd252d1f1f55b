"""Compare a file with the database, row by row: what would be written. Nothing is written here.

All that needs a query (finding rows, foreign keys, names that are taken) is done for many rows at
once, so that the number of queries grows with batches, not with rows.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import Model
from import_export.fields import Field
from import_export.instance_loaders import BaseInstanceLoader
from import_export.resources import ModelResource

from roombook.ids import is_id
from roombook.imports import widgets
from roombook.imports.batches import Cells, batches
from roombook.imports.constraints import get_violated_checks
from roombook.imports.files import ImportTable, UnreadableCell
from roombook.imports.results import ImportResult, ImportRowResult
from roombook.texts import CleanedMixin

REQUIRED_MESSAGE = "This needs a value."

RowT = TypeVar("RowT", bound=Model)
# What is wrong with a row, by attribute.
Errors = dict[str, Any]


class BulkInstanceLoader(BaseInstanceLoader):
    """Reads all rows that a file mentions, by id or by key, before the first one is checked."""

    def __init__(self, resource: "CheckingResource[Model]", dataset: ImportTable) -> None:
        super().__init__(resource, dataset)
        self.instances: dict[int, Model] = {}
        rows = dataset.dict
        self._read({int(row["id"]) for row in rows if is_id(row.get("id", ""))})
        resource.load_references(rows, self.instances.values())
        keys = set()
        for row in rows:
            # The error is reported when the row is checked.
            with contextlib.suppress(ValidationError):
                keys.add(resource.get_row_key(row))
        for key, pk in sorted(set(resource.iterate_stored_keys(keys)), key=lambda each: each[1]):
            resource.ids_by_key[key].append(pk)
        self._read({pk for key in keys for pk in resource.ids_by_key.get(key, ())})

    def _read(self, ids: set[int]) -> None:
        for batch in batches(sorted(ids - self.instances.keys())):
            instances = list(self.resource.get_queryset().filter(pk__in=batch))
            self.resource.load_extra_attributes(instances)
            self.instances |= {instance.pk: instance for instance in instances}

    def get_instance(self, row: Cells) -> Model | None:
        """Raises ValidationError if the row may not be changed, or could be several."""
        name, singular = self.resource.name, self.resource.singular
        if text := row.get("id", ""):
            if not is_id(text) or int(text) not in self.instances:
                why = f"There is no {singular} {text[:20]} that you may change."
                raise ValidationError({"id": why})
            return self.instances[int(text)]
        ids = self.resource.ids_by_key.get(self.resource.get_row_key(row), [])
        if len(ids) > 1:
            text = ", ".join(str(pk) for pk in ids[:5])
            raise ValidationError(f"There are several {name} of that name: give the id ({text}).")
        if ids and ids[0] not in self.instances:
            raise ValidationError(f"There is a {singular} of that name that you may not change.")
        return self.instances[ids[0]] if ids else None


class CheckingResource(ModelResource, Generic[RowT]):
    """A table of rows of one model. Subclasses say which columns, and how a row is found.

    A check is the library's dry run, but without a transaction: it takes seconds, in which nobody
    else could write on SQLite. And without copies of the rows (`skip_diff`): texts are compared.
    """

    # What files, commands and the audit log call the table, and what a row is called.
    name: ClassVar[str]
    singular: ClassVar[str]
    # The columns by which a row without an id is found. If no two rows can have the same key,
    # `has_unique_key`; otherwise only their ids distinguish them.
    key: ClassVar[tuple[str, ...]]
    has_unique_key: ClassVar[bool] = True
    # A file without ids must have one column of each group.
    required_columns: ClassVar[tuple[tuple[str, ...], ...]]
    # Fields that bookings change meanwhile; fields that are computed when a row is saved.
    volatile_fields: ClassVar[tuple[str, ...]] = ()
    derived_fields: ClassVar[tuple[str, ...]] = ()
    # Attributes that are not fields of the model: see `load_` and `save_extra_attributes`.
    extra_attributes: ClassVar[tuple[str, ...]] = ()

    WIDGETS_MAP: ClassVar = {
        "BooleanField": widgets.BooleanWidget,
        "DateField": widgets.DateWidget,
        "DateTimeField": widgets.DateTimeWidget,
        "DecimalField": widgets.DecimalWidget,
        "FloatField": widgets.FloatWidget,
        "IntegerField": widgets.IntegerWidget,
    }

    class Meta:
        instance_loader_class = BulkInstanceLoader
        skip_diff = True
        report_skipped = False
        store_instance = True

    def __init__(self, report_progress: Callable[[int], None] = lambda row: None) -> None:
        """`report_progress` is called with the number of each row."""
        super().__init__()
        self.report_progress = report_progress
        self._import_fields: list[Field] = super().get_import_fields()
        self.model_fields = {each.name: each for each in self._meta.model._meta.concrete_fields}
        self.column_of = {each.attribute: name for name, each in self.fields.items()}
        relations = {name for name, field in self.model_fields.items() if field.is_relation}
        self._required_relations = [
            self.model_fields[name]
            for name in relations & self.column_of.keys()
            if not self.model_fields[name].null
        ]
        # Foreign keys were found already: the model would run a query for each.
        self._not_cleaned = relations | (self.model_fields.keys() - self.column_of.keys())
        # What must be the same when a row is written as when it was checked.
        ignored = {*self.volatile_fields, *self.derived_fields}
        names = [each.attname for name, each in self.model_fields.items() if name not in ignored]
        self._compared = [*names, *self.extra_attributes]
        # The ids of the stored rows by their keys, as far as the file mentions them.
        self.ids_by_key: dict[Hashable, list[int]] = defaultdict(list)
        self._first_row_by_id: dict[int, int] = {}
        self._first_row_by_key: dict[Hashable, int] = {}

    @classmethod
    def field_from_django_field(cls, field_name: str, django_field: Any, readonly: bool) -> Field:
        """Unlike in the library, an empty cell is not the model's default."""
        widget_class = cls.widget_from_django_field(django_field, widgets.TextWidget)
        if django_field.primary_key:
            # A row that was found by its key keeps its id, whatever the cell says.
            widget, readonly = widget_class("its number; empty for a new one"), True
        elif widget_class is widgets.DecimalWidget:
            widget = widget_class(django_field.decimal_places)
        else:
            widget = widget_class()
        return Field(field_name, field_name, widget, readonly=readonly)

    # --- What subclasses say --------------------------------------------------------------------

    def load_references(self, rows: Sequence[Cells], instances: Iterable[RowT]) -> None:
        """Read what the rows name: centers, rates, types. `instances` are those found by id."""

    def get_row_key(self, row: Cells) -> Hashable:
        """The key of a row of the file. Raises ValidationError if it has none."""
        raise NotImplementedError

    def get_instance_key(self, instance: RowT) -> Hashable:
        raise NotImplementedError

    def find_stored(self, keys: Iterable[Any]) -> Iterator[RowT]:
        """All stored rows that may have one of these keys, and others."""
        raise NotImplementedError

    def load_extra_attributes(self, instances: Sequence[RowT]) -> None:
        """Set the attributes that are not fields of the model."""

    def normalize_instance(self, instance: RowT) -> None:
        """Change values as saving will, so that they are compared with what will be stored."""

    def can_add(self, instance: RowT) -> bool:
        """Whether the user may add this row."""
        return True

    def get_errors(self, instance: RowT) -> dict[str, str]:
        """What is wrong beyond the model's own rules, by attribute. See `before`."""
        return {}

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        """What somebody should check about a row, by column."""
        return iter(())

    def get_title(self, instance: RowT) -> str:
        """What a preview calls the row."""
        return str(instance)

    # --- A file ---------------------------------------------------------------------------------

    def check(self, table: ImportTable) -> ImportResult:
        """What the file would do."""
        self.table = table
        self._import_fields = [self.fields[name] for name in table.headers]
        result: ImportResult = self.import_data_inner(
            table,
            dry_run=True,
            raise_errors=False,
            using_transactions=False,
            collect_failed_rows=False,
        )
        for row in result.invalid_rows:
            row.number = table.row_numbers[row.number - 1]
        if not result.invalid_rows:
            result.diff_headers = ["row", "which", *table.headers]
            for each in result.valid_rows():
                each.diff = each.render_diff(table.headers)
        return result

    @classmethod
    def get_result_class(cls) -> type[ImportResult]:
        return ImportResult

    @classmethod
    def get_row_result_class(cls) -> type[ImportRowResult]:
        return ImportRowResult

    def get_import_fields(self) -> list[Field]:
        return self._import_fields

    def get_diff_headers(self) -> list[str]:
        return list(self.table.headers)

    # --- A row: the library's hooks, in the order in which it calls them --------------------------

    def import_row(
        self, row: Cells, instance_loader: BulkInstanceLoader, *, row_number: int, **kwargs: object
    ) -> ImportRowResult:
        self.report_progress(row_number)
        self.number = self.table.row_numbers[row_number - 1]
        # What is stored, and the texts of its columns.
        self.before: dict[str, object] = {}
        self.texts = dict.fromkeys(self.table.headers, "")
        self.changes: dict[str, tuple[str, str]] = {}
        result: ImportRowResult = super().import_row(
            row, instance_loader, row_number=self.number, **kwargs
        )
        if result.errors:
            # Not an error in the file, but a bug.
            raise result.errors[0].error
        result.number, result.before, result.changes = self.number, self.before, self.changes
        if result.validation_error:
            found = result.validation_error.update_error_dict({})
            error = ValidationError(self._find_unreadable_values(row) | found)
            result.validation_error = self._group_by_column(error)
        elif not result.is_skip():
            result.object_repr = self.get_title(result.instance)
            result.cleared = [
                name for name, (old, _) in self.changes.items() if old and not row[name]
            ]
            result.notes = list(self.get_notes(result))
        return result

    def _find_unreadable_values(self, row: Cells) -> Errors:
        """Values that cannot be read, also of a row that was not found, so not read further."""
        errors: Errors = {}
        for column in self.table.headers:
            if isinstance(self.fields[column].widget, widgets.ValueWidget):
                try:
                    self.clean_cell(column, row)
                except ValidationError as error:
                    errors = error.update_error_dict(errors)
        return errors

    def before_import_row(self, row: Cells, **kwargs: object) -> None:
        problems = {
            column: cell.problem for column, cell in row.items() if isinstance(cell, UnreadableCell)
        }
        if problems:
            raise ValidationError(problems)

    def get_instance(self, instance_loader: BulkInstanceLoader, row: Cells) -> Model | None:
        return instance_loader.get_instance(row)

    def init_instance(self, row: Cells | None = None) -> RowT:
        instance: RowT = super().init_instance(row)
        for name in self.extra_attributes:
            setattr(instance, name, None)
        return instance

    def after_init_instance(self, instance: RowT, new: bool, row: Cells, **kwargs: object) -> None:
        """Remember what is stored. Subclasses set what a new row belongs to."""
        if not new:
            first = self._first_row_by_id.setdefault(instance.pk, self.number)
            if first != self.number:
                raise ValidationError(f"Row {first} is the same {self.singular}.")
            self.before = self.get_stored_values(instance)
            self.texts = {column: self.render(column, instance) for column in self.texts}

    def import_instance(self, instance: RowT, row: Cells, **kwargs: object) -> None:
        super().import_instance(instance, row, record=instance, resource=self)

    def skip_row(
        self,
        instance: RowT,
        original: object,
        row: Cells,
        import_validation_errors: Errors | None = None,
    ) -> bool:
        """Compare the texts; a stored row without changes is skipped."""
        if import_validation_errors:
            return False
        self.normalize_instance(instance)
        for column, before in self.texts.items():
            attribute = self.fields[column].attribute
            field = self.model_fields.get(attribute)
            after = self.render(column, instance)
            if after != before and isinstance(field, CleanedMixin):
                setattr(instance, field.attname, field.to_python(getattr(instance, field.attname)))
                after = self.render(column, instance)
            if after != before:
                self.changes[column] = (before, after)
                continue
            # Only the kind of line break differs, or the like: keep what is stored.
            stored = field.attname if field else attribute
            if stored in self.before:
                setattr(instance, stored, self.before[stored])
        return bool(self.before) and not self.changes

    def validate_instance(
        self,
        instance: RowT,
        import_validation_errors: Errors | None = None,
        validate_unique: bool = True,
    ) -> None:
        """Like `full_clean`, but without a query for each foreign key and each constraint."""
        errors = self._clean_fields(instance, import_validation_errors or {})
        if errors or (errors := self._clean_row(instance)):
            raise ValidationError(errors)
        if not self.before and not self.can_add(instance):
            raise ValidationError(f"You may not add {self.name} there.")

    def _clean_fields(self, instance: RowT, errors: Errors) -> Errors:
        """What is wrong with single values; `errors` are those of cells that cannot be read."""
        try:
            instance.clean_fields(exclude=self._not_cleaned | errors.keys())
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        relations = self._required_relations
        missing = {each.name for each in relations if getattr(instance, each.attname) is None}
        missing = {name for name in missing if name not in errors} | {
            name
            for name, found in errors.items()
            if all(each.code in ("blank", "null") for each in found)
        }
        return errors | {name: [ValidationError(REQUIRED_MESSAGE)] for name in missing}

    def _clean_row(self, instance: RowT) -> Errors:
        """What is wrong with values that are right one by one."""
        errors: Errors = {}
        try:
            instance.clean()
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        # The model's own message is preferred where both check the same.
        for constraint, fields in get_violated_checks(instance):
            if not errors.keys() & set(fields):
                # Of the cells in the file, one with a value rather than an empty one.
                cells = [name for name in fields if self.column_of.get(name) in self.texts]
                cells.sort(key=lambda name: getattr(instance, name) is None)
                errors[(*cells, NON_FIELD_ERRORS)[0]] = constraint.get_violation_error_message()
        errors = self.get_errors(instance) | errors
        if not errors and (why := self._find_duplicate(instance)):
            errors[self.fields[self.key[-1]].attribute] = why
        return errors

    def _find_duplicate(self, instance: RowT) -> str:
        """Another row with the same key, in the file or in the database."""
        key = self.get_instance_key(instance)
        if instance.pk is None or self.has_unique_key:
            first = self._first_row_by_key.setdefault(key, self.number)
            if first != self.number:
                return f"Row {first} is the same {self.singular}."
        others = [pk for pk in self.ids_by_key.get(key, ()) if pk != instance.pk]
        if self.has_unique_key and others:
            return f"There is a {self.singular} of that name already ({others[0]})."
        return ""

    def _group_by_column(self, error: ValidationError) -> ValidationError:
        """The same errors, by column and in the order of the columns."""
        if not hasattr(error, "error_dict"):
            return error
        errors = {self.column_of.get(name, name): each for name, each in error.error_dict.items()}
        order = list(self._meta.fields)
        names = sorted(errors, key=lambda name: order.index(name) if name in order else -1)
        return ValidationError({name: errors[name] for name in names})

    # --- Keys -----------------------------------------------------------------------------------

    def iterate_stored_keys(self, keys: Iterable[Hashable]) -> Iterator[tuple[Hashable, int]]:
        """Keys and ids of all stored rows that may have one of these keys."""
        return ((self.get_instance_key(each), each.pk) for each in self.find_stored(keys))

    def clean_cell(self, column: str, row: Cells, record: Model | None = None) -> Any:
        """The value of one cell, for a key. Raises ValidationError."""
        field = self.fields[column]
        try:
            return field.widget.clean(row.get(column, ""), resource=self, record=record)
        except ValueError as error:
            raise ValidationError({field.attribute: str(error)}) from error

    # --- Values of a row ------------------------------------------------------------------------

    def render(self, column: str, instance: RowT) -> str:
        text: str = self.fields[column].export(instance, record=instance, resource=self)
        return text

    def get_stored_values(self, instance: Model) -> dict[str, object]:
        return {name: getattr(instance, name) for name in self._compared}
