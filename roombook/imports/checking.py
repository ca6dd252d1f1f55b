"""A file compared with the database: row by row, what would become of it. Nothing is written.

No transaction is open meanwhile, which takes seconds: customers book.
"""

import contextlib
import dataclasses
import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from roombook.ids import is_id
from roombook.imports import constraints, files
from roombook.imports.batches import batches
from roombook.imports.files import InvalidFile, Row, Table
from roombook.imports.plan import Checked, Plan
from roombook.imports.sheet import RESOURCES, Cells, SpreadsheetResource
from roombook.spreadsheets import unescape_formula

# So often it is told how far the check is.
STEP = 200
# How like a column's name another must be to be offered instead: a slip of the hand, no other word.
ALIKE = 0.8
REQUIRED_MESSAGE = "This needs a value."

# What is wrong, by attribute.
Errors = dict[str, Any]


class Check:
    """One file. Go through its `steps`; after that `plan` says what would become of its rows."""

    def __init__(self, sheet: SpreadsheetResource, content: bytes) -> None:
        self.sheet, self.content = sheet, content
        self.plan = Plan([])
        # The stored rows that the file speaks of and that may be changed, by their ids.
        self._stored: dict[int, Any] = {}
        # Which row of the file was the first with this id, with this key.
        self._first_of_id: dict[int, int] = {}
        self._first_of_key: dict[Any, int] = {}

        columns = sheet.in_order()
        self._column_of = {column.attribute: column.column_name for column in columns}
        told = [each for each in sheet.model_fields.values() if each.name in self._column_of]
        relations = [each for each in told if each.is_relation]
        self._needed = [each for each in relations if not each.null]
        # Foreign keys were found already: the model would ask the database for each.
        others = sheet.model_fields.keys() - self._column_of.keys()
        self._not_cleaned = others | {each.name for each in relations}

    def steps(self) -> Iterator[tuple[int, int]]:
        """Check the rows; tells how many are done, of how many."""
        table = files.read(self.content, columns=self.sheet.columns(), sheet=self.sheet.name)
        check_header(self.sheet, table)
        yield 0, len(table.rows)
        self.plan = Plan(table.columns)
        rows = [self._unguarded(row) for row in table.rows]
        self._load([row.cells for row in rows])
        for done, row in enumerate(rows, 1):
            self.plan.rows.append(self._checked(row))
            if done % STEP == 0:
                yield done, len(rows)

    # What is stored

    def _unguarded(self, row: Row) -> Row:
        columns = self.sheet.fields
        cells = {
            name: unescape_formula(text) if columns[name].widget.is_text else text
            for name, text in row.cells.items()
        }
        return dataclasses.replace(row, cells=cells)

    def _load(self, rows: Sequence[Cells]) -> None:
        """Read the stored rows that the file speaks of."""
        self._read({int(row["id"]) for row in rows if is_id(row.get("id", ""))})
        self.sheet.look_up(rows, self._stored.values())
        keys = set()
        for row in rows:
            # What is wrong is told when the row's turn comes.
            with contextlib.suppress(ValidationError):
                keys.add(self.sheet.key_of_row(row))
        known: dict[Any, set[int]] = {}
        for key, pk in self.sheet.keys_stored(keys):
            known.setdefault(key, set()).add(pk)
        self.plan.known = {key: sorted(pks) for key, pks in known.items()}
        self._read({pk for key in keys for pk in known.get(key, ())})

    def _read(self, ids: set[int]) -> None:
        for batch in batches(sorted(ids - self._stored.keys())):
            instances = list(self.sheet.stored().filter(pk__in=batch))
            self.sheet.attach(instances)
            self._stored |= {instance.pk: instance for instance in instances}

    # A row

    def _checked(self, row: Row) -> Checked:
        if row.problems:
            return Checked(row.number, Checked.ERROR, errors=list(row.problems.items()))
        checked = Checked(row.number)
        try:
            self._compare(checked, row.cells)
        except ValidationError as error:
            checked.kind, checked.errors = Checked.ERROR, self._told(error)
        if checked.kind in (Checked.NEW, Checked.CHANGED):
            checked.name = self.sheet.title(checked.instance)
            checked.notes = list(self.sheet.notes(checked))
        return checked

    def _compare(self, checked: Checked, row: Cells) -> None:
        """Find out what the row would write over what; ValidationError where it must not."""
        self._begin(checked, row)
        told = dict.fromkeys(self.plan.columns, "")
        if checked.kind == Checked.CHANGED:
            told = {name: self.sheet.told(name, checked.instance) for name in told}
        try:
            self.sheet.import_instance(checked.instance, row, of=checked.instance, sheet=self.sheet)
        except ValidationError as error:
            # The model may have more to say of the other cells.
            wrong = self._wrong_values(checked.instance, error.error_dict)
            raise ValidationError(wrong) from error
        self.sheet.settle(checked.instance)
        self._note_changes(checked, told)
        if checked.kind == Checked.CHANGED and not checked.changes:
            checked.kind = Checked.UNCHANGED
        else:
            self._judge(checked)

    def _begin(self, checked: Checked, row: Cells) -> None:
        """Take the stored row that this one is, or a new one, before its cells are read."""
        sheet = self.sheet
        stored = self._found(row)
        if stored is None:
            checked.instance = sheet._meta.model()
            for name in sheet.extras:
                setattr(checked.instance, name, None)
            sheet.place(checked.instance, row, is_new=True)
            return
        first = self._first_of_id.setdefault(stored.pk, checked.number)
        if first != checked.number:
            raise ValidationError(f"Row {first} is the same {sheet.one}.")
        sheet.place(stored, row, is_new=False)
        checked.kind, checked.instance = Checked.CHANGED, stored
        checked.before = sheet.snapshot(stored)

    def _found(self, row: Cells) -> Any | None:
        if told := row.get("id", ""):
            if not is_id(told) or int(told) not in self._stored:
                why = f"There is no {self.sheet.one} {told[:20]} that you may change."
                raise ValidationError({"id": why})
            return self._stored[int(told)]
        found = self.plan.known.get(self.sheet.key_of_row(row), [])
        if not found:
            return None
        if len(found) > 1:
            ids = ", ".join(str(pk) for pk in found[:5])
            raise ValidationError(f"Several {self.sheet.name} are called so: give the id ({ids}).")
        if found[0] not in self._stored:
            why = f"There is a {self.sheet.one} of that name, and not yours to change."
            raise ValidationError(why)
        return self._stored[found[0]]

    def _note_changes(self, checked: Checked, told: Cells) -> None:
        for name, before in told.items():
            now = self.sheet.told(name, checked.instance)
            if now != before:
                checked.changes[name] = (before, now)
                continue
            # Told the same, such as another kind of line break: left as it is.
            attribute = self.sheet.fields[name].attribute
            field = self.sheet.model_fields.get(attribute)
            stored = field.attname if field else attribute
            if stored in checked.before:
                setattr(checked.instance, stored, checked.before[stored])

    # What is wrong with it

    def _judge(self, checked: Checked) -> None:
        """Raise all that is wrong, by attribute."""
        sheet, instance = self.sheet, checked.instance
        if wrong := self._wrong_values(instance, {}) or self._wrong_row(checked):
            raise ValidationError(wrong)
        if checked.kind == Checked.NEW and not sheet.allowed.may_add(sheet.center_of(instance)):
            raise ValidationError(f"You may not add {sheet.name} there.")

    def _wrong_values(self, instance: Any, errors: Errors) -> Errors:
        """What is wrong with single values, beside what their cells have already."""
        try:
            instance.clean_fields(exclude=self._not_cleaned | errors.keys())
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        for name, found in errors.items():
            if all(each.code in ("blank", "null") for each in found):
                errors[name] = [ValidationError(REQUIRED_MESSAGE)]
        for field in self._needed:
            if getattr(instance, field.attname) is None:
                errors.setdefault(field.name, [ValidationError(REQUIRED_MESSAGE)])
        return errors

    def _wrong_row(self, checked: Checked) -> Errors:
        """What is wrong with values that are right one by one."""
        instance = checked.instance
        errors: Errors = {}
        try:
            instance.clean()
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        # The model's own words come first, where both judge the same.
        for constraint, about in constraints.get_violated_checks(instance):
            if not errors.keys() & set(about):
                why = constraint.get_violation_error_message()
                errors[self._where(instance, about)] = ValidationError(why)
        for name, why in self.sheet.judge(checked).items():
            errors.setdefault(name, ValidationError(why))
        if not errors and (why := self._taken(checked)):
            errors[self.sheet.fields[self.sheet.key[-1]].attribute] = ValidationError(why)
        return errors

    def _where(self, instance: Any, about: list[str]) -> str:
        """The cell to blame: one with a value, rather than an empty one that ought to have none."""
        there = [name for name in about if self._column_of.get(name) in self.plan.columns]
        there.sort(key=lambda name: getattr(instance, name) is None)
        return there[0] if there else NON_FIELD_ERRORS

    def _taken(self, checked: Checked) -> str:
        """Whether another row, of the file or stored, has this one's key."""
        sheet, instance = self.sheet, checked.instance
        key = sheet.key_of(instance)
        if instance.pk is None or sheet.key_is_unique:
            first = self._first_of_key.setdefault(key, checked.number)
            if first != checked.number:
                return f"Row {first} is the same {sheet.one}."
        if sheet.key_is_unique:
            held = [pk for pk in self.plan.known.get(key, ()) if pk != instance.pk]
            if held:
                return f"There is a {sheet.one} of that name already ({held[0]})."
        return ""

    def _told(self, error: ValidationError) -> list[tuple[str, str]]:
        """By column, in the order of the columns."""
        if not hasattr(error, "error_dict"):
            return [("", message) for message in error.messages]
        columns = self._column_of | {NON_FIELD_ERRORS: ""}
        told = [
            (columns.get(attribute, attribute), message)
            for attribute, messages in error.message_dict.items()
            for message in messages
        ]
        order = ["", *self.sheet.columns()]
        return sorted(told, key=lambda each: order.index(each[0]) if each[0] in order else 0)


def check_header(sheet: SpreadsheetResource, table: Table) -> None:
    """Whether the file is one of this sheet's; BadFile says what is wrong with its columns."""
    known = sheet.columns()
    others = [each for each in RESOURCES.values() if each.name != sheet.name]
    by_name = {files.name_of(each.name): each for each in others}
    if table.sheet and (other := by_name.get(files.name_of(table.sheet))):
        raise InvalidFile(
            f'The sheet is called "{table.sheet}": this is where {sheet.name} go,'
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
        raise InvalidFile(f"{text} There are: {', '.join(known)}.")
    if "id" not in table.columns:
        missing = [group for group in sheet.needed if not set(group) & set(table.columns)]
        if missing:
            told = [" or ".join(f'"{name}"' for name in group) for group in missing]
            raise InvalidFile(f"Missing columns: {', '.join(told)}.")
