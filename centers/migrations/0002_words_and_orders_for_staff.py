"""Words of constraints that staff meet, and the orders and searches of the back office's lists."""

import django.contrib.postgres.indexes
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import centers.indexes


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name="closure",
            index=models.Index(fields=["starts_at", "id"], name="closure_by_start"),
        ),
        migrations.AddIndex(
            model_name="meetingroom",
            index=centers.indexes.PostgresGinIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Upper("name"), name="gin_trgm_ops"
                ),
                name="room_name_parts",
            ),
        ),
        migrations.AlterConstraint(
            model_name="center",
            name="center_tax_is_a_percentage",
            constraint=models.CheckConstraint(
                condition=models.Q(("tax_rate__range", (0, 100))),
                name="center_tax_is_a_percentage",
                violation_error_message="The tax is a percentage, 0 to 100.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="favorite",
            name="favorite_once_an_account",
            constraint=models.UniqueConstraint(
                fields=("user", "center"),
                name="favorite_once_an_account",
                violation_error_message="This center is already a favorite of the account.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="meetingroom",
            name="room_seats_somebody",
            constraint=models.CheckConstraint(
                condition=models.Q(("capacity__gte", 1)),
                name="room_seats_somebody",
                violation_error_message="A room has at least one seat.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="openinghours",
            name="opening_hours_on_a_weekday",
            constraint=models.CheckConstraint(
                condition=models.Q(("weekday__range", (0, 6))),
                name="opening_hours_on_a_weekday",
                violation_error_message="A weekday is 0 (Monday) to 6 (Sunday).",
            ),
        ),
        migrations.AlterConstraint(
            model_name="openinghours",
            name="opening_hours_once_a_start",
            constraint=models.UniqueConstraint(
                fields=("center", "weekday", "opens"),
                name="opening_hours_once_a_start",
                violation_error_message="The center opens at this time of this day already.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="rate",
            name="rate_name_unique_in_center",
            constraint=models.UniqueConstraint(
                models.F("center"),
                django.db.models.functions.text.Lower("name"),
                name="rate_name_unique_in_center",
                violation_error_message="This center already has a rate with this name.",
            ),
        ),
    ]
