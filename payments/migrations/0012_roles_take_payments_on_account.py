"""Managers take payments on account; they and accountants record when the money comes in (B26)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

PERMISSIONS = {
    "Manager": ("payments.take_on_account", "payments.mark_received"),
    "Accountant": ("payments.mark_received",),
}


def extend_roles(apps, schema_editor):
    # Django creates permissions only after the last migration.
    config = apps.get_app_config("payments")
    before, config.models_module = getattr(config, "models_module", None), True
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = before
    for name, permissions in PERMISSIONS.items():
        rows = apps.get_model("auth", "Permission").objects.filter(
            content_type__app_label="payments",
            codename__in=[permission.partition(".")[2] for permission in permissions],
        )
        # A company can have renamed or deleted the role.
        for group in apps.get_model("auth", "Group").objects.filter(name=name):
            group.permissions.add(*rows)


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0011_payments_have_an_index_of_receivables"),
        ("reservations", "0002_roles"),
    ]
    operations = [migrations.RunPython(extend_roles, migrations.RunPython.noop)]
