from django.db import migrations, models

from roombook.db.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("backoffice", "0003_audit_entries_carry_their_event"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("unpublished_event__isnull", False)),
                fields=["id"],
                name="audit_entry_unpublished",
            ),
        ),
    ]
