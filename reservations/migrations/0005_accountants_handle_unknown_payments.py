"""Accountants void, refund or keep the payments that only the gateway knows (B16.9)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

PERMISSIONS = ("payments.change_unknownpayment", "payments.view_unknownpayment")


def extend_role(apps, schema_editor):
    # Django creates permissions only after the last migration.
    config = apps.get_app_config("payments")
    before, config.models_module = getattr(config, "models_module", None), True
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = before
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="payments",
        codename__in=[name.partition(".")[2] for name in PERMISSIONS],
    )
    # A company can have renamed or deleted the role.
    for group in apps.get_model("auth", "Group").objects.filter(name="Accountant"):
        group.permissions.add(*permissions)


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0003_unknown_payments_of_gateways"),
        ("reservations", "0004_released_drafts_keep_the_end_of_their_hold"),
    ]
    operations = [migrations.RunPython(extend_role, migrations.RunPython.noop)]
