"""What was checked is written, all or nothing: rows are locked, and must be as they were."""

from collections.abc import Sequence

from auditlog.models import LogEntry
from django.db import IntegrityError, OperationalError, connection

from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction
from roombook.imports.batches import batches
from roombook.imports.plan import Checked, Origin, Plan
from roombook.imports.sheet import SpreadsheetResource


class ImportRefused(Exception):
    """What was checked cannot be written any more; nothing was."""


def write(sheet: SpreadsheetResource, plan: Plan, origin: Origin) -> None:
    """Write what was checked, all of it or nothing; Refused says why not."""
    if plan.has_errors:
        raise ImportRefused("Rows with errors cannot be imported.")
    try:
        _write(sheet, plan, origin)
    except IntegrityError as error:
        raise ImportRefused(
            "The database changed in the meantime, and refused a row: check the file again."
        ) from error
    except OperationalError as error:
        raise ImportRefused(
            "Some of these rows are in use right now: try again in a moment."
        ) from error
    sheet.written([*plan.of(Checked.NEW), *plan.of(Checked.CHANGED)], origin)


@in_transaction
def _write(sheet: SpreadsheetResource, plan: Plan, origin: Origin) -> None:
    new, changed = plan.of(Checked.NEW), plan.of(Checked.CHANGED)
    rows = sheet._meta.model._base_manager
    _take_turns(sheet)
    _make_sure(sheet, changed)
    _make_sure_of_new(sheet, new, plan)
    for batch in batches(new):
        instances = [row.instance for row in batch]
        for instance in instances:
            # A try before this one may have been rolled back.
            instance.pk, instance._state.adding = None, True
        sheet.before_write(instances)
        rows.bulk_create(instances)
    columns = _columns_written(sheet, changed)
    for batch in batches(changed):
        instances = [row.instance for row in batch]
        sheet.before_write(instances)
        if columns:
            # Django's bulk_update tells each value of each row as a CASE of its own, which is
            # many times slower. The rows are there, and locked: this only updates.
            rows.bulk_create(
                instances, update_conflicts=True, unique_fields=["pk"], update_fields=columns
            )
    for batch in batches([*new, *changed]):
        sheet.write_extras(batch)
        _tell_history(sheet, batch, origin)


def _take_turns(sheet: SpreadsheetResource) -> None:
    """One import of a kind at a time: the second sees what the first one added."""
    # On SQLite whoever writes is alone anyway.
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"import {sheet.name}"])


def _make_sure(sheet: SpreadsheetResource, changed: Sequence[Checked]) -> None:
    """Lock the rows, in the order of their ids, and refuse if they are not as they were."""
    # Not their keys: what refers to them is not kept waiting.
    rows = sheet._meta.model._base_manager.select_for_update(no_key=True).order_by("pk")
    for batch in batches(sorted(changed, key=lambda row: row.instance.pk)):
        locked = {each.pk: each for each in rows.filter(pk__in=[row.instance.pk for row in batch])}
        sheet.attach(list(locked.values()))
        for row in batch:
            now = locked.get(row.instance.pk)
            if now is None or sheet.snapshot(now) != row.before:
                raise ImportRefused(
                    f"Row {row.number} ({row.name}) was changed by somebody in the meantime:"
                    " check the file again."
                )


def _make_sure_of_new(sheet: SpreadsheetResource, new: Sequence[Checked], plan: Plan) -> None:
    """Refuse to add what somebody added meanwhile; not every key is unique by itself."""
    keys = {sheet.key_of(row.instance): row for row in new}
    for key, pk in sheet.keys_stored(keys) if keys else ():
        if key in keys and pk not in plan.known.get(key, ()):
            row = keys[key]
            raise ImportRefused(
                f"Row {row.number} ({row.name}) was added by somebody in the meantime:"
                " check the file again."
            )


def _columns_written(sheet: SpreadsheetResource, changed: Sequence[Checked]) -> list[str]:
    touched = {sheet.fields[name].attribute for row in changed for name in row.changes}
    own = {name for name in touched if name in sheet.model_fields}
    return sorted(own | set(sheet.derived)) if own else []


def _tell_history(sheet: SpreadsheetResource, rows: Sequence[Checked], origin: Origin) -> None:
    LogEntry.objects.bulk_create(
        audit_log.build_entry(
            row.instance,
            LogEntry.Action.CREATE if row.kind == Checked.NEW else LogEntry.Action.UPDATE,
            changes=_history_of(sheet, row),
            by=origin.actor,
            note=f"Imported: {origin.file}, row {row.number}.",
            actor_email=getattr(origin.actor, "email", None),
            remote_addr=origin.address,
            timestamp=origin.at,
        )
        for row in rows
    )


def _history_of(sheet: SpreadsheetResource, row: Checked) -> dict[str, list[str]]:
    """From what to what, as the history tells every other change: by the model's fields."""
    told = {}
    for name, (old, new) in row.changes.items():
        field = sheet.model_fields.get(sheet.fields[name].attribute)
        if field is None:
            told[name] = [old or "None", new or "None"]
        else:
            now = getattr(row.instance, field.attname)
            told[field.name] = [str(row.before.get(field.attname)), str(now)]
    return told
