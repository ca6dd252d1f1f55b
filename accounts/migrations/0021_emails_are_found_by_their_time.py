from django.db import migrations, models

from roombook.db.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("accounts", "0020_codes_know_the_network_that_requested_them"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="outboxmessage",
            index=models.Index(fields=["created_at"], name="outbox_message_by_time"),
        ),
    ]
