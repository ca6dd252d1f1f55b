"""Rows by the million: COPY on PostgreSQL, executemany on SQLite, all of them or none.

Nothing of a model's own `save` runs. What of a row is not given is the model's default.
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

# Rows of one table that are sent together: some megabytes.
BATCH = 20_000

Add = Callable[..., None]


class Loader:
    """Takes rows of many tables and writes them table by table. Use `loading`."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        self.rows = 0
        self._waiting: dict[tuple[type[Model], tuple[str, ...]], list[Any]] = defaultdict(list)
        self._ids: dict[type[Model], int] = {}

    def next_id(self, model: type[Model]) -> int:
        if model not in self._ids:
            self._ids[model] = model._default_manager.aggregate(last=Max("pk"))["last"] or 0
        self._ids[model] += 1
        return self._ids[model]

    def take_ids(self, model: type[Model], count: int) -> int:
        """Reserve so many ids in a row, and return the one before the first."""
        before = self.next_id(model) - 1
        self._ids[model] = before + count
        return before

    def table(self, model: type[Model], *names: str) -> Add:
        """A function that adds a row by these fields' values; the id comes by itself if it is not
        among them."""
        fields = {field.attname: field for field in model._meta.concrete_fields}
        numbered = "id" not in names
        if numbered:
            names = ("id", *names)
        others = [field for name, field in fields.items() if name not in names]
        columns = [str(field.column) for field in (*(fields[name] for name in names), *others)]
        key = (model, tuple(columns))
        waiting, line = self._waiting[key], self._line
        tail = self._tail([field.get_default() for field in others])

        def add(*values: Any) -> None:
            if numbered:
                values = (self.next_id(model), *values)
            waiting.append(line(values, tail))
            if len(waiting) >= BATCH:
                self._send(key)

        return add

    def adder(self, model: type[Model]) -> Callable[[Any], None]:
        """A function that adds an unsaved row as it stands; it gets an id unless it has one."""
        fields = [field.attname for field in model._meta.concrete_fields]
        add, values = self.table(model, *fields), attrgetter(*fields)

        def add_row(row: Any) -> None:
            if row.pk is None:
                row.pk = self.next_id(model)
            add(*values(row))

        return add_row

    def flush(self) -> None:
        for key in self._waiting:
            self._send(key)

    def _send(self, key: tuple[type[Model], tuple[str, ...]]) -> None:
        rows = self._waiting[key]
        if rows:
            quoted = ", ".join(map(connection.ops.quote_name, key[1]))
            self._write(f"{connection.ops.quote_name(key[0]._meta.db_table)} ({quoted})", rows)
            self.rows += len(rows)
            rows.clear()

    def _tail(self, values: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _line(self, values: Sequence[Any], tail: Any) -> Any:
        raise NotImplementedError

    def _write(self, table: str, rows: list[Any]) -> None:
        raise NotImplementedError


class _Words(dict[type, Callable[[Any], Any]]):
    """How values of each type are written; of other types (enums, names of files), as text."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        self[kind] = str
        return str


NULL = r"\N"
ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
SPECIAL = re.compile(r"[\\\t\n\r]")


class Copy(Loader):
    """COPY, in its text format."""

    WORDS = _Words({bool: lambda value: "t" if value else "f"})

    def _tail(self, values: Sequence[Any]) -> list[str]:
        return [self._word(value) for value in values]

    def _line(self, values: Sequence[Any], tail: list[str]) -> str:
        words = self.WORDS
        plain = [
            value if (kind := type(value)) is str else "" if value is None else words[kind](value)
            for value in values
        ]
        # Hardly any text needs to be escaped, and looking at all of it at once is quick.
        if SPECIAL.search("".join(plain)):
            plain = [word.translate(ESCAPES) for word in plain]
        told = zip(values, plain, strict=True)
        return "\t".join([NULL if value is None else word for value, word in told] + tail)

    def _word(self, value: Any) -> str:
        return NULL if value is None else self.WORDS[type(value)](value).translate(ESCAPES)

    def _write(self, table: str, rows: list[str]) -> None:
        self.cursor.copy_expert(f"COPY {table} FROM STDIN", StringIO("\n".join([*rows, ""])))


class Insert(Loader):
    """executemany, with values as Django has them on SQLite."""

    WORDS = _Words(
        {
            **dict.fromkeys((type(None), bool, str, int, float), lambda value: value),
            dt.datetime: lambda value: str(value.astimezone(dt.UTC).replace(tzinfo=None)),
            UUID: lambda value: value.hex,
        }
    )

    def _tail(self, values: Sequence[Any]) -> list[Any]:
        return [self.WORDS[type(value)](value) for value in values]

    def _line(self, values: Sequence[Any], tail: list[Any]) -> list[Any]:
        words = self.WORDS
        return [words[type(value)](value) for value in values] + tail

    def _write(self, table: str, rows: list[list[Any]]) -> None:
        places = ", ".join(["%s"] * len(rows[0]))
        self.cursor.executemany(f"INSERT INTO {table} VALUES ({places})", rows)


@contextmanager
def loading(models: Sequence[type[Model]], tell: Callable[[str], object]) -> Iterator[Loader]:
    """One transaction in which these models' tables are filled; other connections wait for it."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL maintenance_work_mem = '256MB'")
            put_back = _set_aside(cursor, [model._meta.db_table for model in models])
            loader: Loader = Copy(cursor)
        else:
            put_back, loader = [], Insert(cursor)
        yield loader
        loader.flush()
        for number, sql in enumerate(put_back, start=1):
            if number % 20 == 0 or number == len(put_back):
                tell(f"  indexes and foreign keys: {number} of {len(put_back)}")
            cursor.execute(sql)
        for sql in connection.ops.sequence_reset_sql(no_style(), list(models)):
            cursor.execute(sql)
    _gather_statistics(models)


def _set_aside(cursor: Any, tables: list[str]) -> list[str]:
    """Drop the tables' indexes, unique, exclusion and foreign key constraints, and return what
    brings them back in PostgreSQL's own words.

    Built once over all rows they cost a fraction of what they do row by row.
    """
    # What earlier statements of this transaction left to be checked at its end stands in the way.
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
    """Tell the planner what there is now."""
    vacuum = "VACUUM " if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        if connection.in_atomic_block:  # a test's own
            vacuum = ""
        if vacuum:
            cursor.execute("SET statement_timeout = 0")
        for model in models:
            cursor.execute(f"{vacuum}ANALYZE {connection.ops.quote_name(model._meta.db_table)}")
        if vacuum:
            cursor.execute("RESET statement_timeout")
