from django.db import migrations, models

from roombook.db.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("payments", "0010_staff_take_payments_without_a_gateway"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="payment",
            index=models.Index(
                condition=models.Q(
                    ("gateway", "account"), ("received_at__isnull", True), ("state", "captured")
                ),
                fields=["reservation"],
                name="payment_receivable",
            ),
        ),
    ]
