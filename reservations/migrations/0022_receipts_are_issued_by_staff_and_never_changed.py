"""Roles may issue and see receipts, and the database refuses to change one (B28)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

SEE = ("reservations.view_receipt",)
ISSUE = ("reservations.add_receipt", *SEE)
SET_UP = (
    *ISSUE,
    "reservations.add_seller",
    "reservations.change_seller",
    "reservations.delete_seller",
    "reservations.view_seller",
)
PERMISSIONS = {"Desk": ISSUE, "Manager": SET_UP, "Accountant": SET_UP}

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
# Not of deletions: tests empty the tables by DELETE.
SQLITE = """
    CREATE TRIGGER receipt_never_changes BEFORE UPDATE ON reservations_receipt
    WHEN NEW.content <> '{}' OR NEW.number <> OLD.number OR NEW.total <> OLD.total
        OR NEW.type <> OLD.type OR NEW.reservation_id <> OLD.reservation_id
        OR NEW.issued_at <> OLD.issued_at
    BEGIN SELECT RAISE(ABORT, 'a receipt never changes'); END
"""


def extend_roles(apps, schema_editor):
    # Django creates permissions only after the last migration.
    config = apps.get_app_config("reservations")
    before, config.models_module = getattr(config, "models_module", None), True
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = before
    permissions = apps.get_model("auth", "Permission").objects
    for name, granted in PERMISSIONS.items():
        codenames = [each.partition(".")[2] for each in granted]
        rows = permissions.filter(content_type__app_label="reservations", codename__in=codenames)
        # A company can have renamed or deleted the role.
        for group in apps.get_model("auth", "Group").objects.filter(name=name):
            group.permissions.add(*rows)


def create_triggers(apps, schema_editor):
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    schema_editor.execute(SQLITE if is_sqlite else POSTGRESQL, params=None)


def drop_triggers(apps, schema_editor):
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    schema_editor.execute(
        "DROP TRIGGER receipt_never_changes" if is_sqlite else UNDO_POSTGRESQL, params=None
    )


class Migration(migrations.Migration):
    dependencies = [("reservations", "0021_receipts_and_their_sellers")]
    operations = [
        migrations.RunPython(extend_roles, migrations.RunPython.noop),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
