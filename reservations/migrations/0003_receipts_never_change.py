"""The database refuses to change or delete a receipt, and to lower a counter (B28.4)."""

from django.db import migrations

# By trigger: the table and the event, and when a change is refused. Only what a document says may
# be emptied, once it need not be kept any longer.
TRIGGERS = {
    "receipt_never_changes": ("reservations_receipt", "UPDATE", "{changes}"),
    "receipt_is_never_deleted": ("reservations_receipt", "DELETE", "true"),
    "receipt_entry_never_changes": ("reservations_receiptentry", "UPDATE", "true"),
    "receipt_entry_is_never_deleted": ("reservations_receiptentry", "DELETE", "true"),
    "receipt_series_never_falls": (
        "reservations_receiptseries",
        "UPDATE",
        "NEW.last_number < OLD.last_number",
    ),
}
POSTGRESQL = """
    CREATE FUNCTION reservations_refuse_receipt_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a receipt never changes' USING ERRCODE = 'check_violation'; END $$;
"""
SQLITE_CHANGES = "NEW.content <> '{{}}' OR {changes}"
POSTGRESQL_CHANGES = """
    NEW.content <> '{}' OR to_jsonb(NEW) - 'content' <> to_jsonb(OLD) - 'content'
"""


def create_triggers(apps, schema_editor):
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    changes, action = POSTGRESQL_CHANGES, "EXECUTE FUNCTION reservations_refuse_receipt_change()"
    if is_sqlite:
        fields = apps.get_model("reservations", "Receipt")._meta.concrete_fields
        columns = [field.column for field in fields if field.name != "content"]
        changed = " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in columns)
        changes = SQLITE_CHANGES.format(changes=changed)
        action = "BEGIN SELECT RAISE(ABORT, 'a receipt never changes'); END"
    else:
        schema_editor.execute(POSTGRESQL, params=None)
    for name, (table, event, condition) in TRIGGERS.items():
        refused = condition.format(changes=changes)
        schema_editor.execute(
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW WHEN ({refused}) {action}",
            params=None,
        )


def drop_triggers(apps, schema_editor):
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    for name, (table, *_) in TRIGGERS.items():
        place = "" if is_sqlite else f" ON {table}"
        schema_editor.execute(f"DROP TRIGGER {name}{place}", params=None)
    if not is_sqlite:
        schema_editor.execute("DROP FUNCTION reservations_refuse_receipt_change()", params=None)


class Migration(migrations.Migration):
    dependencies = [("reservations", "0002_roles")]
    operations = [migrations.RunPython(create_triggers, drop_triggers)]
