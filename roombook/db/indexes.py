"""Indexes that only PostgreSQL has, in migrations that also run on SQLite."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations import AddConstraint, AddIndex
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


class AddIndexWithoutLock(AddIndexConcurrently):
    """Builds an index on PostgreSQL while the table is written. Its migration is not atomic."""

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        operation = _get_operation(schema_editor)
        operation.database_forwards(self, app_label, schema_editor, *states)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        operation = _get_operation(schema_editor)
        operation.database_backwards(self, app_label, schema_editor, *states)


class AddUniqueConstraintWithoutLock(AddConstraint):
    """Builds the index of a conditional unique constraint on PostgreSQL while the table is written.

    Its migration is not atomic. SQLite builds it as usual.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        elif self.allow_migrate_model(schema_editor.connection.alias, model):
            sql = str(self.constraint.create_sql(model, schema_editor))
            # Django has no operation for it.
            schema_editor.execute(
                sql.replace("CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX CONCURRENTLY", 1)
            )


def _get_operation(schema_editor: Any) -> type[AddIndex]:
    is_postgres = schema_editor.connection.vendor == "postgresql"
    return AddIndexConcurrently if is_postgres else AddIndex
