from django.db import migrations, models

COPY = """
    UPDATE payments_payment SET reservation_uid =
      (SELECT uid FROM reservations_reservation WHERE id = payments_payment.reservation_id)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0001_initial"),
        ("reservations", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="payment",
            name="reservation_uid",
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.RunSQL(COPY, migrations.RunSQL.noop),
    ]
