"""Django's SQLite backend, which creates a database that only its owner can read."""

import os
import sqlite3
from contextlib import suppress
from typing import Any

from django.db.backends.sqlite3 import base


class SQLiteWrapper(base.DatabaseWrapper):
    """A connection that creates the file of a new database with mode 0600."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> sqlite3.Connection:
        if not self.is_in_memory_db():
            # SQLite would create it with mode 0644, and gives its other files the mode of this one.
            # An existing file must not be opened: closing it would drop SQLite's locks. If the file
            # cannot be created, SQLite says why.
            with suppress(OSError):
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
                os.close(os.open(conn_params["database"], flags, 0o600))
        connection: sqlite3.Connection = super().get_new_connection(conn_params)
        return connection


# The name under which Django looks for it.
DatabaseWrapper = SQLiteWrapper
