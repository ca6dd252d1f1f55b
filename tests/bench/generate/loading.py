"""Writes millions of rows in one transaction: COPY on PostgreSQL, executemany on SQLite.

The `save` methods of models do not run. Columns that are not given get the default of their field.
"""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Max, Model

# Rows of one table that are sent together, which are some megabytes.
BATCH_SIZE = 20_000

AddRow = Callable[..., None]


class Loader:
    """Collects rows of many tables and writes them in batches. Use `open_loader`."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        self.rows = 0
        self._pending: dict[tuple[type[Model], tuple[str, ...]], list[Any]] = defaultdict(list)
        self._ids: dict[type[Model], int] = {}

    def next_id(self, model: type[Model]) -> int:
        if model not in self._ids:
            self._ids[model] = model._default_manager.aggregate(last=Max("pk"))["last"] or 0
        self._ids[model] += 1
        return self._ids[model]

    def reserve_ids(self, model: type[Model], count: int) -> int:
        """Reserves `count` consecutive ids, and returns the id before the first of them."""
        before = self.next_id(model) - 1
        self._ids[model] = before + count
        return before

    def get_row_adder(self, model: type[Model], *names: str) -> AddRow:
        """Returns a function that adds a row from the values of these fields.

        The row gets an id if `id` is not among the fields.
        """
        fields = {field.attname: field for field in model._meta.concrete_fields}
        numbered = "id" not in names
        if numbered:
            names = ("id", *names)
        others = [field for name, field in fields.items() if name not in names]
        columns = [str(field.column) for field in (*(fields[name] for name in names), *others)]
        key = (model, tuple(columns))
        pending, convert_row = self._pending[key], self._convert_row
        defaults = self._convert_defaults([field.get_default() for field in others])

        def add(*values: Any) -> None:
            if numbered:
                values = (self.next_id(model), *values)
            pending.append(convert_row(values, defaults))
            if len(pending) >= BATCH_SIZE:
                self._send(key)

        return add

    def get_instance_adder(self, model: type[Model]) -> Callable[[Any], None]:
        """Returns a function that adds an unsaved instance, which gets an id unless it has one."""
        fields = [field.attname for field in model._meta.concrete_fields]
        add, values = self.get_row_adder(model, *fields), attrgetter(*fields)

        def add_row(row: Any) -> None:
            if row.pk is None:
                row.pk = self.next_id(model)
            add(*values(row))

        return add_row

    def flush(self) -> None:
        for key in self._pending:
            self._send(key)

    def _send(self, key: tuple[type[Model], tuple[str, ...]]) -> None:
        rows = self._pending[key]
        if rows:
            quoted = ", ".join(map(connection.ops.quote_name, key[1]))
            self._write(f"{connection.ops.quote_name(key[0]._meta.db_table)} ({quoted})", rows)
            self.rows += len(rows)
            rows.clear()

    def _convert_defaults(self, values: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _convert_row(self, values: Sequence[Any], defaults: Any) -> Any:
        raise NotImplementedError

    def _write(self, table: str, rows: list[Any]) -> None:
        raise NotImplementedError


class _Converters(dict[type, Callable[[Any], Any]]):
    """How values of each type are converted. Other types (enums, file names) become text."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        self[kind] = str
        return str


NULL = r"\N"
ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
SPECIAL = re.compile(r"[\\\t\n\r]")


class CopyLoader(Loader):
    """Uses COPY in its text format."""

    CONVERTERS = _Converters({bool: lambda value: "t" if value else "f"})

    def _convert_defaults(self, values: Sequence[Any]) -> list[str]:
        return [self._escape(value) for value in values]

    def _convert_row(self, values: Sequence[Any], defaults: list[str]) -> str:
        converters = self.CONVERTERS
        texts = [
            value
            if (kind := type(value)) is str
            else ""
            if value is None
            else converters[kind](value)
            for value in values
        ]
        # Few texts need to be escaped, and one search over all of them is fast.
        if SPECIAL.search("".join(texts)):
            texts = [text.translate(ESCAPES) for text in texts]
        pairs = zip(values, texts, strict=True)
        return "\t".join([NULL if value is None else text for value, text in pairs] + defaults)

    def _escape(self, value: Any) -> str:
        return NULL if value is None else self.CONVERTERS[type(value)](value).translate(ESCAPES)

    def _write(self, table: str, rows: list[str]) -> None:
        self.cursor.copy_expert(f"COPY {table} FROM STDIN", StringIO("\n".join([*rows, ""])))


