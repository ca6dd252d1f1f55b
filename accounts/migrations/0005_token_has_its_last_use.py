from django.db import migrations, models
from django.utils import timezone


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_account_fields_refuse_card_numbers")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="last_used_at",
            # When existing tokens were used is unknown.
            field=models.DateTimeField(default=timezone.now, editable=False),
            preserve_default=False,
        ),
    ]
