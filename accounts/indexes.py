"""Indexes that only PostgreSQL has, within one set of migrations for every database."""

from typing import Any

from django.contrib.postgres.indexes import OpClass
from django.db.models import Index
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate, Lower
from django.db.models.indexes import IndexExpression

# What django.contrib.postgres does for an index of expressions, without the rest of that app.
IndexExpression.register_wrappers(OrderBy, OpClass, Collate)

# Migrations run what create_sql returns: elsewhere it must be something, and do nothing.
NO_OP_SQL = "SELECT 1"


class PrefixIndex(Index):
    """For `Lower(column) LIKE 'abc%'`: PostgreSQL needs an index of its own for that. Nothing
    elsewhere (a small database is read through).

    Named in migrations: stays in this module.
    """

    def __init__(self, *expressions: Any, column: str = "", **kwargs: Any) -> None:
        if column:
            expressions = (OpClass(Lower(column), name="text_pattern_ops"),)
        super().__init__(*expressions, **kwargs)

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().create_sql(model, schema_editor, using=using, **kwargs)

    def remove_sql(self, model: Any, schema_editor: Any, **kwargs: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().remove_sql(model, schema_editor, **kwargs)
