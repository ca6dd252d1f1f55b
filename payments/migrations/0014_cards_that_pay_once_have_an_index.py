from django.db import migrations, models

from roombook.db.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("payments", "0013_cards_can_pay_once"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="paymentsetup",
            index=models.Index(
                condition=models.Q(("reservation__isnull", False)),
                fields=["reservation"],
                name="payment_setup_one_time",
            ),
        ),
    ]
