from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0015_bookings_have_changes_that_cost_more"),
    ]

    operations = [
        migrations.AddField(
            model_name="reservation",
            name="checked_in_at",
            field=models.DateTimeField(
                blank=True, help_text="When the customer arrived at the center.", null=True
            ),
        ),
    ]
