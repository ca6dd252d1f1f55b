"""Managers set up webhooks for their centers, and see their deliveries (B25)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

PERMISSIONS = (
    "reservations.add_webhookendpoint",
    "reservations.change_webhookendpoint",
    "reservations.delete_webhookendpoint",
    "reservations.view_webhookendpoint",
    "reservations.change_webhookdelivery",
    "reservations.view_webhookdelivery",
)


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
        ("reservations", "0010_webhooks"),
    ]
    operations = [migrations.RunPython(extend_role, migrations.RunPython.noop)]
