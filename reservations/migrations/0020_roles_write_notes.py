"""Desk and Manager write notes, and Accountants read them; Managers delete notes of others (B18)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

PERMISSIONS = {
    "Desk": ("reservations.view_note", "reservations.add_note"),
    "Manager": ("reservations.view_note", "reservations.add_note", "reservations.delete_note"),
    "Accountant": ("reservations.view_note",),
}


def extend_roles(apps, schema_editor):
    # Django creates permissions only after the last migration.
    config = apps.get_app_config("reservations")
    before, config.models_module = getattr(config, "models_module", None), True
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = before
    for name, permissions in PERMISSIONS.items():
        rows = apps.get_model("auth", "Permission").objects.filter(
            content_type__app_label="reservations",
            codename__in=[permission.partition(".")[2] for permission in permissions],
        )
        # A company can have renamed or deleted the role.
        for group in apps.get_model("auth", "Group").objects.filter(name=name):
            group.permissions.add(*rows)


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0019_staff_write_notes"),
    ]
    operations = [migrations.RunPython(extend_roles, migrations.RunPython.noop)]
