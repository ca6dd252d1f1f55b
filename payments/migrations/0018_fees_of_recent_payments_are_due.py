from datetime import timedelta

from django.db import migrations
from django.db.models.functions import Now


def request_recent_fees(apps, schema_editor):
    """Older payments have no fee: the statements of the gateway list those."""
    payments = apps.get_model("payments", "Payment").objects
    recent = payments.filter(captured_at__gte=Now() - timedelta(days=31))
    recent.filter(gateway__in=["sandbox", "stripe"]).update(fees_due_at=Now())


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0017_payments_have_an_index_of_fees_that_are_due"),
    ]

    operations = [
        migrations.RunPython(request_recent_fees, migrations.RunPython.noop),
    ]
