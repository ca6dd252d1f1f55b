"""Shows entries of the audit log to staff: the changed fields, with their old and new values."""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import DateTimeField, ForeignKey, Model
from django.utils import timezone
from django.utils.text import Truncator, capfirst

from roombook import dates, money
from roombook.backoffice.models import HIDDEN_VALUE, AuditAction, AuditEntry

MAX_VALUE_LENGTH = 300
LABELS = {
    "": "nothing",
    "None": "nothing",
    "True": "yes",
    "False": "no",
    HIDDEN_VALUE: "not kept",
}

# How the history stores an amount: money is the only number with two decimal places.
AMOUNT = re.compile(r"-?\d+\.\d\d")

# Names of the rows that foreign keys point at.
RowNames = dict[tuple[type[Model], str], str]


class FieldChange(NamedTuple):
    """One field of an entry. A created row has only ``new``, a deleted row only ``old``."""

    label: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.label}: {' → '.join(filter(None, self[1:]))}"


def load_field_changes(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Set ``field_changes`` of entries, with one query for each model that foreign keys name."""
    entries = list(entries)
    names = _load_row_names(entries)
    for entry in entries:
        entry.field_changes = list(render_changes(entry, names))
    return entries


def render_changes(entry: AuditEntry, names: RowNames | None = None) -> Iterator[FieldChange]:
    """Render the fields with the labels of the model, and others, such as a refund, by their names.

    Without ``names``, rows are shown as the entry has them.
    """
    fields = _get_fields(entry)
    # In the order of the model's fields: PostgreSQL does not preserve the order of keys.
    for name in sorted(entry.changes, key=[*fields, *entry.changes].index):
        field, values = fields.get(name), entry.changes[name]
        label = capfirst(str(getattr(field, "verbose_name", name.replace("_", " "))))
        old, new = (_render_value(field, str(value or ""), names or {}) for value in values)
        if entry.action == AuditAction.CREATE:
            old = ""
        elif entry.action == AuditAction.DELETE:
            new = ""
        if {old, new} - {"", "nothing"}:
            yield FieldChange(label, old, new)


def _render_value(field: Any, text: str, names: RowNames) -> str:
    if field is None and not text:
        return ""
    if text in LABELS:
        return LABELS[text]
    if AMOUNT.fullmatch(text) and (field is None or isinstance(field, money.MoneyField)):
        return money.format_amount(Decimal(text))
    if isinstance(field, ForeignKey):
        text = names.get((field.related_model, text), text)
    elif isinstance(field, DateTimeField):
        at = dt.datetime.fromisoformat(text)
        return dates.format_datetime(at, timezone.get_current_timezone())
    elif field is not None and field.flatchoices:
        text = {str(key): str(label) for key, label in field.flatchoices}.get(text, text)
    return Truncator(text).chars(MAX_VALUE_LENGTH + 1)


def _get_fields(entry: AuditEntry) -> dict[str, Any]:
    """Return the fields of the row's model, in their order."""
    model = entry.content_type.model_class()
    return {field.name: field for field in model._meta.fields} if model else {}


def _load_row_names(entries: list[AuditEntry]) -> RowNames:
    ids: dict[type[Model], set[int]] = defaultdict(set)
    for entry in entries:
        fields = _get_fields(entry)
        for name, change in entry.changes.items():
            field = fields.get(name)
            if isinstance(field, ForeignKey):
                ids[field.related_model] |= {int(pk) for pk in change if str(pk).isdecimal()}
    names = {(model, str(pk)): f"no. {pk}" for model, pks in ids.items() for pk in pks}
    for model, pks in ids.items():
        # The full name of an account instead of its e-mail address.
        show: Any = get_user_model().get_full_name if model is get_user_model() else str
        rows = model._base_manager.filter(pk__in=pks)
        names |= {(model, str(row.pk)): show(row) or f"account {row.pk}" for row in rows}
    return names
