"""What is measured: roombook as it is deployed and the raw reference, on one PostgreSQL server."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg2

from tests.faults import database
from tests.faults.processes import children_of, is_listening
from tests.faults.service import ROOT, Service

# Usual settings for a machine of this size. None of them makes the server less safe.
SETTINGS = ("shared_buffers=1GB", "max_wal_size=4GB", "max_connections=200")
# gunicorn would replace sync by gthread if it had threads.
WORKERS = ("-k", "sync", "--threads", "1", "-w", "2")
TICKS = os.sysconf("SC_CLK_TCK")


class Cluster(database.Cluster):
    """A server for one run. Its generated data stay in `folder` for later runs."""

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

    def execute(self, name: str, *statements: str) -> None:
        connection = self.connect(name)
        for each in statements:
            connection.cursor().execute(each)
        connection.close()

    def get_or_load_database(self, centers: int, reservations: int) -> str:
        """Returns the name of a database of that size. Generates the data unless they exist."""
        name = f"generated_{centers}_{reservations}"
        mark = self.folder / f"{name}-is-loaded"
        if not mark.exists():
            drop, create = f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}"
            self.execute("postgres", drop, create)
        self.run_python(name, "manage.py", "migrate", "--verbosity=0")
        if not mark.exists():
            self.run_python(name, "-m", "tests.bench.generate", centers, reservations)
            mark.touch()
        tokens = """
            INSERT INTO accounts_apitoken (user_id, digest, created_at, last_used_at, expires_at)
            SELECT id, encode(sha256(lpad(id::text, 64, '0')::bytea), 'hex'), now(), now(),
              now() + '30 days' FROM accounts_user"""
        self.execute(name, "DELETE FROM accounts_apitoken", tokens, "VACUUM ANALYZE")
        return name

    def run_python(self, name: str, *arguments: object) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "ENV_FILE": os.devnull,
            "DEBUG": "true",
            "DJANGO_SETTINGS_MODULE": "roombook.settings",
            "STATEMENT_TIMEOUT": "0",
            "DATABASE_URL": self.url(name),
            "MEDIA_ROOT": str(self.folder.parent / "media"),
        }
        command = [sys.executable, *map(str, arguments)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)


class Server(Service):
    """A running gunicorn with the configuration of deploy/, but with two sync workers."""

    def __init__(self, name: str, application: str, url: str, folder: Path) -> None:
        self.name = name
        folder = folder / f"server-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        super().__init__(
            database.Database(url),
            folder,
            *WORKERS,
            application=application,
            DJANGO_SETTINGS_MODULE="roombook.settings",
            CREATES_PER_HOUR="1000000000",
        )

    def is_up(self) -> bool:
        return is_listening(self.port)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_gracefully()


def get_cpu_seconds(parent: int) -> float:
    """The processor time of a process and its children, also of those that have ended."""
    seconds = 0.0
    for process in (parent, *children_of(parent)):
        with suppress(OSError):
            # "pid (name) state parent ...". The name may contain anything, and ends at the last ).
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
            seconds += sum(map(int, fields[11:15])) / TICKS
    return seconds
