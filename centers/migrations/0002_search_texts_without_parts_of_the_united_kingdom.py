from django.db import migrations

from roombook.places import fold_text

PARTS = {
    "england",
    "scotland",
    "wales",
    "united kingdom of great britain and northern ireland",
}


def remove_parts(apps, schema_editor):
    """Remove the parts of the country from the search texts, except where a center names them."""
    for center in apps.get_model("centers", "Center").objects.filter(country="GB"):
        own = [center.name, center.street1, center.street2, center.street3, center.city]
        own += [center.state, center.state_name_folded, center.postal_code]
        if center.neighborhood is not None:
            own += [center.neighborhood.name, center.neighborhood.original_name]
        own += [landmark.name for landmark in center.landmarks.all()]
        kept = PARTS.intersection(map(fold_text, own))
        lines = center.search_text.split("\n")
        center.search_text = "\n".join(line for line in lines if line not in PARTS - kept)
        center.save(update_fields=["search_text"])


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(remove_parts, migrations.RunPython.noop),
    ]
