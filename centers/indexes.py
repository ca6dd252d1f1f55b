"""Indexes that only PostgreSQL has, within one set of migrations for every database."""

from typing import Any

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.operations import TrigramExtension
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate
from django.db.models.indexes import IndexExpression

# What django.contrib.postgres does for an index of expressions, without the rest of that app.
IndexExpression.register_wrappers(OrderBy, OpClass, Collate)


class Trigrams(TrigramExtension):
    """pg_trgm on PostgreSQL, nothing elsewhere; stays when the migration is taken back.

    Another application of the same database may use it by then.
    """

    def database_backwards(self, *args: object) -> None:
        pass


# Migrations run what create_sql returns: elsewhere it must be something, and do nothing.
NO_OP_SQL = "SELECT 1"


class PostgresGinIndex(GinIndex):
    """A GIN index on PostgreSQL, nothing elsewhere (a small database is read through).

    Named in migrations: stays in this module.
    """

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().create_sql(model, schema_editor, using=using, **kwargs)

    def remove_sql(self, model: Any, schema_editor: Any, **kwargs: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().remove_sql(model, schema_editor, **kwargs)
