"""Renders audit log entries for staff: actor, time, and each field's old and new value."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField, ForeignKey, Model
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.text import Truncator, capfirst

from roombook import dates
from roombook.backoffice.audit_log import HIDDEN_VALUE
from roombook.backoffice.models import AuditAction, AuditEntry

EMPTY_LABEL = "nothing"
MAX_VALUE_LENGTH = 300
VALUE_LABELS = {
    "None": EMPTY_LABEL,
    "": EMPTY_LABEL,
    "True": "yes",
    "False": "no",
    HIDDEN_VALUE: "not kept",
}

# Names of the rows that foreign keys point at.
RowNames = dict[tuple[type[Model], str], str]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of an entry.

    A created row has only ``new``, a deleted row only ``old``, a relation to many rows only
    ``added`` or ``removed``.
    """

    label: str
    old: str = ""
    new: str = ""
    added: str = ""
    removed: str = ""

    @property
    def summary(self) -> str:
        if self.added or self.removed:
            return f"{self.label}: " + (
                f"added {self.added}" if self.added else f"removed {self.removed}"
            )
        if self.old and self.new:
            return f"{self.label}: {self.old} → {self.new}"
        return f"{self.label}: {self.old or self.new}"


@dataclass(frozen=True, slots=True)
class RenderedEntry:
    timestamp: dt.datetime
    actor: str
    action: str
    changes: tuple[FieldChange, ...]
    note: str

    @property
    def summary(self) -> str:
        return "; ".join(filter(None, [self.note, *(change.summary for change in self.changes)]))


def render_entries(entries: Iterable[AuditEntry]) -> list[RenderedEntry]:
    """Render entries; the rows that their foreign keys name are loaded once for all of them."""
    entries = list(entries)
    names = _load_row_names(entries)
    return [
        RenderedEntry(
            timestamp=entry.timestamp,
            actor=get_actor_name(entry),
            action=entry.get_action_display(),
            changes=tuple(_render_changes(entry, names)),
            note=entry.note,
        )
        for entry in entries
    ]


def get_actor_name(entry: AuditEntry) -> str:
    """Return the actor's name, or the e-mail address of staff whose account was deleted."""
    if entry.actor is None:
        return entry.actor_email or "the service"
    name = _get_row_name(entry.actor)
    return name if entry.actor.is_staff else f"{name} (customer)"


def _render_changes(entry: AuditEntry, names: RowNames) -> Iterator[FieldChange]:
    model = entry.content_type.model_class()
    # Sort by the order of the model's fields: PostgreSQL does not preserve the order of keys.
    positions = (
        {field.name: place for place, field in enumerate(model._meta.get_fields())} if model else {}
    )
    for name, change in sorted(
        entry.changes.items(), key=lambda item: positions.get(item[0], len(positions))
    ):
        field = _get_field(model, name)
        label = capfirst(str(getattr(field, "verbose_name", name.replace("_", " "))))
        if isinstance(change, dict):
            rows = {key: _truncate(", ".join(names)) for key, names in change.items()}
            yield FieldChange(label, **rows)
            continue
        old, new = (_render_value(field, value, names) for value in change)
        if entry.action == AuditAction.CREATE:
            old = ""
        elif entry.action == AuditAction.DELETE:
            new = ""
        if {old, new} - {"", EMPTY_LABEL}:
            yield FieldChange(label, old, new)


def _get_field(model: type[Model] | None, name: str) -> Any:
    try:
        return model._meta.get_field(name) if model else None
    except FieldDoesNotExist:
        return None


def _render_value(field: Any, value: str | None, names: RowNames) -> str:
    text = "" if value is None else str(value)
    if text in VALUE_LABELS:
        return VALUE_LABELS[text]
    if isinstance(field, ForeignKey):
        return names.get((field.related_model, text), f"no. {text}")
    if isinstance(field, DateTimeField):
        return _render_datetime(text)
    if field is not None and field.flatchoices:
        return str({str(key): label for key, label in field.flatchoices}.get(text, text))
    return _truncate(text)


def _render_datetime(text: str) -> str:
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    return dates.format_datetime(at, timezone.get_current_timezone()) if at else text


def _truncate(text: str) -> str:
    return Truncator(text).chars(MAX_VALUE_LENGTH + 1)


def _load_row_names(entries: list[AuditEntry]) -> RowNames:
    ids: dict[type[Model], set[int]] = defaultdict(set)
    for entry in entries:
        model = entry.content_type.model_class()
        for name, change in entry.changes.items():
            field = _get_field(model, name)
            if isinstance(field, ForeignKey):
                ids[field.related_model] |= {int(pk) for pk in change if str(pk).isdecimal()}
    return {
        (model, str(row.pk)): _get_row_name(row)
        for model, pks in ids.items()
        for row in model._base_manager.filter(pk__in=pks)
    }


def _get_row_name(row: Model) -> str:
    """Return a row's name; for an account, the full name instead of the e-mail address."""
    if isinstance(row, get_user_model()):
        return row.get_full_name() or f"account {row.pk}"
    return _truncate(str(row))
