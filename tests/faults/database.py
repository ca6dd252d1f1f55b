"""Databases of the services under test, copied from a migrated template."""

import contextlib
import copy
import fcntl
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend

from tests import pg_plugin
from tests.faults.processes import find_free_port

ROLES = Path(__file__).parent.parent.parent / "deploy/postgresql/roles.sql"


class Database:
    """A database: its URL for the service, and `open()` for the ORM of the test."""

    def __init__(self, url: str, **parts: Any) -> None:
        self.url = url
        self.settings = copy.deepcopy(connections.databases["default"]) | parts

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """The ORM of this thread uses this database in the meantime."""
        backend = load_backend(self.settings["ENGINE"])
        before = connections["default"]
        connections["default"] = backend.DatabaseWrapper(self.settings, "default")
        # Its content types may have other ids.
        ContentType.objects.clear_cache()
        try:
            yield
        finally:
            connections["default"].close()
            connections["default"] = before
            ContentType.objects.clear_cache()

    @contextlib.contextmanager
    def open_in_all_threads(self) -> Iterator[None]:
        """All new connections of this process use this database in the meantime."""
        connections["default"].close()
        parts = connections.databases["default"]
        before = dict(parts)
        parts.update(self.settings)
        ContentType.objects.clear_cache()
        try:
            yield
        finally:
            connections["default"].close()
            parts.update(before)
            ContentType.objects.clear_cache()

    def migrate(self) -> None:
        with self.open():
            call_command("migrate", verbosity=0)


def sqlite_database(file: Path) -> Database:
    return Database(f"sqlite:///{file}", NAME=str(file))


def postgres_database(host: str, port: int, user: str, name: str, password: str = "") -> Database:
    login = f"{user}:{password}@" if password else f"{user}@"
    return Database(
        f"postgres://{login}{host}:{port}/{name}",
        NAME=name,
        HOST=host,
        PORT=port,
        USER=user,
        PASSWORD=password,
    )


