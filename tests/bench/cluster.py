"""A PostgreSQL server with generated data, which it keeps for later runs."""

import os
import subprocess
import sys
from typing import Any

import psycopg2

from tests.faults import database
from tests.faults.service import ROOT

# Usual settings for a machine of this size. None of them makes the server less safe.
SETTINGS = ("shared_buffers=1GB", "max_wal_size=4GB", "max_connections=200")


class Cluster(database.Cluster):
    """A server for one run. Its data stay in `folder`, which can be deleted between runs."""

    def __enter__(self) -> "Cluster":
        if not self.data.exists():
            self.initialize("--auth=trust")
        self.start_server(*SETTINGS)
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_server()

    @property
    def postmaster(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def url(self, name: str) -> str:
        return f"postgres://{self.owner}@127.0.0.1:{self.port}/{name}"

    def connect(self, name: str) -> Any:
        connection = psycopg2.connect(self.url(name))
        connection.autocommit = True
        return connection

    def get_or_load_database(self, centers: int, reservations: int) -> str:
        """Returns the name of a database of that size. Generates the data unless they exist."""
        name = f"copied_{centers}_{reservations}"
        comment = (
            "SELECT max(shobj_description(oid, 'pg_database')) FROM pg_database WHERE datname = %s"
        )
        is_loaded = self._execute("postgres", comment, name) == "loaded"
        if not is_loaded:
            self._execute("postgres", f"DROP DATABASE IF EXISTS {name}")
            self._execute("postgres", f"CREATE DATABASE {name}")
        self.run_python(name, "manage.py", "migrate", "--verbosity", 0)
        if not is_loaded:
            arguments = ("--centers", centers, "--reservations", reservations)
            self.run_python(name, "-m", "tests.bench.generate", *arguments)
            self._execute("postgres", f"COMMENT ON DATABASE {name} IS 'loaded'")
        # Tokens expire after thirty days. The data are kept longer.
        self._execute(
            name,
            "UPDATE accounts_apitoken SET created_at = now(), last_used_at = now(),"
            " expires_at = now() + '30 days'",
        )
        self._execute(name, "VACUUM ANALYZE")
        return name

    def _execute(self, name: str, sql: str, *values: object) -> Any:
        """Execute a statement; return the only value that it finds, if any."""
        connection = self.connect(name)
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            found = cursor.fetchone()[0] if cursor.description else None
        connection.close()
        return found

    def run_python(self, name: str, *arguments: object) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "ENV_FILE": os.devnull,
            "DEBUG": "true",
            "STATEMENT_TIMEOUT": "0",
            "DATABASE_URL": self.url(name),
            "MEDIA_ROOT": str(self.folder.parent / "media"),
        }
        command = [sys.executable, *map(str, arguments)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
