"""The connection, prepared statements, transactions and authentication."""

import hashlib
import os
from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

import psycopg2
import psycopg2.extras

from roombook.db.compiled_queries import with_numbered_placeholders

psycopg2.extras.register_uuid()

Row = Sequence[Any]
JSONDict = dict[str, Any]


class PreparingCursor(psycopg2.extensions.cursor):
    """Prepares each distinct statement when it is first executed, and executes it by its name."""

    # The command that executes each prepared statement, by SQL. The process has one connection.
    prepared: dict[str, str] = {}

    def execute(self, sql: Any, values: Any = ()) -> None:
        if sql not in {"BEGIN", "COMMIT"}:
            # Statements that are sent together are prepared one by one, and again sent together.
            sql = ";".join(map(self._prepare, sql.split(";")))
        super().execute(sql, values)

    def _prepare(self, sql: str) -> str:
        if sql not in self.prepared:
            name = f"raw_{len(self.prepared)}"
            super().execute(f"PREPARE {name} AS {with_numbered_placeholders(sql)}")
            placeholders = ", ".join(["%s"] * sql.count("%s"))
            self.prepared[sql] = f"EXECUTE {name}" + (f" ({placeholders})" if placeholders else "")
        return self.prepared[sql]


@cache
def get_cursor() -> Any:
    connection = psycopg2.connect(os.environ["DATABASE_URL"], cursor_factory=PreparingCursor)
    connection.autocommit = True
    return connection.cursor()


@contextmanager
def transaction() -> Iterator[Any]:
    cur = get_cursor()
    cur.execute("BEGIN")
    yield cur
    cur.execute("COMMIT")


def fetch_all(cur: Any, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    cur.execute(sql, values)
    return cur.fetchall()


def insert_rows(cur: Any, table: str, rows: list[Row]) -> None:
    """Inserts all rows by one statement."""
    row_placeholders = f"({', '.join(['%s'] * len(rows[0]))})"
    cur.execute(
        f"INSERT INTO {table} VALUES {', '.join([row_placeholders] * len(rows))}",
        [value for row in rows for value in row],
    )


User = namedtuple("User", "pk email first_name last_name company_name")


def authenticate(
    cur: Any, data: JSONDict, now: datetime, *, columns: str = "", joins: str = "", pk: int = 0
) -> tuple[User, Row]:
    """Reads the Token's account, and `columns` of `joins` of the row with the id `pk`."""
    [row] = fetch_all(
        cur,
        f"""SELECT u.id, u.email, u.first_name, u.last_name, u.company_name {columns}
            FROM accounts_apitoken k JOIN accounts_user u ON u.id = k.user_id {joins}
            WHERE k.digest = %s AND k.expires_at > %s AND u.is_active""",
        (*((pk,) if joins else ()), hashlib.sha256(data["Token"].encode()).hexdigest(), now),
    )
    return User(*row[:5]), row[5:]
