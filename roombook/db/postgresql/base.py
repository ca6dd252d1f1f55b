"""Django's PostgreSQL backend, with fewer health checks and a list of prepared statements.

A server that refuses changes is an outage, which ends with the next connection.
Behind PgBouncer it prepares nothing, and requires the limits of sessions to be set for the role.
"""

import datetime as dt
import time
from typing import Any

import psycopg2
import psycopg2.errors
import psycopg2.extensions
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.postgresql import base

# A connection that answered this recently is assumed to be alive, until a statement fails.
ASSUME_ALIVE_SECONDS = 1.0


class Cursor(psycopg2.extensions.cursor):
    """A cursor that leaves a server which has become a standby.

    Behind PgBouncer, connections survive a switchover, and PostgreSQL then refuses every change.
    """

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 (its name in psycopg2)
        """Execute the statement. Raises OperationalError if the server refuses changes."""
        try:
            super().execute(query, vars)
        except psycopg2.errors.ReadOnlySqlTransaction as error:
            self.connection.close()
            raise psycopg2.OperationalError("The server refuses changes") from error


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that remembers its prepared statements and its latest health check."""

    # The names of the statements that are prepared on the server (roombook.db.compiled_queries).
    # None behind PgBouncer, which may send each transaction to another server.
    prepared: set[str] | None = None
    _seen_alive = 0.0
    # Whether a connection of this process through PgBouncer was found to have the limits.
    has_session_limits = False

    def get_new_connection(self, conn_params: Any) -> Any:
        connection = super().get_new_connection({**conn_params, "cursor_factory": Cursor})
        self.prepared = None if settings.PGBOUNCER else set()
        if settings.PGBOUNCER and not DatabaseWrapper.has_session_limits:
            try:
                require_session_limits(connection)
            except BaseException:
                connection.close()
                raise
            DatabaseWrapper.has_session_limits = True
        return connection

    def is_usable(self) -> bool:
        """Check the connection, but not if it was found alive a moment ago and has not failed."""
        now = time.monotonic()
        if not self.errors_occurred and now - self._seen_alive < ASSUME_ALIVE_SECONDS:
            return True
        usable = super().is_usable()
        self._seen_alive = now if usable else 0.0
        return usable


def require_session_limits(connection: Any) -> None:
    """Raise ImproperlyConfigured unless the session has the limits of a direct connection.

    PgBouncer passes no session settings on. Without the limits, one request that waits for a lock
    would block others for any time.
    """
    wrong = []
    with connection.cursor() as cursor:
        for name, seconds in settings.SESSION_LIMITS.items():
            cursor.execute("SELECT current_setting(%s)::interval", [name])
            if cursor.fetchone()[0] != dt.timedelta(seconds=seconds):
                wrong.append(f"ALTER ROLE {connection.info.user} SET {name} = '{seconds}s';")
    connection.rollback()
    if wrong:
        raise ImproperlyConfigured(
            "PGBOUNCER: the role's sessions have other limits than this service needs. Run"
            f" {' '.join(wrong)} and RECONNECT in PgBouncer, or connect past it."
        )
