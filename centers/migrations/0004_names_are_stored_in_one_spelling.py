from django.db import migrations

from roombook.places import fold_text
from roombook.texts import clean_line

# Models with names, and within what a name is unique.
NAMED = {
    "Center": None,
    "MeetingRoom": ("center_id",),
    "Rate": ("center_id",),
    "Service": ("center_id",),
    "ResourceType": (),
    "Neighborhood": ("city", "state"),
}


def clean_names(apps, schema_editor):
    """Store names as `LineField` does. Where two names become one, the later one stays as it is."""
    for model, scope in NAMED.items():
        rows = apps.get_model("centers", model).objects
        for row in rows.only("name", *(scope or ())).order_by("pk").iterator(chunk_size=1000):
            name = clean_line(row.name)
            if name == row.name or not name:
                continue
            others = rows.filter(name__iexact=name).exclude(pk=row.pk)
            is_taken = (
                scope is not None
                and others.filter(**{field: getattr(row, field) for field in scope}).exists()
            )
            if not is_taken:
                rows.filter(pk=row.pk).update(name=name)


def fold_again(apps, schema_editor):
    """Fold what searches read as `fold_text` does now: without invisible characters."""
    rows = apps.get_model("centers", "Center").objects
    columns = ["name_folded", "city_folded", "state_folded", "state_name_folded"]
    columns.append("postal_code_folded")
    for row in rows.only("search_text", *columns).iterator(chunk_size=1000):
        folded = {column: fold_text(getattr(row, column)) for column in columns}
        lines = filter(None, map(fold_text, row.search_text.split("\n")))
        folded["search_text"] = "\n".join(dict.fromkeys(lines))
        if any(getattr(row, column) != text for column, text in folded.items()):
            rows.filter(pk=row.pk).update(**folded)


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0003_labels_of_switches_read_as_words"),
    ]

    operations = [
        migrations.RunPython(clean_names, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(fold_again, migrations.RunPython.noop, elidable=True),
    ]
