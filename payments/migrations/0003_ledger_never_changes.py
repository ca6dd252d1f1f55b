"""The database refuses to change or delete a line of the ledger."""

from django.db import migrations

POSTGRESQL = """
    CREATE FUNCTION payments_refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        RAISE EXCEPTION 'a line of the ledger never changes' USING ERRCODE = 'check_violation';
    END $$;
    CREATE TRIGGER ledger_line_never_changes BEFORE UPDATE OR DELETE OR TRUNCATE
    ON payments_ledgerline FOR EACH STATEMENT EXECUTE FUNCTION payments_refuse_ledger_change();
"""
UNDO_POSTGRESQL = """
    DROP TRIGGER ledger_line_never_changes ON payments_ledgerline;
    DROP FUNCTION payments_refuse_ledger_change();
"""
# INSERT OR REPLACE deletes rows without the trigger of deletions.
SQLITE = {
    "ledger_line_never_changes": "BEFORE UPDATE ON payments_ledgerline",
    "ledger_line_is_never_deleted": "BEFORE DELETE ON payments_ledgerline",
    "ledger_line_is_never_replaced": (
        "BEFORE INSERT ON payments_ledgerline"
        " WHEN EXISTS (SELECT 1 FROM payments_ledgerline WHERE id = NEW.id)"
    ),
}


def create_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL, params=None)
        return
    for name, event in SQLITE.items():
        refusal = "SELECT RAISE(ABORT, 'a line of the ledger never changes')"
        schema_editor.execute(f"CREATE TRIGGER {name} {event} BEGIN {refusal}; END", params=None)


def drop_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(UNDO_POSTGRESQL, params=None)
        return
    for name in SQLITE:
        schema_editor.execute(f"DROP TRIGGER {name}", params=None)


class Migration(migrations.Migration):
    dependencies = [("payments", "0002_initial")]
    operations = [migrations.RunPython(create_triggers, drop_triggers)]
