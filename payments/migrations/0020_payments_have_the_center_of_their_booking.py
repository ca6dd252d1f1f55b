from django.db import migrations
from django.db.models import Max, OuterRef, Subquery

BATCH = 10_000


def fill_centers(apps, schema_editor):
    """Fill the column in batches, so that no payment is locked for long."""
    payments = apps.get_model("payments", "Payment").objects
    reservations = apps.get_model("reservations", "Reservation").objects
    booking = reservations.filter(pk=OuterRef("reservation_id"))
    center = Subquery(booking.values("room__center_id")[:1])
    last = payments.aggregate(last=Max("pk"))["last"] or 0
    for first in range(0, last, BATCH):
        batch = payments.filter(pk__gt=first, pk__lte=first + BATCH, cash_center=None)
        batch.update(cash_center=center)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("payments", "0019_payments_know_the_center_of_their_cash"),
        ("reservations", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(fill_centers, migrations.RunPython.noop),
    ]
