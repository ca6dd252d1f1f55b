from django.db import migrations

from reservations.models.codes import normalize_code


def normalize_codes(apps, schema_editor):
    """Store codes as new ones. Where two become one, the later one stays: no customer can use it."""
    for model in ("PromoCode", "Partner"):
        rows = apps.get_model("reservations", model).objects
        for pk, stored in rows.order_by("pk").values_list("pk", "code"):
            code = normalize_code(stored)
            if code != stored and not rows.filter(code=code).exists():
                rows.filter(pk=pk).update(code=code)


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0024_every_column_of_a_receipt_is_kept_on_sqlite"),
    ]

    operations = [
        migrations.RunPython(normalize_codes, migrations.RunPython.noop, elidable=True),
    ]
