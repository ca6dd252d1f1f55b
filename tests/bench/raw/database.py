"""The connection, transactions, refusals, and who asks."""

import hashlib
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extras

psycopg2.extras.register_uuid()


Row = tuple[Any, ...]


Told = dict[str, Any]


class Refused(Exception):
    """Told to the client with a status and a code."""

    def __init__(self, status: str, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


_connection: Any = None


def cursor() -> Any:
    """One connection a process, kept."""
    global _connection
    if _connection is None:
        _connection = psycopg2.connect(os.environ["DATABASE_URL"])
        _connection.autocommit = True
    return _connection.cursor()


class transaction:  # noqa: N801 (reads as a statement)
    def __enter__(self) -> Any:
        self.cursor = cursor()
        self.cursor.execute("BEGIN")
        return self.cursor

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self.cursor.execute("COMMIT" if kind is None else "ROLLBACK")


def rows(cur: Any, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    cur.execute(sql, values)
    return cur.fetchall()


def many(cur: Any, table: str, values: list[Row]) -> None:
    if values:
        psycopg2.extras.execute_values(cur, f"INSERT INTO {table} VALUES %s", values)


class User(NamedTuple):
    pk: int
    email: str
    first_name: str
    last_name: str
    company_name: str


def signed_in(cur: Any, data: Told, now: datetime) -> User:
    found = rows(
        cur,
        """SELECT t.id, t.created_at, t.expires_at,
                  u.id, u.email, u.first_name, u.last_name, u.company_name
           FROM accounts_apitoken t JOIN accounts_user u ON u.id = t.user_id
           WHERE t.digest = %s AND t.expires_at > %s AND u.is_active""",
        (digest(data), now),
    )
    if not found:
        raise Refused("401 Unauthorized", "NotSignedIn")
    token, created_at, expires_at, *user = found[0]
    renew(cur, token, created_at, expires_at, now)
    return User(*user)


def digest(data: Told) -> str:
    token = data.get("Token")
    if not isinstance(token, str) or not token.isascii() or not 0 < len(token) <= 128:
        raise Refused("401 Unauthorized", "NotSignedIn")
    return hashlib.sha256(token.encode()).hexdigest()


def renew(cur: Any, token: int, created_at: datetime, expires_at: datetime, now: datetime) -> None:
    until = min(now + timedelta(days=30), created_at + timedelta(days=180))
    if until - expires_at >= timedelta(days=1):
        cur.execute(
            "UPDATE accounts_apitoken SET expires_at = %s WHERE id = %s AND expires_at = %s",
            (until, token, expires_at),
        )
