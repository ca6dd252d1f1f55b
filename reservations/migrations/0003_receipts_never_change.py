"""The database refuses to change or delete a receipt (B28.4)."""

from django.db import migrations

# Only what a document says may be emptied, once it need not be kept any longer.
POSTGRESQL = """
    CREATE FUNCTION reservations_refuse_receipt_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a receipt never changes' USING ERRCODE = 'check_violation'; END $$;
    CREATE TRIGGER receipt_never_changes BEFORE UPDATE ON reservations_receipt FOR EACH ROW
    WHEN (NEW.content <> '{}' OR to_jsonb(NEW) - 'content' <> to_jsonb(OLD) - 'content')
    EXECUTE FUNCTION reservations_refuse_receipt_change();
    CREATE TRIGGER receipt_is_never_deleted BEFORE DELETE ON reservations_receipt FOR EACH ROW
    EXECUTE FUNCTION reservations_refuse_receipt_change();
"""
UNDO_POSTGRESQL = """
    DROP TRIGGER receipt_never_changes ON reservations_receipt;
    DROP TRIGGER receipt_is_never_deleted ON reservations_receipt;
    DROP FUNCTION reservations_refuse_receipt_change();
"""
SQLITE = """
    CREATE TRIGGER receipt_never_changes BEFORE UPDATE ON reservations_receipt
    WHEN NEW.content <> '{{}}' OR {changes}
    BEGIN SELECT RAISE(ABORT, 'a receipt never changes'); END
"""
SQLITE_DELETE = """
    CREATE TRIGGER receipt_is_never_deleted BEFORE DELETE ON reservations_receipt
    BEGIN SELECT RAISE(ABORT, 'a receipt never changes'); END
"""
NAMES = ("receipt_never_changes", "receipt_is_never_deleted")


def create_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        fields = apps.get_model("reservations", "Receipt")._meta.concrete_fields
        columns = [field.column for field in fields if field.name != "content"]
        changes = " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in columns)
        schema_editor.execute(SQLITE.format(changes=changes), params=None)
        schema_editor.execute(SQLITE_DELETE, params=None)
    else:
        schema_editor.execute(POSTGRESQL, params=None)


def drop_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for name in NAMES:
            schema_editor.execute(f"DROP TRIGGER {name}", params=None)
    else:
        schema_editor.execute(UNDO_POSTGRESQL, params=None)


class Migration(migrations.Migration):
    dependencies = [("reservations", "0002_roles")]
    operations = [migrations.RunPython(create_triggers, drop_triggers)]
