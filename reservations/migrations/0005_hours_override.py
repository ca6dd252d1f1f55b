from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0004_what_became_cheaper"),
    ]

    operations = [
        migrations.AddField(
            model_name="reservation",
            name="hours_override_reason",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Why a manager allowed it; for this time only.",
                max_length=255,
                verbose_name="booked outside opening hours",
            ),
        ),
    ]
