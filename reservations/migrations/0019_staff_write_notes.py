import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0018_managers_override_refunds"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Note",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField(max_length=2000)),
                ("created_at", models.DateTimeField()),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "customer",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "reservation",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notes",
                        to="reservations.reservation",
                    ),
                ),
            ],
            options={
                "default_permissions": ("view", "add", "delete"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("customer__isnull", False), ("reservation__isnull", True)),
                            models.Q(("customer__isnull", True), ("reservation__isnull", False)),
                            _connector="OR",
                        ),
                        name="note_is_about_a_reservation_or_a_customer",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True), name="note_is_not_empty"
                    ),
                ],
            },
        ),
    ]
