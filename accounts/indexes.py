"""PostgreSQL indexes in migrations that also run on SQLite."""

from typing import Any

from django.contrib.postgres.indexes import OpClass
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Index, Model
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate, Lower
from django.db.models.indexes import IndexExpression

# django.contrib.postgres calls this if it is installed; we need nothing else of that app.
IndexExpression.register_wrappers(OrderBy, OpClass, Collate)

# A migration executes what create_sql returns, so it cannot be empty.
NO_OP_SQL = "SELECT 1"


class PrefixIndex(Index):
    """An index for ``LOWER(column) LIKE 'abc%'`` on PostgreSQL; none on SQLite.

    Migrations name this class: keep it in this module.
    """

    def __init__(self, *expressions: Any, column: str = "", **kwargs: Any) -> None:
        if column:
            expressions = (OpClass(Lower(column), name="text_pattern_ops"),)
        super().__init__(*expressions, **kwargs)

    def create_sql(
        self,
        model: type[Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **kwargs: Any,
    ) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().create_sql(model, schema_editor, using=using, **kwargs)

    def remove_sql(
        self, model: type[Model], schema_editor: BaseDatabaseSchemaEditor, **kwargs: Any
    ) -> str:
        if schema_editor.connection.vendor != "postgresql":
            return NO_OP_SQL
        return super().remove_sql(model, schema_editor, **kwargs)
