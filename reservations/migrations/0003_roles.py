"""The roles of staff, as groups: what each may do where it is given (B18)."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

CENTER_PARTS = (
    "closure",
    "openinghours",
    "centerimage",
    "landmark",
    "meetingroom",
    "rate",
    "service",
)
BENEFITS = ("promocode", "allowance", "partner")


def every(actions, app, models):
    return {f"{app}.{action}_{model}" for action in actions for model in models}


VIEWER = (
    every(["view"], "centers", ["center", "neighborhood", "resourcetype", *CENTER_PARTS])
    | every(
        ["view"], "reservations", ["reservation", "lineitem", "chosenservice", "priceadjustment"]
    )
    | every(["view"], "reservations", ["allowanceuse", "promoredemption"])
)
DESK = (
    VIEWER
    | every(["add", "change"], "reservations", ["reservation"])
    | every(["view"], "reservations", ["attendee"])
    | every(["view"], "payments", ["payment", "refund", "dispute"])
    | every(["view", "add"], "accounts", ["user"])
)
MANAGER = (
    DESK
    | {
        "reservations.adjust_price",
        "reservations.override_opening_hours",
        "reservations.see_reports",
    }
    | every(["add", "change", "delete"], "centers", CENTER_PARTS)
    | every(["add", "change"], "centers", ["center", "neighborhood"])
    | every(["view", "add", "change"], "reservations", BENEFITS)
    | every(["view"], "reservations", ["allowanceentry"])
    | every(["change"], "payments", ["refund"])
    | every(["change"], "accounts", ["user"])
)
ACCOUNTANT = (
    VIEWER
    | every(["view"], "reservations", ["attendee", "allowanceentry", *BENEFITS])
    | every(["view"], "payments", ["payment", "refund", "dispute"])
    | every(["view"], "accounts", ["user"])
    | every(["view"], "backoffice", ["auditentry"])
    | every(["change"], "payments", ["refund"])
    | {"reservations.see_reports"}
)
ROLES = {"Viewer": VIEWER, "Desk": DESK, "Manager": MANAGER, "Accountant": ACCOUNTANT}


def make_groups(apps, schema_editor):
    # Django makes permissions after the last migration only.
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
        ("accounts", "0002_center_roles"),
        ("backoffice", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("centers", "0001_initial"),
        ("payments", "0001_initial"),
        ("reservations", "0002_staff_permissions"),
    ]
    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
