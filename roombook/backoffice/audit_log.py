"""Records every change: the actor, the time, and the old and new values (B18).

Each app registers its models in ``ready``. From then on signals record every row that is created,
saved or deleted through the ORM. Code that already knows its changes records them explicitly:
``record_change`` needs one INSERT and no SELECT. In the back office the actor is known without
``by``, because the middleware wraps each request in ``recording``.

Personal data (``hidden_fields``) is recorded as changed, never with its value, because entries
outlive an account that is deleted. For the same reason such rows are named by their id.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Field, Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.utils.text import capfirst

from roombook.backoffice.models import HIDDEN_VALUE, AuditAction, AuditEntry


class TrackedModel(NamedTuple):
    """The recorded fields of a registered model, and how they are recorded."""

    fields: tuple[Field, ...] = ()
    hidden_fields: frozenset[str] = frozenset()
    is_named_by_id: bool = False


_tracked: dict[type[Model], TrackedModel] = {}


class Context(NamedTuple):
    """Who makes changes, from where, what their entries note, and whether signals record them."""

    actor: Any = None
    network_address: str | None = None
    note: str = ""
    is_paused: bool = False


_context: ContextVar[Context] = ContextVar("audit_context", default=Context())  # noqa: B039


def register(
    model: type[Model],
    *,
    excluded_fields: Iterable[str] = (),
    hidden_fields: Iterable[str] = (),
    many_to_many_fields: Iterable[str] = (),
    named_by_id: bool = False,
    by_signals: bool = True,
) -> None:
    """Record all changes of a model's rows.

    ``excluded_fields`` are columns that the service updates automatically, such as counters.
    Without ``by_signals``, the code that changes rows records every change explicitly.
    """
    excluded = {model._meta.pk.name, *excluded_fields}
    fields = tuple(field for field in model._meta.concrete_fields if field.name not in excluded)
    _tracked[model] = TrackedModel(fields, frozenset(hidden_fields), named_by_id)
    if not by_signals:
        return
    pre_save.connect(_record_update, sender=model)
    post_save.connect(partial(_record_row, AuditAction.CREATE), sender=model, weak=False)
    post_delete.connect(partial(_record_row, AuditAction.DELETE), sender=model, weak=False)
    for name in many_to_many_fields:
        through = getattr(model, name).through
        m2m_changed.connect(partial(_record_relation, name), sender=through, weak=False)


def get_tracked_models() -> list[type[Model]]:
    return list(_tracked)


@contextmanager
def recording(**values: Any) -> Iterator[None]:
    """Set values of Context for every entry of this block: `with recording(actor=user): ...`."""
    token = _context.set(_context.get()._replace(**values))
    try:
        yield
    finally:
        _context.reset(token)


# --- Recording explicitly -----------------------------------------------------------------------


def record_change(
    row: Model,
    changes: Mapping[str, tuple[object, object]],
    *,
    by: Any = None,
    note: str = "",
    action: AuditAction = AuditAction.UPDATE,
) -> None:
    """Record old and new values of fields, if any differ, or a note, with one INSERT."""
    hidden = _tracked.get(type(row), TrackedModel()).hidden_fields
    different = {}
    for name, (old, new) in changes.items():
        values = [_serialize(old), _serialize(new)]
        # An empty text and no value read the same.
        if old != new and (values[0] or "") != (values[1] or ""):
            if name in hidden:
                values = [value and HIDDEN_VALUE for value in values]
            different[name] = values
    if different or note:
        build_entry(row, action, different, by=by, note=note).save(force_insert=True)


def record_views(rows: Iterable[Model], *, by: Any, note: str = "") -> None:
    """Record that the actor viewed personal data in rows of one model, with one INSERT."""
    entries = [build_entry(row, AuditAction.VIEW, by=by, note=note) for row in rows]
    AuditEntry.objects.bulk_create(entries)


def build_entry(
    row: Model,
    action: AuditAction,
    changes: Mapping[str, Any] | None = None,
    *,
    by: Any = None,
    note: str = "",
    **fields: Any,
) -> AuditEntry:
    """Return an entry that is not saved yet."""
    context = _context.get()
    actor = by or context.actor
    return AuditEntry(
        content_type=ContentType.objects.get_for_model(row),
        object_id=row.pk,
        object_name=get_object_name(row),
        action=action,
        changes=dict(changes or {}),
        actor=actor,
        # The address of a customer is stored only in the account.
        actor_email=actor.email if actor and actor.is_staff else "",
        note=" ".join(filter(None, [context.note, note])),
        network_address=context.network_address,
        **fields,
    )


def get_object_name(row: Model) -> str:
    """Return the name of a row in the audit log."""
    if not _tracked.get(type(row), TrackedModel()).is_named_by_id:
        try:
            return str(row)[:250]
        except ObjectDoesNotExist:  # The name includes a row that was deleted with it.
            pass
    return f"{row._meta.verbose_name} {row.pk}"


def _serialize(value: object) -> str | None:
    """Return a value as text; datetimes are in UTC."""
    if isinstance(value, dt.datetime):
        value = value.astimezone(dt.UTC).isoformat()
    return None if value is None else str(value)


# --- Signals ------------------------------------------------------------------------------------


def _record_update(
    sender: type[Model], instance: Model, update_fields: Iterable[str] | None = None, **_: Any
) -> None:
    """Compare with the stored row, unless no tracked field is written."""
    if instance._state.adding or _context.get().is_paused:
        return
    names = {
        field.name: field.attname
        for field in _tracked[sender].fields
        if update_fields is None or {field.name, field.attname} & set(update_fields)
    }
    rows = sender._base_manager.filter(pk=instance.pk)
    if names and (stored := rows.values(*names.values()).first()):
        changes = {name: (stored[key], getattr(instance, key)) for name, key in names.items()}
        record_change(instance, changes)


def _record_row(action: AuditAction, *, instance: Model, created: bool = True, **_: Any) -> None:
    """Record a new or a deleted row, without the values that are a default."""
    if not created or _context.get().is_paused:
        return
    changes = {}
    for field in _tracked[type(instance)].fields:
        value = getattr(instance, field.attname)
        if _serialize(value) != _serialize(field.get_default()):
            changes[field.name] = (None, value) if action == AuditAction.CREATE else (value, None)
    record_change(instance, changes, action=action)


def _record_relation(
    field_name: str,
    *,
    instance: Model,
    action: str,
    reverse: bool,
    model: type[Model],
    pk_set: set[int] | None,
    **kwargs: Any,
) -> None:
    """Record rows that are added to, or removed from, a many-to-many relation, as a note."""
    change = {"post_add": "added", "post_remove": "removed", "pre_clear": "removed"}.get(action)
    if change is None or reverse or _context.get().is_paused:
        return
    rows = (
        getattr(instance, field_name).all()
        if action == "pre_clear"
        else model._base_manager.filter(pk__in=pk_set or ())
    )
    if names := ", ".join(map(get_object_name, rows)):
        field: Any = instance._meta.get_field(field_name)
        record_change(instance, {}, note=f"{capfirst(field.verbose_name)}: {change} {names}")
