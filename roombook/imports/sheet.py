"""A kind of rows that can be imported and exported: checked as a whole, written all or nothing.

`check` only reads: it compares a file with the database and says, row by row, what would become of
it. `write` takes what was checked, locks the rows, makes sure that they are still as they were
when they were checked, and writes in batches. No transaction is open while a file is being read
and checked, which takes seconds: customers book meanwhile.
"""

import datetime as dt
import difflib
import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from auditlog.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, OperationalError, connection, models
from import_export.resources import ModelResource
from import_export.results import RowResult

from roombook import history
from roombook.imports import constraints, files
from roombook.imports.cells import (
    Column,
    Day,
    Exact,
    Flag,
    Kind,
    Measure,
    Moment,
    Text,
    Whole,
)
from roombook.imports.files import BadFile, Table
from roombook.spreadsheets import guarded, unguarded
from roombook.transactions import in_transaction

# Rows that are read, written and told of at a time.
BATCH = 500
STEP = 200
# How like a column's name another must be to be offered instead: a slip of the hand, no other word.
ALIKE = 0.8

# Of which centers; None is every one.
Centers = set[int] | None


class Refused(Exception):
    """What was checked cannot be written any more; nothing was."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """At which centers somebody may add, change and take out rows; nothing: everywhere."""

    add: Centers = None
    change: Centers = None
    export: Centers = None

    def may_add(self, center: int | None) -> bool:
        return self.add is None or (center is not None and center in self.add)

    @property
    def may_import(self) -> bool:
        return self.change is None or bool(self.change) or self.add is None or bool(self.add)

    @property
    def may_export(self) -> bool:
        return self.export is None or bool(self.export)

    @property
    def written(self) -> Centers:
        """Where they may add or change."""
        return None if self.add is None or self.change is None else self.add | self.change


@dataclass(frozen=True, slots=True)
class Origin:
    """Who imports which file when: what the history tells."""

    file: str
    at: dt.datetime
    actor: Any = None
    address: str | None = None
    request: Any = None


@dataclass(slots=True)
class Checked:
    """What would become of one row of the file."""

    NEW: ClassVar = "new"
    CHANGED: ClassVar = "changed"
    UNCHANGED: ClassVar = "unchanged"
    ERROR: ClassVar = "error"

    number: int
    kind: str
    name: str = ""
    # Column -> what it says now, what it will say.
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Column, or nothing for the row as a whole, with what is wrong.
    errors: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    instance: Any = None
    # The stored row as it was read.
    before: dict[str, Any] = field(default_factory=dict)

    def now(self, column: str) -> str:
        """What a cell of a new row will say."""
        return self.changes.get(column, ("", ""))[1]


@dataclass(slots=True)
class Plan:
    """A file checked as a whole."""

    columns: list[str]
    rows: list[Checked] = field(default_factory=list)

    def of(self, kind: str) -> list[Checked]:
        return [row for row in self.rows if row.kind == kind]

    @property
    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys((Checked.NEW, Checked.CHANGED, Checked.UNCHANGED, Checked.ERROR), 0)
        for row in self.rows:
            counts[row.kind] += 1
        return counts

    @property
    def has_errors(self) -> bool:
        return any(row.kind == Checked.ERROR for row in self.rows)

    @property
    def changes_something(self) -> bool:
        return any(row.kind in (Checked.NEW, Checked.CHANGED) for row in self.rows)

    @property
    def digest(self) -> str:
        """The same for two checks that would write the same over the same."""
        found = hashlib.sha256()
        for row in self.rows:
            pk = row.instance.pk if row.instance is not None else None
            found.update(json.dumps([row.number, row.kind, pk, row.changes]).encode())
        return found.hexdigest()


# How many rows are checked, of how many; the plan in the end.
Checking = Generator[tuple[int, int], None, Plan]


def batches(items: Iterable[Any], size: int = BATCH) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class Sheet(ModelResource):
    """Rows of one model; subclasses say which columns, and how a row is found.

    The library turns cells into attributes and rows into results; what it would do with a query a
    row (finding it, foreign keys, constraints) is done here for all rows at once.
    """

    # How files, addresses and commands call it.
    name: ClassVar[str]
    # What a row is called.
    one: ClassVar[str]
    # The columns by which a row is found that has no id.
    key: ClassVar[tuple[str, ...]]
    # One of each of these groups must be there, unless rows come with their ids.
    needed: ClassVar[tuple[tuple[str, ...], ...]]
    # No two rows have the same key; otherwise they may, and only an id tells them apart.
    key_is_unique: ClassVar[bool] = True
    # Columns of the model that others write meanwhile.
    moving: ClassVar[tuple[str, ...]] = ()
    # Attributes that are no columns of the model: `attach` sets them, `write_extras` keeps them.
    extras: ClassVar[tuple[str, ...]] = ()
    # Columns written beside those of the file.
    derived: ClassVar[tuple[str, ...]] = ()

    class Meta:
        clean_model_instances = True
        skip_unchanged = True
        report_skipped = True
        use_transactions = True
        # We compare, and write, ourselves.
        skip_diff = True
        skip_html_diff = True
        use_bulk = True

    KINDS: ClassVar[dict[type[models.Field], type[Kind]]] = {
        models.BooleanField: Flag,
        models.FloatField: Measure,
        models.DateTimeField: Moment,
        models.DateField: Day,
        models.IntegerField: Whole,
        models.AutoField: Whole,
    }

    def __init__(self, allowed: Allowed | None = None) -> None:
        super().__init__()
        self.allowed = allowed or Allowed()
        self.by_id: dict[int, Any] = {}
        self.by_key: dict[Any, list[int]] = {}
        self.numbers: dict[Any, int] = {}
        self.present: set[str] = set()
        self.changes: dict[str, tuple[str, str]] = {}
        self.before: dict[str, Any] = {}
        concrete = self._meta.model._meta.concrete_fields
        self.model_fields = {each.name: each for each in concrete}
        # Who exports, if it is somebody.
        self.exporter: Any = None
        self.rows_exported = 0
        # Told how many rows are out, for somebody who waits.
        self.on_export: Callable[[int], None] = lambda rows: None

    @classmethod
    def allowed_for(cls, user: Any) -> Allowed | None:
        """Where this person may import and export these rows; None: nowhere at all."""
        raise NotImplementedError

    @classmethod
    def field_from_django_field(cls, field_name: str, django_field: Any, readonly: bool) -> Column:  # noqa: FBT001 (the library's signature)
        kind: Kind = Text()
        if isinstance(django_field, models.DecimalField):
            kind = Exact(django_field.decimal_places)
        else:
            for base, found in cls.KINDS.items():
                if isinstance(django_field, base):
                    kind = found()
                    break
        # A row that was found by its key keeps its id, whatever the cell says.
        readonly = readonly or django_field.primary_key
        how = "its number; empty for a new one" if django_field.primary_key else ""
        return Column(field_name, kind, how=how, column_name=field_name, readonly=readonly)

    # What a sheet says of itself

    @classmethod
    def in_order(cls) -> list[Column]:
        return [cls.fields[name] for name in cls._meta.fields]

    @classmethod
    def columns(cls) -> list[str]:
        return [str(column.column_name) for column in cls.in_order()]

    @classmethod
    def plural(cls) -> str:
        return cls.name.replace("-", " ")

    def stored(self) -> models.QuerySet[Any]:
        """The rows that may be changed."""
        raise NotImplementedError

    def look_up(self, rows: Sequence[files.Row]) -> None:
        """Read what the rows name: centers, rates, types."""

    def key_of_row(self, row: Mapping[str, str]) -> Any:
        """By what the row is found; ValidationError by attribute where that cannot be said."""
        raise NotImplementedError

    def key_of(self, instance: Any) -> Any:
        """The same of a stored row."""
        raise NotImplementedError

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        """The stored rows that may have one of these keys, whoever may change them."""
        raise NotImplementedError

    def attach(self, instances: Sequence[Any]) -> None:
        """Set the attributes that are no columns of the model."""

    def title(self, instance: Any) -> str:
        """What the row is called in a preview."""
        return str(instance)

    def settle(self, instance: Any) -> None:
        """Write values as the model will, so that the comparison sees what will be stored."""

    def judge(self, instance: Any, *, is_new: bool) -> dict[str, str]:
        """What is wrong beyond the model's own rules, by attribute."""
        return {}

    def notes(self, instance: Any) -> Iterator[tuple[str, str]]:
        """What somebody should read twice, by column."""
        return iter(())

    def before_write(self, instances: Sequence[Any]) -> None:
        """Fill in derived columns; rows are locked."""

    def write_extras(self, rows: Sequence[Checked]) -> None:
        """Write what is not in the model's own table."""

    def written(self, rows: Sequence[Checked], origin: Origin) -> None:
        """After all is committed."""

    # Checking

    def check(self, content: bytes) -> Checking:
        """Compare a file with the database; tells how many rows are done, and writes nothing."""
        table = files.read(content, columns=self.columns(), sheet=self.name)
        self.check_columns(table)
        yield 0, len(table.rows)
        self.present = set(table.columns)
        self.numbers = {}
        self.look_up(table.rows)
        self._load(table.rows)
        plan = Plan(table.columns)
        for done, row in enumerate(table.rows, 1):
            plan.rows.append(self._checked(row))
            if done % STEP == 0:
                yield done, len(table.rows)
        return plan

    def check_columns(self, table: Table) -> None:
        known = self.columns()
        others = [each for each in SHEETS.values() if each.name != self.name]
        by_name = {files.name_of(each.name): each for each in others}
        if table.sheet and (other := by_name.get(files.name_of(table.sheet))):
            raise BadFile(
                f'The sheet is called "{table.sheet}": this is where {self.name} go,'
                f" {other.name} have a page of their own."
            )
        unknown = [name for name in table.columns if name not in known]
        if unknown:
            told = []
            for name in unknown:
                like = difflib.get_close_matches(name, known, 1, ALIKE)
                told.append(f'"{name}"' + (f' (is it "{like[0]}"?)' if like else ""))
            text = f"Unknown columns: {', '.join(told)}."
            alike = [each for each in others if set(table.columns) <= set(each.columns())]
            if alike:
                text += f" They are those of {alike[0].name}, which have a page of their own."
            raise BadFile(f"{text} There are: {', '.join(known)}.")
        if "id" not in table.columns:
            missing = [group for group in self.needed if not set(group) & set(table.columns)]
            if missing:
                told = [" or ".join(f'"{name}"' for name in group) for group in missing]
                raise BadFile(f"Missing columns: {', '.join(told)}.")

    def _load(self, rows: Sequence[files.Row]) -> None:
        """Read the stored rows that the file speaks of."""
        self.by_id, self.by_key = {}, {}
        self._read_ids({int(row.cells["id"]) for row in rows if is_id(row.cells.get("id", ""))})
        keys = set()
        for row in rows:
            try:
                keys.add(self.key_of_row(self._told(row)))
            except (ValidationError, ValueError):
                continue
        by_key: dict[Any, set[int]] = {}
        for key, pk in self.keys_stored(keys):
            by_key.setdefault(key, set()).add(pk)
        self.by_key = {key: sorted(pks) for key, pks in by_key.items()}
        self._read_ids({pk for key in keys for pk in self.by_key.get(key, ())})

    def _read_ids(self, ids: set[int]) -> None:
        for batch in batches(sorted(ids - self.by_id.keys())):
            instances = list(self.stored().filter(pk__in=batch))
            self.attach(instances)
            self.by_id |= {instance.pk: instance for instance in instances}

    def _told(self, row: files.Row) -> dict[str, str]:
        """The cells, the guard of text taken off."""
        told = {}
        for name, text in row.cells.items():
            column = self._select_field(name)
            told[name] = unguarded(text) if column.widget.is_text else text
        return told

    def _checked(self, row: files.Row) -> Checked:
        if row.problems:
            errors = [(name, why) for name, why in row.problems.items()]
            return Checked(row.number, Checked.ERROR, errors=errors)
        self.changes, self.before = {}, {}
        self._instance: Any = None
        result = self.import_row(
            self._told(row), None, row_number=row.number, dry_run=True, using_transactions=True
        )
        for unexpected in result.errors:
            raise unexpected.error
        instance = self._instance
        checked = Checked(
            row.number, KIND_OF[result.import_type], changes=self.changes, before=self.before
        )
        if checked.kind == Checked.ERROR:
            checked.errors = self._errors(result.validation_error)
            return checked
        checked.name = self.title(instance)
        if checked.kind != Checked.UNCHANGED:
            checked.instance = instance
            checked.notes = list(self.notes(instance))
        return checked

    def _errors(self, error: ValidationError) -> list[tuple[str, str]]:
        columns = {column.attribute: column.column_name for column in self.fields.values()}
        if not hasattr(error, "error_dict"):
            return [("", message) for message in error.messages]
        told = []
        for attribute, messages in error.message_dict.items():
            column = "" if attribute == NON_FIELD_ERRORS else columns.get(attribute, attribute)
            told += [(column, message) for message in messages]
        # In the order of the columns.
        order = ["", *self.columns()]
        return sorted(told, key=lambda each: order.index(each[0]) if each[0] in order else 0)

    # What the library asks of a resource, a row at a time

    def get_or_init_instance(self, instance_loader: Any, row: Any) -> tuple[Any, bool]:
        pk = self._pk_of(row)
        if pk is None:
            instance, is_new = self._meta.model(), True
        else:
            instance, is_new = self.by_id[pk], False
            first = self.numbers.setdefault(pk, self._number)
            if first != self._number:
                raise ValidationError(f"Row {first} is the same {self.one}.")
        return instance, is_new

    def _pk_of(self, row: Mapping[str, str]) -> int | None:
        """The stored row that this one is, if it is one."""
        told = row.get("id", "")
        if told:
            if not is_id(told) or int(told) not in self.by_id:
                raise ValidationError(
                    {"id": f"There is no {self.one} {told[:20]} that you may change."}
                )
            return int(told)
        key = self.key_of_row(row)
        found = self.by_key.get(key, [])
        if len(found) > 1:
            ids = ", ".join(str(pk) for pk in found[:5])
            raise ValidationError(f"Several {self.name} are called so: give the id ({ids}).")
        if found and found[0] not in self.by_id:
            raise ValidationError(f"There is a {self.one} of that name, and not yours to change.")
        return found[0] if found else None

    def before_import_row(self, row: Any, **kwargs: Any) -> None:
        self._number = kwargs["row_number"]

    def after_init_instance(self, instance: Any, new: bool, row: Any, **kwargs: Any) -> None:  # noqa: FBT001 (the library's signature)
        self._instance, self._is_new = instance, new
        if new:
            for name in self.extras:
                setattr(instance, name, None)
            self.attach_new(instance)
            self.before_told = dict.fromkeys(self.present, "")
        else:
            self.before = self.snapshot(instance)
            self.before_told = {name: self.told(name, instance) for name in self.present}

    def attach_new(self, instance: Any) -> None:
        """The same as `attach`, for a row that is not stored yet."""

    def import_instance(self, instance: Any, row: Any, **kwargs: Any) -> None:
        errors: dict[str, Any] = {}
        try:
            super().import_instance(instance, row, of=instance, sheet=self)
        except ValidationError as error:
            errors = error.error_dict
        if errors:
            raise ValidationError(errors)
        self.settle(instance)
        for name in self.present:
            column = self._select_field(name)
            now = self.told(name, instance)
            if now == self.before_told[name]:
                # Told the same, such as another kind of line break: left as it is.
                if column.attribute in self.before:
                    setattr(instance, column.attribute, self.before[column.attribute])
            else:
                self.changes[name] = (self.before_told[name], now)

    def skip_row(
        self, instance: Any, original: Any, row: Any, import_validation_errors: Any = None
    ) -> bool:
        return not (self._is_new or self.changes or import_validation_errors)

    def validate_instance(
        self,
        instance: Any,
        import_validation_errors: Any = None,
        validate_unique: bool = True,  # noqa: FBT001, FBT002 (the library's signature)
    ) -> None:
        errors: dict[str, Any] = dict(import_validation_errors or {})
        mine = {column.attribute for column in self.fields.values()}
        others = {
            field.name
            for field in instance._meta.concrete_fields
            # Foreign keys were found already: the model would ask the database for each.
            if field.name not in mine or field.is_relation
        }
        try:
            instance.clean_fields(exclude=others | errors.keys())
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        for column in self.fields.values():
            model_field = self._model_field(column.attribute)
            if model_field is None or column.attribute in errors:
                continue
            is_needed = model_field.is_relation and not model_field.null
            if is_needed and getattr(instance, model_field.attname) is None:
                errors[column.attribute] = ValidationError(NEEDED)
        for name, found in errors.items():
            if getattr(found, "code", "") in ("blank", "null") or (
                isinstance(found, list) and all(each.code in ("blank", "null") for each in found)
            ):
                errors[name] = ValidationError(NEEDED)
        if not errors:
            errors = self._judged(instance)
        if errors:
            raise ValidationError(errors)

    def _model_field(self, attribute: str) -> Any:
        return self.model_fields.get(attribute)

    def _judged(self, instance: Any) -> dict[str, Any]:
        errors: dict[str, Any] = {}
        try:
            instance.clean()
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        # The model's own words come first, where both judge the same.
        for constraint, about in constraints.violated(instance):
            if not errors.keys() & set(about):
                # At a cell with a value, rather than at an empty one that ought to have none.
                about.sort(key=lambda name: getattr(instance, name) is None)
                where = next((name for name in about if self._column_of(name)), NON_FIELD_ERRORS)
                errors[where] = ValidationError(constraint.get_violation_error_message())
        for name, why in self.judge(instance, is_new=self._is_new).items():
            errors.setdefault(name, ValidationError(why))
        if not errors and (why := self._taken(instance)):
            errors[self._key_attribute()] = ValidationError(why)
        return errors

    def _column_of(self, attribute: str) -> str | None:
        for column in self.fields.values():
            if column.attribute == attribute and column.column_name in self.present:
                return str(column.column_name)
        return None

    def _key_attribute(self) -> str:
        return str(self.fields[self.key[-1]].attribute)

    def _taken(self, instance: Any) -> str:
        """Whether another row, of the file or stored, has this one's key."""
        key = self.key_of(instance)
        if instance.pk is None or self.key_is_unique:
            first = self.numbers.setdefault(("key", key), self._number)
            if first != self._number:
                return f"Row {first} is the same {self.one}."
        if self.key_is_unique:
            held = [pk for pk in self.by_key.get(key, ()) if pk != instance.pk]
            if held:
                return f"There is a {self.one} of that name already ({held[0]})."
        return ""

    def save_instance(self, instance: Any, is_create: bool, row: Any, **kwargs: Any) -> None:  # noqa: FBT001 (the library's signature)
        """Nothing is saved while a file is checked; `write` does."""
        if is_create and not self.allowed.may_add(self.center_of(instance)):
            raise ValidationError(f"You may not add {self.name} there.")

    def center_of(self, instance: Any) -> int | None:
        """Whose row it is; None: nobody's in particular."""
        return getattr(instance, "center_id", None)

    def told(self, column: str, instance: Any) -> str:
        found = self._select_field(column)
        return str(found.widget.render(found.get_value(instance), of=instance, sheet=self))

    def snapshot(self, instance: Any) -> dict[str, Any]:
        """All that the check may have looked at, to be compared under the lock."""
        names = {
            each.attname
            for each in instance._meta.concrete_fields
            if each.name not in self.moving and each.name not in self.derived
        }
        found = {name: getattr(instance, name) for name in sorted(names)}
        for each in instance._meta.concrete_fields:
            # By their objects, as the columns of the sheet have them.
            if each.is_relation and each.is_cached(instance):
                found[each.name] = getattr(instance, each.name)
        return found | {name: getattr(instance, name) for name in self.extras}

    # Writing

    def write(self, plan: Plan, origin: Origin) -> None:
        """Write what was checked, all of it or nothing; Refused says why not."""
        if plan.has_errors:
            raise Refused("Rows with errors cannot be imported.")
        new, changed = plan.of(Checked.NEW), plan.of(Checked.CHANGED)
        try:
            self._write(plan, new, changed, origin)
        except IntegrityError as error:
            raise Refused(
                "The database changed in the meantime, and refused a row: check the file again."
            ) from error
        except OperationalError as error:
            raise Refused(
                "Some of these rows are in use right now: try again in a moment."
            ) from error
        self.written([*new, *changed], origin)

    @in_transaction
    def _write(
        self, plan: Plan, new: Sequence[Checked], changed: Sequence[Checked], origin: Origin
    ) -> None:
        self._take_turns()
        self._make_sure(changed)
        self._make_sure_of_new(new)
        for batch in batches(new):
            instances = [row.instance for row in batch]
            for instance in instances:
                # A try before this one may have been rolled back.
                instance.pk, instance._state.adding = None, True
            self.before_write(instances)
            self._meta.model._base_manager.bulk_create(instances)
        columns = self._columns_written(plan)
        for batch in batches(changed):
            instances = [row.instance for row in batch]
            self.before_write(instances)
            if columns:
                # Django's bulk_update tells each value of each row as a CASE of its own, which is
                # many times slower. The rows are there, and locked: this only updates.
                self._meta.model._base_manager.bulk_create(
                    instances, update_conflicts=True, unique_fields=["pk"], update_fields=columns
                )
        for batch in batches([*new, *changed]):
            self.write_extras(batch)
            self._tell_history(batch, origin)

    def _make_sure(self, changed: Sequence[Checked]) -> None:
        """Lock the rows, in the order of their ids, and refuse if they are not as they were."""
        for batch in batches(sorted(changed, key=lambda row: row.instance.pk)):
            # Not their keys: what refers to them is not kept waiting.
            locked = self._meta.model._base_manager.select_for_update(no_key=True)
            stored = locked.filter(pk__in=[row.instance.pk for row in batch]).order_by("pk")
            found = {instance.pk: instance for instance in stored}
            self.attach(list(found.values()))
            for row in batch:
                now = found.get(row.instance.pk)
                if now is None or any(
                    value != getattr(now, name)
                    for name, value in row.before.items()
                    if name in self._compared_under_lock
                ):
                    raise Refused(
                        f"Row {row.number} ({row.name}) was changed by somebody in the meantime:"
                        " check the file again."
                    )

    def _take_turns(self) -> None:
        """One import of a kind at a time: the second sees what the first one added."""
        # On SQLite whoever writes is alone anyway.
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_advisory_xact_lock(hashtext(%s))", [f"import {self.name}"]
                )

    def _make_sure_of_new(self, new: Sequence[Checked]) -> None:
        """Refuse to add what somebody added meanwhile; not every key is unique by itself."""
        keys = {self.key_of(row.instance): row for row in new}
        for key, pk in self.keys_stored(keys) if keys else ():
            if key in keys and pk not in self.by_key.get(key, ()):
                row = keys[key]
                raise Refused(
                    f"Row {row.number} ({row.name}) was added by somebody in the meantime:"
                    " check the file again."
                )

    @property
    def _compared_under_lock(self) -> set[str]:
        own = {each.attname for each in self._meta.model._meta.concrete_fields}
        return own | set(self.extras)

    def _columns_written(self, plan: Plan) -> list[str]:
        own = {each.name: each for each in self._meta.model._meta.concrete_fields}
        touched = {
            self._select_field(name).attribute
            for row in plan.of(Checked.CHANGED)
            for name in row.changes
        }
        names = {name for name in touched if name in own and not own[name].primary_key}
        return sorted(names | set(self.derived)) if names else []

    def _tell_history(self, rows: Sequence[Checked], origin: Origin) -> None:
        kind = ContentType.objects.get_for_model(self._meta.model)
        LogEntry.objects.bulk_create(
            LogEntry(
                content_type=kind,
                object_pk=str(row.instance.pk),
                object_id=row.instance.pk,
                object_repr=history.name_of(row.instance),
                action=LogEntry.Action.CREATE if row.kind == row.NEW else LogEntry.Action.UPDATE,
                changes=self._history_of(row),
                actor=origin.actor,
                actor_email=getattr(origin.actor, "email", None),
                remote_addr=origin.address,
                timestamp=origin.at,
                additional_data={history.NOTE: f"Imported: {origin.file}, row {row.number}."},
            )
            for row in rows
        )

    def _history_of(self, row: Checked) -> dict[str, list[str]]:
        """From what to what, as the history tells every other change: by the model's fields."""
        told = {}
        for name, (old, new) in row.changes.items():
            model_field = self._model_field(self._select_field(name).attribute)
            if model_field is None:
                told[name] = [old or "None", new or "None"]
            elif not model_field.primary_key:
                now = getattr(row.instance, model_field.attname)
                told[model_field.name] = [str(row.before.get(model_field.attname)), str(now)]
        return told

    # Out

    def exported(self) -> models.QuerySet[Any]:
        """The rows that may be taken out, in the order in which they stand in the file."""
        raise NotImplementedError

    def for_export(self, rows: models.QuerySet[Any]) -> Iterator[Any]:
        """Rows in batches, with all that their columns show."""
        for batch in batches(rows.iterator(chunk_size=BATCH)):
            self.attach(batch)
            if self.exporter is not None:
                self.looked_at(batch)
            yield from batch
            self.rows_exported += len(batch)
            self.on_export(self.rows_exported)

    def looked_at(self, rows: Sequence[Any]) -> None:
        """Write down whose personal data goes out."""

    def export_field(self, field: Any, instance: Any, **kwargs: Any) -> str:
        text = str(field.widget.render(field.get_value(instance), of=instance, sheet=self))
        return guarded(text) if field.widget.is_text else text

    def csv(self, rows: models.QuerySet[Any] | None = None) -> Iterator[str]:
        found = self.for_export(self.exported() if rows is None else rows)
        return files.csv_lines(self.columns(), (self.export_resource(each) for each in found))

    def xlsx(self, rows: models.QuerySet[Any] | None = None) -> Any:
        rows = self.exported() if rows is None else rows
        if len(rows.order_by().values_list("pk")[: files.MAX_ROWS + 1]) > files.MAX_ROWS:
            raise BadFile(f"These are more than {files.MAX_ROWS:,} rows: export them as CSV.")
        found = self.for_export(rows)
        return files.workbook(self.name, self.columns(), map(self._workbook_row, found))

    def _workbook_row(self, instance: Any) -> list[files.Cell]:
        cells = []
        for column in self.get_export_fields():
            text = self.export_field(column, instance)
            cells.append(column.widget.cell(column.get_value(instance), text))
        return cells


NEEDED = "This needs a value."
KIND_OF = {
    RowResult.IMPORT_TYPE_NEW: Checked.NEW,
    RowResult.IMPORT_TYPE_UPDATE: Checked.CHANGED,
    RowResult.IMPORT_TYPE_SKIP: Checked.UNCHANGED,
    RowResult.IMPORT_TYPE_INVALID: Checked.ERROR,
    RowResult.IMPORT_TYPE_ERROR: Checked.ERROR,
}

# Every sheet there is, by its name; apps register theirs when they are ready.
SHEETS: dict[str, type[Sheet]] = {}


def register(*sheets: type[Sheet]) -> None:
    SHEETS.update({sheet.name: sheet for sheet in sheets})


def is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31


def read_all(checking: Checking) -> Plan:
    """The plan, where nobody waits for news."""
    while True:
        try:
            next(checking)
        except StopIteration as done:
            plan: Plan = done.value
            return plan
