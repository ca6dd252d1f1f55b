"""The indexes of accounts. Migrations name the classes: keep them in this module."""

from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Index, Model


class TrigramIndex(GinIndex):
    """An index for ``LIKE '%abc%'``: of trigrams on PostgreSQL.

    On SQLite it is a B-tree, which is read through instead of the larger table.
    """

    def create_sql(
        self,
        model: type[Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **kwargs: Any,
    ) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return Index(fields=self.fields, name=self.name).create_sql(model, schema_editor)
        return super().create_sql(model, schema_editor, using=using, **kwargs)
