from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("backoffice", "0002_audit_log_has_entries"),
    ]

    operations = [
        migrations.AddField(
            model_name="auditentry",
            name="unpublished_event",
            field=models.JSONField(
                editable=False,
                help_text="What webhooks have to report of it; then empty.",
                null=True,
            ),
        ),
    ]
