from django.db import migrations, models


def rename_state(old, new):
    def rename(apps, schema_editor):
        messages = apps.get_model("accounts", "OutboxMessage").objects
        messages.filter(state=old).update(state=new)

    return rename


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_user_knows_the_last_change_of_the_second_factor")]

    operations = [
        migrations.RemoveConstraint("outboxmessage", "outbox_message_state_is_known"),
        migrations.RemoveIndex("outboxmessage", "outbox_message_given_up"),
        migrations.AlterField(
            "outboxmessage",
            "state",
            models.CharField(
                choices=[("waiting", "Waiting"), ("sent", "Sent"), ("failed", "Failed")],
                default="waiting",
                max_length=10,
            ),
        ),
        migrations.RunPython(
            rename_state("given up", "failed"), rename_state("failed", "given up")
        ),
        migrations.AddIndex(
            "outboxmessage",
            models.Index(
                condition=models.Q(("state", "failed")),
                fields=["created_at"],
                name="outbox_message_failed",
            ),
        ),
        migrations.AddConstraint(
            "outboxmessage",
            models.CheckConstraint(
                condition=models.Q(("state__in", ["waiting", "sent", "failed"])),
                name="outbox_message_state_is_known",
            ),
        ),
    ]
