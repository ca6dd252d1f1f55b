"""The roles of staff as groups, with the permissions of each (B18)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

CENTER_PARTS = (
    "closure",
    "openinghours",
    "centerimage",
    "landmark",
    "meetingroom",
    "rate",
    "pricelist",
    "terms",
    "service",
)
BENEFITS = ("promocode", "allowance", "partner")


def permissions_of(actions, app, models):
    return {f"{app}.{action}_{model}" for action in actions for model in models}


VIEWER = (
    permissions_of(["view"], "centers", ["center", "neighborhood", "resourcetype", *CENTER_PARTS])
    | permissions_of(
        ["view"], "reservations", ["reservation", "lineitem", "chosenservice", "priceadjustment"]
    )
    | permissions_of(["view"], "reservations", ["allowanceuse", "promoredemption"])
)
DESK = (
    VIEWER
    | permissions_of(["add", "change"], "reservations", ["reservation"])
    | {"reservations.bill_extra", "accounts.correct_user"}
    | permissions_of(["view"], "reservations", ["attendee"])
    | permissions_of(["view", "add"], "reservations", ["note", "receipt"])
    | permissions_of(["view"], "payments", ["payment", "refund", "dispute", "ledgerline"])
    | permissions_of(["view", "add"], "accounts", ["user"])
)
MANAGER = (
    DESK
    | {
        "reservations.adjust_price",
        "reservations.override_opening_hours",
        "reservations.override_refund",
        "reservations.see_reports",
        "payments.take_on_account",
        "payments.mark_received",
    }
    | permissions_of(["add", "change", "delete"], "centers", CENTER_PARTS)
    | permissions_of(["add", "change"], "centers", ["center", "neighborhood"])
    | permissions_of(["view", "add", "change"], "reservations", BENEFITS)
    | permissions_of(["view"], "reservations", ["allowanceentry"])
    | permissions_of(["delete"], "reservations", ["note"])
    | permissions_of(
        ["view", "add", "change", "delete"], "reservations", ["seller", "webhookendpoint"]
    )
    | permissions_of(["view", "change"], "reservations", ["webhookdelivery"])
    | permissions_of(["change"], "payments", ["refund"])
    | permissions_of(["change"], "accounts", ["user"])
)
ACCOUNTANT = (
    VIEWER
    | permissions_of(["view"], "reservations", ["attendee", "allowanceentry", "note", *BENEFITS])
    | permissions_of(["view", "add", "change", "delete"], "reservations", ["seller"])
    | permissions_of(["view", "add"], "reservations", ["receipt"])
    | permissions_of(["view"], "payments", ["payment", "refund", "dispute", "ledgerline"])
    | permissions_of(["view", "change"], "payments", ["unknownpayment"])
    | permissions_of(["view"], "accounts", ["user"])
    | permissions_of(["view"], "backoffice", ["auditentry"])
    | permissions_of(["change"], "payments", ["refund"])
    | {"reservations.see_reports", "payments.mark_received"}
)
ROLES = {"Viewer": VIEWER, "Desk": DESK, "Manager": MANAGER, "Accountant": ACCOUNTANT}


def create_roles(apps, schema_editor):
    # Django creates permissions only after the last migration.
    for app in ("accounts", "centers", "payments", "reservations", "backoffice"):
        config = apps.get_app_config(app)
        before, config.models_module = getattr(config, "models_module", None), True
        create_permissions(config, apps=apps, verbosity=0)
        config.models_module = before
    Permission = apps.get_model("auth", "Permission")
    known = {
        f"{permission.content_type.app_label}.{permission.codename}": permission
        for permission in Permission.objects.select_related("content_type")
    }
    for name, permissions in ROLES.items():
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        group.permissions.add(*(known[permission] for permission in sorted(permissions)))


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_initial"),
        ("backoffice", "0001_initial"),
        ("centers", "0001_initial"),
        ("payments", "0002_initial"),
        ("reservations", "0001_initial"),
    ]
    operations = [migrations.RunPython(create_roles, migrations.RunPython.noop)]
