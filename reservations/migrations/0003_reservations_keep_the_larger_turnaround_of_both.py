import django.contrib.postgres.fields.ranges
from django.db import migrations, models

import reservations.models.constraints

# Two reservations that are closer than the turnaround of the later one, which was possible after a
# room's turnaround was reduced: they keep their times.
REDUCE_TURNAROUND_BEFORE = """
    UPDATE reservations_reservation SET occupied_from = start
    WHERE holds_slot AND EXISTS (
      SELECT 1 FROM reservations_reservation AS earlier
      WHERE earlier.room_id = reservations_reservation.room_id AND earlier.holds_slot
        AND earlier.start < reservations_reservation.start
        AND earlier."end" > reservations_reservation.occupied_from)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("reservations", "0002_roles"),
    ]

    operations = [
        migrations.RunSQL(REDUCE_TURNAROUND_BEFORE, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="reservation",
            constraint=reservations.models.constraints.PostgresExclusion(
                condition=models.Q(("holds_slot", True)),
                expressions=[
                    ("room", "="),
                    (
                        reservations.models.constraints.TimestampRange(
                            "occupied_from",
                            "end",
                            django.contrib.postgres.fields.ranges.RangeBoundary(),
                        ),
                        "&&",
                    ),
                ],
                name="reservation_holders_never_overlap_turnaround_before",
            ),
        ),
    ]
