import re

from django.db import migrations
from django.db.models import Q

DASHES = re.compile(r"(?<=\d)[-‐‑‒–—―−ー](?=\d)")  # noqa: RUF001 (dashes)


def add_spellings(apps, schema_editor):
    """Add numbers without their dash, and the postal code without dash and space."""
    centers = apps.get_model("centers", "Center").objects
    divided = Q(postal_code_folded__regex="[^0-9a-z]") | Q(
        search_text__regex="[0-9][^0-9a-z ][0-9]"
    )
    rows = centers.filter(divided).values_list("pk", "search_text", "postal_code_folded")
    for pk, text, postal_code in rows.iterator():
        lines = text.split("\n")
        lines += [DASHES.sub("", line) for line in lines]
        lines.append("".join(filter(str.isalnum, postal_code)))
        # Not if staff have just saved the center: its text is newer.
        same = centers.filter(pk=pk, search_text=text)
        same.update(search_text="\n".join(dict.fromkeys(filter(None, lines))))


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0003_labels_of_switches_read_as_words"),
    ]

    operations = [
        migrations.RunPython(add_spellings, migrations.RunPython.noop),
    ]
