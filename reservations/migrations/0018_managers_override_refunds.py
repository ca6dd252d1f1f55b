"""Managers may refund another amount than the policy's when they cancel (B18)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

PERMISSIONS = ("reservations.override_refund",)


def extend_role(apps, schema_editor):
    # Django creates permissions only after the last migration.
    config = apps.get_app_config("reservations")
    before, config.models_module = getattr(config, "models_module", None), True
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = before
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="reservations",
        codename__in=[name.partition(".")[2] for name in PERMISSIONS],
    )
    # A company can have renamed or deleted the role.
    for group in apps.get_model("auth", "Group").objects.filter(name="Manager"):
        group.permissions.add(*permissions)


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0017_staff_can_override_refunds"),
    ]
    operations = [migrations.RunPython(extend_role, migrations.RunPython.noop)]
