from django.db import migrations, models

from roombook.db.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("payments", "0006_authorizations_can_be_renewed"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="payment",
            index=models.Index(
                condition=models.Q(("spare_key__isnull", False)),
                fields=["spare_key"],
                name="payment_by_spare_key",
            ),
        ),
    ]
