from django.db import migrations, models

from roombook.db.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("payments", "0016_payments_know_what_the_gateway_charges"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="payment",
            index=models.Index(
                condition=models.Q(("fees_due_at__isnull", False)),
                fields=["fees_due_at"],
                name="payment_by_fees_due",
            ),
        ),
    ]