class DatabaseStore:
    """Creates databases quickly, as copies of one that is migrated."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_postgres = connections["default"].vendor == "postgresql"
        self.created: list[str] = []

    def new(self) -> Database:
        return self.copy(self.get_template())

    def get_template(self) -> Database:
        """A migrated database, which the processes of this run of the tests share."""
        run_folder = pg_plugin.RUN_FOLDER
        name = run_folder.name.replace("-", "_")
        database = (
            self._at(name) if self.is_postgres else sqlite_database(run_folder / f"{name}.sqlite3")
        )
        with (run_folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = run_folder / "is-migrated"
            if not done.exists():
                if self.is_postgres:
                    self._execute(f"CREATE DATABASE {name}")
                database.migrate()
                done.touch()
        return database

    def copy(self, database: Database) -> Database:
        """A backup of the database, or its restored copy. Nothing may be connected to it."""
        name = database.settings["NAME"]
        if self.is_postgres:
            return self._at(self._create(f"TEMPLATE {name}"))
        file = self.folder / f"{uuid.uuid4().hex}.sqlite3"
        with (
            contextlib.closing(sqlite3.connect(name)) as source,
            contextlib.closing(sqlite3.connect(file)) as target,
        ):
            source.backup(target)
        return sqlite_database(file)

    def _at(self, name: str) -> Database:
        given = connections.databases["default"]
        return postgres_database(
            given["HOST"], given["PORT"] or 5432, given["USER"], name, given["PASSWORD"]
        )

    def _create(self, options: str = "") -> str:
        name = f"faults_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} {options}")
        self.created.append(name)
        return name

    def _execute(self, sql: str) -> None:
        with (
            self._at("postgres").open(),
            connections["default"].cursor() as cursor,
        ):
            cursor.execute(sql)

    def remove(self) -> None:
        while self.created:
            self._drop(self.created.pop())

    def remove_copy(self, database: Database) -> None:
        name = database.settings["NAME"]
        if self.is_postgres:
            self.created.remove(name)
            self._drop(name)
        else:
            Path(name).unlink()

    def _drop(self, name: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


class Cluster:
    """A PostgreSQL cluster with the settings of a real server, which tests can restart."""

    def __init__(self, programs: Path, folder: Path | None = None) -> None:
        self.programs = programs
        # Not in TMPDIR, which may be long: the path of a socket has at most 107 characters.
        self.folder = folder or Path(tempfile.mkdtemp(prefix="roombook-faults-", dir="/tmp"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.owner, self.user_options = pg_plugin.give_to_postgres(self.folder)
        self.port = find_free_port()

    def start(self) -> Database:
        self.initialize("--auth=trust")
        self.start_server()
        return self.database

    def initialize(self, *options: str) -> None:
        self._run("initdb", "-D", self.data, "--encoding=UTF8", "--no-locale", *options)

    def start_server(self, *settings: str) -> None:
        options = "".join(f" -c {each}" for each in settings)
        self._pg_ctl("start", "-o", f"-h 127.0.0.1 -p {self.port} -k {self.folder}{options}")

    def stop_server(self) -> None:
        self._pg_ctl("stop", "-m", "fast")

    @property
    def database(self) -> Database:
        return postgres_database("127.0.0.1", self.port, self.owner, "postgres")

    def restart(self, mode: str) -> float:
        """Restart as an administrator does (fast) or after a power failure (immediate).

        Returns the seconds that it took.
        """
        start = time.monotonic()
        self._pg_ctl("restart", "-m", mode)
        return time.monotonic() - start

    def create_service_role(self, password: str) -> Database:
        """The role and the database of the service, without tables."""
        connection = {"PGHOST": str(self.folder), "PGPORT": str(self.port)}
        create_service_role(password, connection, **self.user_options)
        return postgres_database("127.0.0.1", self.port, "roombook", "roombook", password)

    def remove(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self._pg_ctl("stop", "-m", "immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def restore(self, database: Database) -> None:
        """Restore a dump of a migrated database, which is faster than migrating."""
        dumping = [self.programs / "pg_dump", "--no-owner", f"--dbname={database.url}"]
        restoring = [self.programs / "psql", "--quiet", "--set=ON_ERROR_STOP=1", self.database.url]
        dumped = subprocess.run(dumping, check=True, capture_output=True).stdout
        subprocess.run(restoring, input=dumped, check=True, capture_output=True)

    def _pg_ctl(self, *arguments: Any) -> None:
        self._run("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "30", *arguments)

    def _run(self, program: str, *arguments: Any) -> None:
        # Not to a pipe, which the server would inherit and keep open.
        with (self.folder / f"{program}.out").open("ab") as out:
            subprocess.run(
                [str(self.programs / program), *map(str, arguments)],
                check=True,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=60,
                **self.user_options,
            )


class Standby(Cluster):
    """A streaming replica of a cluster."""

    def __init__(self, primary: Cluster) -> None:
        super().__init__(primary.programs)
        self.primary = primary

    def start(self) -> Database:
        self._run(
            *("pg_basebackup", "-D", self.data, "--write-recovery-conf", "--checkpoint=fast"),
            *("-h", "127.0.0.1", "-p", self.primary.port, "-U", self.primary.owner),
        )
        self.start_server()
        return self.database

    def stop(self) -> None:
        self._pg_ctl("stop", "-m", "immediate")

    def pause_replay(self) -> None:
        self._query("SELECT pg_wal_replay_pause()")

    def resume_replay(self) -> None:
        self._query("SELECT pg_wal_replay_resume()")

    def _query(self, sql: str) -> None:
        with self.database.open(), connections["default"].cursor() as cursor:
            cursor.execute(sql)


def programs() -> Path | None:
    """The folder with the PostgreSQL programs of this machine."""
    return pg_plugin.find_programs()


def create_service_role(password: str, connection: dict[str, str], **options: Any) -> None:
    """Run deploy/postgresql/roles.sql. `connection` has libpq's variables, such as PGPORT."""
    folder = programs()
    assert folder is not None
    with ROLES.open() as statements:
        subprocess.run(
            [folder / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "postgres"],
            stdin=statements,
            env={"PATH": os.environ["PATH"], "ROOMBOOK_PASSWORD": password, **connection},
            check=True,
            capture_output=True,
            cwd="/",
            **options,
        )
