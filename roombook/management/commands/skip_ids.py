from django.apps import apps
from django.core.management.base import BaseCommand
from django.db import connection, models, transaction

SKIPPED = 1_000_000


class Command(BaseCommand):
    """Numbers that were given after the restored state are known outside of the database.

    A customer's app has them, and integrators have cursors and versions. A second run is harmless.
    """

    help = "Skip a million ids in every table after a restore, so that no lost id is used again."

    def handle(self, *args: object, **options: object) -> None:
        columns = {
            model._meta.db_table: str(model._meta.pk.column)
            for model in apps.get_models()
            if model._meta.managed and isinstance(model._meta.pk, models.AutoField)
        }
        skip = skip_on_postgresql if connection.vendor == "postgresql" else skip_on_sqlite
        with transaction.atomic():
            for table, column in columns.items():
                skip(table, column)
        self.stdout.write(f"Skipped {SKIPPED} ids in each of {len(columns)} tables.")


def skip_on_postgresql(table: str, column: str) -> None:
    # Unlike setval(), ALTER SEQUENCE is rolled back with the transaction.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [table, column])
        [sequence] = cursor.fetchone()
        cursor.execute(f"SELECT last_value FROM {sequence}")
        [last] = cursor.fetchone()
        cursor.execute(f"ALTER SEQUENCE {sequence} RESTART WITH {last + SKIPPED}")


def skip_on_sqlite(table: str, column: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sqlite_sequence SET seq = seq + %s WHERE name = %s", [SKIPPED, table]
        )
        if cursor.rowcount == 0:  # The table never had a row.
            cursor.execute("INSERT INTO sqlite_sequence VALUES (%s, %s)", [table, SKIPPED])
