from django.db import migrations, models

from roombook.db.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("reservations", "0012_webhook_events_name_the_former_center"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="webhookevent",
            index=models.Index(
                condition=models.Q(("former_center_id__isnull", False)),
                fields=["former_center_id", "id"],
                name="webhook_event_by_former_center",
            ),
        ),
    ]
