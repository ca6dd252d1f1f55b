import datetime as dt

from django.db import migrations, models
from django.db.models import F, Q

MIDNIGHT = dt.time()


def split_at_midnight(apps, schema_editor):
    """Former versions know no interval over midnight: it becomes two, which touch there."""
    rows = apps.get_model("centers", "OpeningHours").objects
    for row in rows.filter(closes__lt=F("opens")).exclude(closes=MIDNIGHT):
        rows.update_or_create(
            center_id=row.center_id,
            weekday=(row.weekday + 1) % 7,
            opens=MIDNIGHT,
            defaults={"closes": row.closes},
        )
        row.closes = MIDNIGHT
        row.save(update_fields=["closes"])


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0003_labels_of_switches_read_as_words"),
    ]

    operations = [
        migrations.AlterField(
            model_name="openinghours",
            name="closes",
            field=models.TimeField(
                help_text="00:00 is midnight at the end of the day; before opening is on the next"
                " day."
            ),
        ),
        migrations.RemoveConstraint(
            model_name="openinghours", name="opening_hours_open_before_they_close"
        ),
        migrations.AddConstraint(
            model_name="openinghours",
            constraint=models.CheckConstraint(
                condition=~Q(closes=F("opens")) | Q(closes=MIDNIGHT),
                name="opening_hours_close_at_another_time",
                violation_error_message="Opening and closing differ; 24 hours are 00:00 to 00:00.",
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, split_at_midnight),
    ]
