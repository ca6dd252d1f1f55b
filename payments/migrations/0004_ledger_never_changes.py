"""The database refuses to change or delete a line of the ledger."""

from django.db import migrations

POSTGRESQL = """
    CREATE FUNCTION payments_refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        RAISE EXCEPTION 'a line of the ledger never changes' USING ERRCODE = 'check_violation';
    END $$;
    CREATE TRIGGER ledger_line_never_changes BEFORE UPDATE OR DELETE ON payments_ledgerline
    FOR EACH ROW EXECUTE FUNCTION payments_refuse_ledger_change();
"""
UNDO_POSTGRESQL = """
    DROP TRIGGER ledger_line_never_changes ON payments_ledgerline;
    DROP FUNCTION payments_refuse_ledger_change();
"""
EVENTS = ("UPDATE", "DELETE")


def create_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL, params=None)
        return
    for event in EVENTS:
        schema_editor.execute(
            f"CREATE TRIGGER ledger_line_never_changes_{event} BEFORE {event}"
            " ON payments_ledgerline"
            " BEGIN SELECT RAISE(ABORT, 'a line of the ledger never changes'); END",
            params=None,
        )


def drop_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(UNDO_POSTGRESQL, params=None)
        return
    for event in EVENTS:
        schema_editor.execute(f"DROP TRIGGER ledger_line_never_changes_{event}", params=None)


class Migration(migrations.Migration):
    dependencies = [("payments", "0003_ledger")]
    operations = [migrations.RunPython(create_triggers, drop_triggers)]
