from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0011_managers_set_up_webhooks"),
    ]

    operations = [
        migrations.AddField(
            model_name="webhookevent",
            name="former_center_id",
            field=models.IntegerField(
                help_text="The center that the reservation has left; most events have none.",
                null=True,
            ),
        ),
    ]
