"""The indexes of accounts. Migrations name the class: keep it in this module."""

from typing import Any

from django.contrib.postgres.indexes import OpClass
from django.db.models.functions import Lower

from roombook.db.indexes import PostgresOnlyMixin


class PrefixIndex(PostgresOnlyMixin):
    """An index for ``LOWER(column) LIKE 'abc%'`` on PostgreSQL; none on SQLite."""

    def __init__(self, *expressions: Any, column: str = "", **kwargs: Any) -> None:
        if column:
            expressions = (OpClass(Lower(column), name="text_pattern_ops"),)
        super().__init__(*expressions, **kwargs)
