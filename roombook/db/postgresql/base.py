"""PostgreSQL as Django knows it, with two roads made shorter: is it there, and what was asked."""

import select
import time
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base

# A connection that answered so many seconds ago is believed to be alive while its socket is quiet.
ASSUME_ALIVE_SECONDS = 1.0


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that remembers its prepared statements, and when it was last seen alive."""

    # The names of the statements that the server has prepared (roombook.db.compiled_queries). None
    # where a pooler may hand each transaction to another server.
    prepared: set[str] | None = None
    _seen_alive = 0.0

    def get_new_connection(self, conn_params: Any) -> Any:
        connection = super().get_new_connection(conn_params)
        self.prepared = None if settings.PGBOUNCER else set()
        return connection

    def is_usable(self) -> bool:
        """Ask the server, but not before each request of a busy second.

        A server that went away has closed the socket, which shows without a question.
        """
        now = time.monotonic()
        if now - self._seen_alive < ASSUME_ALIVE_SECONDS and self._is_quiet():
            return True
        usable = super().is_usable()
        self._seen_alive = now if usable else 0.0
        return usable

    def _is_quiet(self) -> bool:
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN | select.POLLPRI)
        return not poll.poll(0)
