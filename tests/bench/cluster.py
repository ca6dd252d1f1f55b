"""A PostgreSQL server with generated data, which it keeps for later runs."""

import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg2

ROOT = Path(__file__).parent.parent.parent
# Usual settings for a machine of this size. None of them makes the server less safe.
SETTINGS = ("shared_buffers=1GB", "max_wal_size=4GB", "max_connections=200")


class Cluster:
    """A server for one run. Its data stay in `folder`, which can be deleted between runs."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.folder = folder.resolve()
        self.data = self.folder / "data"
        self.run_as: dict[str, Any] = {}
        self.owner = pwd.getpwuid(os.getuid()).pw_name
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            # PostgreSQL refuses to run as root. Its package creates a user for it.
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.run_as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            self.owner = account.pw_name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    def __enter__(self) -> "Cluster":
        if not self.data.exists():
            self._run("initdb", "-D", self.data, "--auth=trust", "--encoding=UTF8", "--no-locale")
        options = f"-h 127.0.0.1 -p {self.port} -k /tmp"
        options += "".join(f" -c {setting}" for setting in SETTINGS)
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-l", log, "-w", "-t", "60", "start", "-o", options)
        return self

    def __exit__(self, *exception: object) -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "stop", "-m", "fast")

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
        name = f"generated_{centers}_{reservations}"
        if self._read_comment(name) != "loaded":
            self._execute("postgres", f"DROP DATABASE IF EXISTS {name}")
            self._execute("postgres", f"CREATE DATABASE {name}")
            self._run_python(name, "manage.py", "migrate", "--verbosity", 0)
            arguments = ("--centers", centers, "--reservations", reservations)
            self._run_python(name, "-m", "tests.bench.generate", *arguments)
            self._execute("postgres", f"COMMENT ON DATABASE {name} IS 'loaded'")
        else:
            self._run_python(name, "manage.py", "migrate", "--verbosity", 0)
        # Tokens expire after thirty days. The data are kept longer.
        self._execute(
            name,
            "UPDATE accounts_apitoken SET created_at = now(), last_used_at = now(),"
            " expires_at = now() + '30 days'",
        )
        self._execute(name, "VACUUM ANALYZE")
        return name

    def _read_comment(self, name: str) -> str | None:
        connection = self.connect("postgres")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT max(shobj_description(oid, 'pg_database')) FROM pg_database"
                " WHERE datname = %s",
                (name,),
            )
            [comment] = cursor.fetchone()
        connection.close()
        return comment

    def _execute(self, name: str, sql: str) -> None:
        connection = self.connect(name)
        connection.cursor().execute(sql)
        connection.close()

    def _run_python(self, name: str, *arguments: object) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "ENV_FILE": os.devnull,
            "DEBUG": "true",
            "STATEMENT_TIMEOUT": "0",
            "DATABASE_URL": self.url(name),
            "MEDIA_ROOT": str(self.folder.parent / "media"),
        }
        subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=ROOT, env=environment, check=True
        )

    def _run(self, program: str, *arguments: Any) -> None:
        # A file instead of a pipe, which the server would inherit and keep open.
        with (self.folder.parent / f"{program}.out").open("ab") as out:
            subprocess.run(
                [str(self.programs / program), *map(str, arguments)],
                check=True,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                **self.run_as,
            )
