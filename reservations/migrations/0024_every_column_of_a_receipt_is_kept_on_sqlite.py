"""SQLite refuses changes of all columns of a receipt, as PostgreSQL does (B28.4)."""

from django.db import migrations

# As in 0022: what a document says may be emptied, once it need not be kept any longer.
TRIGGER = """
    CREATE TRIGGER receipt_never_changes BEFORE UPDATE ON reservations_receipt
    WHEN NEW.content <> '{{}}' OR {changes}
    BEGIN SELECT RAISE(ABORT, 'a receipt never changes'); END
"""


def replace_trigger(apps, schema_editor):
    if schema_editor.connection.vendor != "sqlite":
        return
    fields = apps.get_model("reservations", "Receipt")._meta.concrete_fields
    columns = [field.column for field in fields if field.name != "content"]
    changes = " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in columns)
    schema_editor.execute("DROP TRIGGER receipt_never_changes", params=None)
    schema_editor.execute(TRIGGER.format(changes=changes), params=None)


class Migration(migrations.Migration):
    dependencies = [("reservations", "0023_payment_links_can_be_cancelled")]
    operations = [migrations.RunPython(replace_trigger, migrations.RunPython.noop)]
