import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0003_labels_of_switches_read_as_words"),
        ("payments", "0018_fees_of_recent_payments_are_due"),
    ]

    operations = [
        migrations.AddField(
            model_name="payment",
            name="cash_center",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="centers.center",
                verbose_name="cash counted at",
            ),
        ),
    ]
