"""The history of what staff set up: who changed what, when, from what to what (B18).

Each app says in its `ready` which of its models are kept. What an account is called and where its
owner is reached is told as changed, never as what it was: the history outlives the wish to be
forgotten. For the same reason such rows go by their number.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from auditlog.receivers import log_update
from auditlog.registry import auditlog
from django.db.models import Model
from django.db.models.signals import pre_save

from roombook.db.prepared_writes import prepared_writes

if TYPE_CHECKING:
    from auditlog.models import LogEntry

HIDDEN_VALUE = "(not kept)"
NOTE_KEY = "note"
# Rows of these go by their number.
_models_without_names: set[type[Model]] = set()


def register(
    model: type[Model],
    *,
    excluded_fields: Iterable[str] = (),
    hidden_fields: Iterable[str] = (),
    many_to_many_fields: Iterable[str] = (),
    named_by_id: bool = False,
) -> None:
    """Keep the history of a model, from its next change on.

    `leave_out` are columns that the service itself moves, `hide` those of which only the fact that
    they changed is kept, `many` are relations to many rows.
    """
    columns = [field.name for field in model._meta.concrete_fields if not field.primary_key]
    auditlog.register(
        model,
        # Named one by one: auditlog would take relations from elsewhere for fields of the row.
        include_fields=[name for name in columns if name not in set(excluded_fields)],
        mask_fields=list(hidden_fields),
        mask_callable="roombook.backoffice.audit_log.hide_value",
        m2m_fields=set(many_to_many_fields),
    )
    if named_by_id:
        _models_without_names.add(model)


def hide_value(value: str) -> str:
    """What is kept of a value that is not: whether there was one."""
    return HIDDEN_VALUE if value not in ("", "None") else value


def compare_before_save(
    sender: type[Model], instance: Model, update_fields: Iterable[str] | None = None, **kwargs: Any
) -> None:
    """Compare with the row as it was, unless all that is written is left out of the history.

    auditlog would read the row again before each save: one question more for each checkout with a
    promo code, and for each sign-in.
    """
    kept = auditlog.get_model_fields(sender)["include_fields"]
    if update_fields is not None and not set(update_fields) & set(kept):
        return
    log_update(sender, instance, update_fields=update_fields, **kwargs)


auditlog._signals[pre_save] = compare_before_save


def get_object_name(row: Model) -> str:
    """What the history calls a row."""
    if type(row) in _models_without_names:
        return f"{row._meta.verbose_name} {row.pk}"
    return str(row)[:250]


def replace_object_name(sender: Any, instance: Any, **_: Any) -> None:
    """auditlog writes down what a row is called; some must not be."""
    model = instance.content_type.model_class()
    if instance._state.adding and model in _models_without_names:
        instance.object_repr = f"{model._meta.verbose_name} {instance.object_pk}"


def connect_signals() -> None:
    from auditlog.models import LogEntry

    # Theirs, and written on the hot roads.
    prepared_writes(LogEntry)
    pre_save.connect(
        replace_object_name, sender=LogEntry, dispatch_uid="roombook.backoffice.audit_log"
    )


# What is no change of a column


def record_change(
    row: Model, changes: Mapping[str, tuple[Any, Any]], *, by: Any = None, note: str = ""
) -> None:
    """Write down a change where whoever made it knows it: one INSERT, and no question.

    In the back office the author is known without `by`.
    """
    from auditlog.models import LogEntry

    told = _serialize_changes(type(row), changes)
    if told or note:
        _create_entry(row, LogEntry.Action.UPDATE, told, by, note)


def record_view(row: Model, *, by: Any = None, note: str = "") -> None:
    """Write down that somebody looked at personal data."""
    from auditlog.models import LogEntry

    _create_entry(row, LogEntry.Action.ACCESS, {}, by, note)


def record_views(rows: Iterable[Model], *, by: Any, note: str) -> None:
    """The same of many rows of one model, by one INSERT."""
    from auditlog.models import LogEntry

    access = LogEntry.Action.ACCESS
    LogEntry.objects.bulk_create(
        build_entry(row, access, changes={}, by=by, note=note) for row in rows
    )


def build_entry(
    row: Model, action: int, *, changes: dict[str, Any], by: Any, note: str = "", **more: Any
) -> "LogEntry":
    """A line of the history that is not stored yet."""
    from auditlog.models import LogEntry
    from django.contrib.contenttypes.models import ContentType

    return LogEntry(
        content_type=ContentType.objects.get_for_model(row),
        object_pk=str(row.pk),
        object_id=row.pk,
        object_repr=get_object_name(row),
        action=action,
        changes=changes,
        actor=by,
        additional_data={NOTE_KEY: note} if note else None,
        **more,
    )


def _create_entry(row: Model, action: int, changes: dict[str, Any], by: Any, note: str) -> None:
    from auditlog.models import LogEntry

    LogEntry.objects.log_create(
        row,
        force_log=True,
        action=action,
        changes=changes,
        object_repr=get_object_name(row),
        actor=by,
        additional_data={NOTE_KEY: note} if note else None,
    )


def _serialize_changes(
    model: type[Model], changes: Mapping[str, tuple[Any, Any]]
) -> dict[str, list[str]]:
    masked = auditlog.get_model_fields(model)["mask_fields"] if auditlog.contains(model) else []
    told = {}
    for name, (old, new) in changes.items():
        if old != new:
            words = [str(old), str(new)]
            told[name] = [hide_value(word) for word in words] if name in masked else words
    return told
