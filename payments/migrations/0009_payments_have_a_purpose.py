from django.db import migrations, models

from roombook.db.indexes import AddUniqueConstraintWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("payments", "0008_sandbox_setups_name_their_card"),
    ]

    operations = [
        migrations.AddField(
            model_name="payment",
            name="purpose",
            field=models.CharField(
                choices=[("booking", "Booking"), ("change", "Change")],
                db_default="booking",
                default="booking",
                max_length=10,
            ),
        ),
        AddUniqueConstraintWithoutLock(
            model_name="payment",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("purpose", "booking"),
                    ("state__in", ["started", "authorized", "captured"]),
                ),
                fields=("reservation",),
                name="payment_one_open_for_booking",
            ),
        ),
        AddUniqueConstraintWithoutLock(
            model_name="payment",
            constraint=models.UniqueConstraint(
                condition=models.Q(("purpose", "change"), ("state__in", ["started", "authorized"])),
                fields=("reservation",),
                name="payment_one_open_for_change",
            ),
        ),
        migrations.RemoveConstraint(
            model_name="payment",
            name="payment_one_open_per_reservation",
        ),
    ]
