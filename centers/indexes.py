"""The extension and the indexes of centers. Migrations name them: keep them in this module."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import TrigramExtension

from roombook.db.indexes import PostgresOnlyMixin


class Trigrams(TrigramExtension):
    """pg_trgm on PostgreSQL, nothing on SQLite. It stays when the migration is reversed.

    Another application of the same database may use it by then.
    """

    def database_backwards(self, *args: object) -> None:
        pass


class PostgresGinIndex(PostgresOnlyMixin, GinIndex):
    """A GIN index on PostgreSQL; none on SQLite, where a small database is scanned."""
