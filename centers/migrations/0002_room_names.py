"""An index of parts of the names of rooms, which staff search: of trigrams on PostgreSQL."""

from django.db import migrations

CREATE_INDEX = """
    CREATE INDEX room_name_parts ON centers_meetingroom USING gin (upper(name) gin_trgm_ops)
"""


def create_index(apps, schema_editor):
    # SQLite has no such indexes, and the table of a small installation is read through.
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(CREATE_INDEX)


def drop_index(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX room_name_parts")


class Migration(migrations.Migration):
    dependencies = [("centers", "0001_initial")]
    operations = [migrations.RunPython(create_index, drop_index)]
