"""The connection, prepared statements, transactions, refusals and authentication."""

import hashlib
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extras

from roombook.db.compiled_queries import with_numbered_placeholders

psycopg2.extras.register_uuid()

Row = tuple[Any, ...]
JSONDict = dict[str, Any]

# Prepare each distinct statement once per connection, as roombook does.
PREPARE = os.environ.get("RAW_PREPARE") == "true"
TRANSACTION_STATEMENTS = {"BEGIN", "COMMIT", "ROLLBACK"}


class Refused(Exception):
    """A response other than 200, with its status and error code."""

    def __init__(self, status: str, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class PreparingCursor(psycopg2.extensions.cursor):
    """Prepares each distinct statement when it is first executed, and executes it by its name."""

    # The command that executes each prepared statement, by SQL. The process has one connection.
    prepared: dict[str, str] = {}

    def execute(self, sql: Any, values: Any = ()) -> None:
        if sql not in TRANSACTION_STATEMENTS:
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


_connection: Any = None


def get_cursor() -> Any:
    """A cursor of the process's one connection."""
    global _connection
    if _connection is None:
        factory = PreparingCursor if PREPARE else None
        _connection = psycopg2.connect(os.environ["DATABASE_URL"], cursor_factory=factory)
        _connection.autocommit = True
    return _connection.cursor()


class transaction:  # noqa: N801 (reads as a statement)
    def __enter__(self) -> Any:
        self.cursor = get_cursor()
        self.cursor.execute("BEGIN")
        return self.cursor

    def __exit__(self, error_type: Any, *rest: Any) -> None:
        self.cursor.execute("COMMIT" if error_type is None else "ROLLBACK")


def fetch_all(cur: Any, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    cur.execute(sql, values)
    return cur.fetchall()


def insert_rows(cur: Any, table: str, rows: list[Row]) -> None:
    """Inserts all rows by one statement."""
    if rows:
        row_placeholders = f"({', '.join(['%s'] * len(rows[0]))})"
        cur.execute(
            f"INSERT INTO {table} VALUES {', '.join([row_placeholders] * len(rows))}",
            [value for row in rows for value in row],
        )


class User(NamedTuple):
    pk: int
    email: str
    first_name: str
    last_name: str
    company_name: str


def authenticate(cur: Any, data: JSONDict, now: datetime) -> User:
    found = fetch_all(
        cur,
        """SELECT t.id, t.created_at, t.expires_at,
                  u.id, u.email, u.first_name, u.last_name, u.company_name
           FROM accounts_apitoken t JOIN accounts_user u ON u.id = t.user_id
           WHERE t.digest = %s AND t.expires_at > %s AND u.is_active""",
        (hash_token(data), now),
    )
    if not found:
        raise Refused("401 Unauthorized", "NotSignedIn")
    token, created_at, expires_at, *user = found[0]
    extend_token(cur, token, created_at, expires_at, now)
    return User(*user)


def hash_token(data: JSONDict) -> str:
    token = data.get("Token")
    if not isinstance(token, str) or not token.isascii() or not 0 < len(token) <= 128:
        raise Refused("401 Unauthorized", "NotSignedIn")
    return hashlib.sha256(token.encode()).hexdigest()


def extend_token(
    cur: Any, token: int, created_at: datetime, expires_at: datetime, now: datetime
) -> None:
    until = min(now + timedelta(days=30), created_at + timedelta(days=180))
    if until - expires_at >= timedelta(days=1):
        cur.execute(
            "UPDATE accounts_apitoken SET expires_at = %s WHERE id = %s AND expires_at = %s",
            (until, token, expires_at),
        )
