"""Databases for services under test: made from a migrated template, and read by the test itself."""

import contextlib
import copy
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend

from tests import pg_plugin


class Database:
    """One database: its address for the service, and `open()` for the test's own ORM."""

    def __init__(self, url: str, **parts: Any) -> None:
        self.url = url
        self.settings = copy.deepcopy(connections.databases["default"]) | parts

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """The ORM of this thread works on this database meanwhile."""
        backend = load_backend(self.settings["ENGINE"])
        before = connections["default"]
        connections["default"] = backend.DatabaseWrapper(self.settings, "default")
        try:
            yield
        finally:
            connections["default"].close()
            connections["default"] = before

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
    """Where databases are made, quickly: each is a copy of one that is migrated once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_postgres = connections["default"].vendor == "postgresql"
        self.made: list[str] = []
        self.template: str | None = None

    def new(self) -> Database:
        if not self.is_postgres:
            return self._new_file()
        if self.template is None:
            self.template = self._create()
            self._at(self.template).migrate()
        return self._at(self._create(f"TEMPLATE {self.template}"))

    def _new_file(self) -> Database:
        template = self.folder / "template.sqlite3"
        if not template.exists():
            sqlite_database(template).migrate()
        file = self.folder / f"{uuid.uuid4().hex}.sqlite3"
        shutil.copy(template, file)
        return sqlite_database(file)

    def _at(self, name: str) -> Database:
        given = connections.databases["default"]
        return postgres_database(
            given["HOST"], given["PORT"] or 5432, given["USER"], name, given["PASSWORD"]
        )

    def _create(self, how: str = "") -> str:
        name = f"faults_{uuid.uuid4().hex}"
        self._order(f"CREATE DATABASE {name} {how}")
        self.made.append(name)
        return name

    def _order(self, sql: str) -> None:
        with (
            self._at("postgres").open(),
            connections["default"].cursor() as cursor,
        ):
            cursor.execute(sql)

    def remove(self) -> None:
        for name in self.made:
            self._order(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


class Cluster:
    """A PostgreSQL of its own with the settings of a real server, to be restarted at will."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        # Not TMPDIR, which may be long: the path of a socket has 107 characters at most.
        self.folder = Path(tempfile.mkdtemp(prefix="roombook-faults-", dir="/tmp"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.who: dict[str, Any] = {}
        self.owner = pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            # PostgreSQL refuses to run as root; its package brings a user for it.
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            self.owner = account.pw_name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def start(self) -> Database:
        self._run("initdb", "-D", self.data, "--auth=trust", "--encoding=UTF8", "--no-locale")
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
        self._pg_ctl("start", "-o", options)
        return self.database

    @property
    def database(self) -> Database:
        return postgres_database("127.0.0.1", self.port, self.owner, "postgres")

    def restart(self, mode: str) -> float:
        """Restart as an administrator (fast) or a power cut (immediate) would; says how long."""
        start = time.monotonic()
        self._pg_ctl("restart", "-m", mode)
        return time.monotonic() - start

    def remove(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self._pg_ctl("stop", "-m", "immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def dump(self) -> bytes:
        """Everything in it, as a backup would take it."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", self.owner, "postgres"]
        command = [str(self.programs / "pg_dump"), *where]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def _pg_ctl(self, *words: Any) -> None:
        self._run("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "30", *words)

    def _run(self, program: str, *words: Any) -> None:
        # Not to a pipe: the server inherits it, and would keep it open.
        with (self.folder / f"{program}.out").open("ab") as out:
            subprocess.run(
                [str(self.programs / program), *map(str, words)],
                check=True,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=60,
                **self.who,
            )


def programs() -> Path | None:
    """Where this machine has its own PostgreSQL."""
    return pg_plugin.find_programs()
