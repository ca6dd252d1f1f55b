"""Indexes that only PostgreSQL has, in migrations that also run on SQLite."""

from typing import Any

from django.db.models import Index

# A migration executes what create_sql returns, so it cannot be empty.
NO_OP_SQL = "SELECT 1"


class PostgresOnlyMixin(Index):
    """An index on PostgreSQL; nothing on other databases."""

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().create_sql(model, schema_editor, using=using, **kwargs)

    def remove_sql(self, model: Any, schema_editor: Any, **kwargs: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().remove_sql(model, schema_editor, **kwargs)
