from django.db import migrations, models

import roombook.money


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0002_payments_know_the_uid_of_their_reservation"),
    ]

    operations = [
        migrations.CreateModel(
            name="GatewayCheckpoint",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("gateway", models.CharField(max_length=20, unique=True)),
                ("compared_until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="UnknownPayment",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("gateway", models.CharField(max_length=20)),
                ("key", models.UUIDField(unique=True)),
                ("reference", models.CharField(blank=True, max_length=255)),
                ("description", models.CharField(blank=True, max_length=255)),
                ("amount", roombook.money.MoneyField(decimal_places=2, default=0, max_digits=12)),
                ("currency", models.CharField(blank=True, max_length=3)),
                (
                    "created_at",
                    models.DateTimeField(help_text="When it was made at the gateway.", null=True),
                ),
                ("found_at", models.DateTimeField(editable=False)),
                ("resolved_at", models.DateTimeField(db_index=True, null=True)),
                (
                    "resolution",
                    models.CharField(
                        blank=True, help_text="voided, refunded, kept ...", max_length=20
                    ),
                ),
            ],
        ),
    ]
