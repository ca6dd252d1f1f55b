"""The history in words that staff read: who, when, what, from what to what."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from auditlog.models import LogEntry
from auditlog.registry import auditlog
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.dateparse import parse_datetime
from django.utils.text import capfirst

from roombook import dates
from roombook.backoffice.audit_log import HIDDEN_VALUE, NOTE_KEY

ACTION_LABELS = {
    LogEntry.Action.CREATE: "Made",
    LogEntry.Action.UPDATE: "Changed",
    LogEntry.Action.DELETE: "Deleted",
    LogEntry.Action.ACCESS: "Looked at",
}
EMPTY_LABEL = "nothing"
# So much of a value is told; texts for customers are long.
MAX_VALUE_LENGTH = 300
VALUE_LABELS = {"None": EMPTY_LABEL, "": EMPTY_LABEL, "True": "yes", "False": "no"}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field: `old` and `new`, one alone where a row was made or deleted; or what became more
    and less of it."""

    what: str
    old: str
    new: str
    added: str = ""
    removed: str = ""

    @property
    def words(self) -> str:
        if self.added or self.removed:
            steps = [self.added and f"added {self.added}", self.removed and f"took {self.removed}"]
            return f"{self.what}: {', '.join(filter(None, steps))}"
        if self.old and self.new:
            return f"{self.what}: {self.old} → {self.new}"
        return f"{self.what}: {self.old or self.new}"


@dataclass(frozen=True, slots=True)
class RenderedEntry:
    entry: LogEntry
    at: dt.datetime
    who: str
    action: str
    parts: tuple[FieldChange, ...]
    note: str

    @property
    def words(self) -> str:
        return "; ".join(filter(None, [self.note, *(part.words for part in self.parts)]))


def render_entries(entries: Iterable[LogEntry]) -> list[RenderedEntry]:
    """The entries in words; rows that they name are read once for all of them."""
    rows = list(entries)
    names = _load_row_names(rows)
    return [
        RenderedEntry(
            entry=row,
            at=row.timestamp,
            who=get_author_name(row),
            action=ACTION_LABELS.get(row.action, row.get_action_display()),
            parts=tuple(_render_changes(row, names)),
            note=_get_note(row),
        )
        for row in rows
    ]


def get_author_name(entry: LogEntry) -> str:
    """Who did it; customers by their name only."""
    actor: Any = entry.actor
    if actor is None:
        return entry.actor_email or "the service"
    name = actor.get_full_name() or f"account {actor.pk}"
    return name if actor.is_staff else f"{name} (customer)"


def _get_note(entry: LogEntry) -> str:
    data = entry.additional_data if isinstance(entry.additional_data, dict) else {}
    if data.get("import"):
        return f"Imported from {data['import']}, row {data.get('row')}."
    return str(data.get(NOTE_KEY) or "")


def _render_changes(entry: LogEntry, names: "RowNames") -> Iterable[FieldChange]:
    model = entry.content_type.model_class()
    # In the order of the form: a database keeps them in one of its own.
    order = {field.name: place for place, field in enumerate(model._meta.fields)} if model else {}
    found = sorted((entry.changes or {}).items(), key=lambda each: order.get(each[0], len(order)))
    for name, values in found:
        field = _get_field(model, name)
        label = capfirst(str(getattr(field, "verbose_name", "") or name.replace("_", " ")))
        if isinstance(values, dict):
            objects = _truncate(", ".join(map(str, values.get("objects", ()))))
            added = values.get("operation") == "add"
            yield FieldChange(label, "", "", objects if added else "", "" if added else objects)
        elif isinstance(values, Sequence) and len(values) == 2:
            old, new = (_render_value(field, value, names) for value in values)
            # What a row never had needs no words.
            if entry.action == LogEntry.Action.CREATE:
                old, new = "", new if new != EMPTY_LABEL else ""
            elif entry.action == LogEntry.Action.DELETE:
                old, new = old if old != EMPTY_LABEL else "", ""
            if old or new:
                yield FieldChange(label, old, new)


def _get_field(model: type[models.Model] | None, name: str) -> Any:
    try:
        return model and model._meta.get_field(name)
    except FieldDoesNotExist:
        return None


def _render_value(field: Any, value: Any, names: "RowNames") -> str:
    text = "" if value is None else str(value)
    if text in VALUE_LABELS or text == HIDDEN_VALUE:
        return VALUE_LABELS.get(text, "not kept")
    if isinstance(field, models.ForeignKey):
        return names.get((field.related_model, text), f"no. {text}")
    if isinstance(field, models.DateTimeField) and (moment := _render_datetime(text)):
        return moment
    if choices := getattr(field, "flatchoices", None):
        return str({str(key): label for key, label in choices}.get(text, text))
    return _truncate(text)


def _render_datetime(text: str) -> str:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return ""
    return f"{dates.format_datetime(moment, dt.UTC)} UTC" if moment else ""


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


# Rows that are named by their id

RowNames = dict[tuple[Any, str], str]


def _load_row_names(entries: list[LogEntry]) -> RowNames:
    wanted: dict[Any, set[int]] = defaultdict(set)
    for entry in entries:
        model = entry.content_type.model_class()
        for name, values in (entry.changes or {}).items():
            field = _get_field(model, name)
            if isinstance(field, models.ForeignKey) and isinstance(values, Sequence):
                wanted[field.related_model] |= {
                    int(value) for value in values if str(value).isdecimal()
                }
    return {
        (model, str(row.pk)): _get_row_name(row)
        for model, ids in wanted.items()
        for row in model._base_manager.filter(pk__in=ids)
    }


def _get_row_name(row: Any) -> str:
    """A row by its name; an account by its owner's, not by the address."""
    if isinstance(row, get_user_model()):
        return row.get_full_name() or f"account {row.pk}"
    return _truncate(str(row))


def get_tracked_models() -> set[type[models.Model]]:
    """The models whose history is kept; reservations write their own."""
    kept = set(auditlog.get_models())
    return kept | {apps.get_model("reservations", "Reservation")}