class InsertLoader(Loader):
    """Uses executemany, with values as Django stores them in SQLite."""

    CONVERTERS = _Converters(
        {
            **dict.fromkeys((type(None), bool, str, int, float), lambda value: value),
            dt.datetime: lambda value: str(value.astimezone(dt.UTC).replace(tzinfo=None)),
            UUID: lambda value: value.hex,
        }
    )

    def _convert_defaults(self, values: Sequence[Any]) -> list[Any]:
        return [self.CONVERTERS[type(value)](value) for value in values]

    def _convert_row(self, values: Sequence[Any], defaults: list[Any]) -> list[Any]:
        converters = self.CONVERTERS
        return [converters[type(value)](value) for value in values] + defaults

    def _write(self, table: str, rows: list[list[Any]]) -> None:
        placeholders = ", ".join(["%s"] * len(rows[0]))
        self.cursor.executemany(f"INSERT INTO {table} VALUES ({placeholders})", rows)


@contextmanager
def open_loader(models: Sequence[type[Model]], report: Callable[[str], object]) -> Iterator[Loader]:
    """Opens a transaction that fills the tables of these models, and locks them meanwhile."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL maintenance_work_mem = '256MB'")
            restore_statements = _drop_indexes_and_constraints(
                cursor, [model._meta.db_table for model in models]
            )
            loader: Loader = CopyLoader(cursor)
        else:
            restore_statements, loader = [], InsertLoader(cursor)
        yield loader
        loader.flush()
        for number, sql in enumerate(restore_statements, start=1):
            if number % 20 == 0 or number == len(restore_statements):
                report(f"  indexes and foreign keys: {number} of {len(restore_statements)}")
            cursor.execute(sql)
        for sql in connection.ops.sequence_reset_sql(no_style(), list(models)):
            cursor.execute(sql)
    _gather_statistics(models)


def _drop_indexes_and_constraints(cursor: Any, tables: list[str]) -> list[str]:
    """Drops the indexes and the unique, exclusion and foreign key constraints of the tables.

    Returns the statements that restore them. To build an index once over all rows takes a fraction
    of the time that updating it with each row takes.
    """
    # Constraints cannot be dropped while deferred checks of this transaction are pending.
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    cursor.execute(
        """
        SELECT format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname),
               format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', conrelid::regclass, conname,
                      pg_get_constraintdef(oid))
        FROM pg_constraint WHERE contype IN ('f', 'u', 'x') AND conrelid = ANY (%s::regclass[])
        ORDER BY contype = 'f', conrelid::regclass::text, conname
        """,
        [tables],
    )
    constraints = cursor.fetchall()
    cursor.execute(
        """
        SELECT format('DROP INDEX %%s', indexrelid::regclass), pg_get_indexdef(indexrelid)
        FROM pg_index WHERE indrelid = ANY (%s::regclass[]) AND NOT EXISTS
            (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
        ORDER BY indexrelid
        """,
        [tables],
    )
    indexes = cursor.fetchall()
    for drop, _ in [*reversed(constraints), *indexes]:
        cursor.execute(drop)
    return [restore for _, restore in [*indexes, *constraints]]


def _gather_statistics(models: Sequence[type[Model]]) -> None:
    """Updates the statistics of the planner."""
    vacuum = "VACUUM " if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        if connection.in_atomic_block:  # the transaction of a test
            vacuum = ""
        if vacuum:
            cursor.execute("SET statement_timeout = 0")
        for model in models:
            cursor.execute(f"{vacuum}ANALYZE {connection.ops.quote_name(model._meta.db_table)}")
        if vacuum:
            cursor.execute("RESET statement_timeout")
