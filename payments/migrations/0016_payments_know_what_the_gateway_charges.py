from django.db import migrations, models

import roombook.money


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0015_payments_know_whether_a_link_paid"),
    ]

    operations = [
        migrations.AddField(
            model_name="dispute",
            name="fee",
            field=roombook.money.MoneyField(
                blank=True,
                decimal_places=2,
                help_text="What the gateway charges for the dispute. Empty: it has not withdrawn money.",
                max_digits=12,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="payment",
            name="fee",
            field=roombook.money.MoneyField(
                blank=True,
                decimal_places=2,
                help_text="What the gateway charges for the payment. Empty: not known yet, or no gateway.",
                max_digits=12,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="payment",
            name="fees_due_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="refund",
            name="fee",
            field=roombook.money.MoneyField(
                blank=True,
                decimal_places=2,
                help_text="What the gateway charges for the refund. Empty: not known yet, or no gateway.",
                max_digits=12,
                null=True,
            ),
        ),
    ]
