from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0004_opening_hours_may_end_on_the_next_day"),
    ]

    operations = [
        migrations.AddField(
            model_name="center",
            name="hours_changed_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="center",
            name="address_changed_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
