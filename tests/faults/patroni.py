"""Three PostgreSQL servers with deploy/patroni/patroni.yml, and etcd, on the loopback address."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg2

from tests.faults.database import Database, create_service_role, postgres_database, programs
from tests.faults.processes import children_of, find_free_port, wait_for
from tests.faults.service import ROOT
from tests.pg_plugin import give_to_postgres

NAMES = ("db1", "db2", "db3")
PASSWORD = "tests-only"
DEPLOY = ROOT / "deploy"


# docs/many-machines.md installs it there if the distribution's is too old.
NEWER_PATRONI = Path("/opt/patroni/bin/patroni")
PATRONI = str(NEWER_PATRONI) if NEWER_PATRONI.exists() else shutil.which("patroni")


def is_installed() -> bool:
    return bool(PATRONI and shutil.which("etcd") and programs())


class PatroniCluster:
    """db1 is the first primary. Processes are ended by their ids only."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="roombook-patroni-", dir="/tmp"))
        _, self.user = give_to_postgres(self.folder)
        self.etcd_port, self.peer_port, *ports = (
            find_free_port() for _ in range(2 + 2 * len(NAMES))
        )
        self.ports = dict(zip(NAMES, ports[: len(NAMES)], strict=True))
        self.rest_ports = dict(zip(NAMES, ports[len(NAMES) :], strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.start_etcd()
        self._write_configuration()
        self.start("db1")
        wait_for(lambda: self.primary == "db1", "db1 as the primary")
        for name in NAMES[1:]:
            self.start(name)
        self.wait_for_members()

    def start_etcd(self) -> None:
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        self._run(
            "etcd",
            ["etcd"],
            {
                "ETCD_NAME": "db1",
                "ETCD_DATA_DIR": f"{self.folder}/etcd",
                "ETCD_LISTEN_PEER_URLS": peers,
                "ETCD_LISTEN_CLIENT_URLS": clients,
                "ETCD_INITIAL_ADVERTISE_PEER_URLS": peers,
                "ETCD_ADVERTISE_CLIENT_URLS": clients,
                "ETCD_INITIAL_CLUSTER": f"db1={peers}",
            },
        )

    def _write_configuration(self) -> None:
        settings = (DEPLOY / "postgresql/roombook.conf").read_text()
        # Less memory than on a server, and no files outside of this folder.
        settings = settings.replace("shared_buffers = 2GB", "shared_buffers = 64MB")
        settings += f"unix_socket_directories = '{self.folder}'\n"
        (self.folder / "roombook.conf").write_text(settings)
        text = (DEPLOY / "patroni/patroni.yml").read_text()
        for pattern, used in (
            (r"custom_conf: .*", f"custom_conf: {self.folder}/roombook.conf"),
            (r"bin_dir: .*", f"bin_dir: {programs()}"),
            (r"archive_command: .*", "archive_command: /bin/true"),
            # Another PgBouncer may run on this machine.
            (r"callbacks:(\n +on_\w+: .*)+", "callbacks: {}"),
            # The watchdog would reset this machine.
            (r"mode: required", 'mode: "off"'),
        ):
            text, count = re.subn(pattern, used, text)
            assert count == 1, pattern
        (self.folder / "patroni.yml").write_text(text)

    # --- Members ---------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a server, as after a reboot: systemd starts Patroni, which starts PostgreSQL."""
        variables = dict(
            re.findall(r"^([A-Z0-9_]+)=(.*)$", (DEPLOY / "patroni/node.env").read_text(), re.M)
        )
        address = f"127.0.0.1:{self.ports[name]}"
        rest = f"127.0.0.1:{self.rest_ports[name]}"
        self._run(
            name,
            [str(PATRONI), f"{self.folder}/patroni.yml"],
            {key: value.replace("CHANGE-ME", PASSWORD) for key, value in variables.items()}
            | {
                "PATRONI_NAME": name,
                "PATRONI_RESTAPI_LISTEN": rest,
                "PATRONI_RESTAPI_CONNECT_ADDRESS": rest,
                "PATRONI_POSTGRESQL_LISTEN": address,
                "PATRONI_POSTGRESQL_CONNECT_ADDRESS": address,
                "PATRONI_POSTGRESQL_DATA_DIR": str(self.data(name)),
                "PATRONI_POSTGRESQL_PGPASS": f"{self.folder}/pgpass-{name}",
                "PATRONI_ETCD3_HOSTS": f"127.0.0.1:{self.etcd_port}",
            },
        )

    def kill(self, name: str) -> None:
        """Kill all processes of a server at once, as when its power fails."""
        process = self.processes.pop(name)
        postmaster = self.postmaster(name)
        process.kill()
        if postmaster:
            for each in [*children_of(postmaster), postmaster]:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        process.wait()

    def data(self, name: str) -> Path:
        return self.folder / name

    def postmaster(self, name: str) -> int | None:
        """The id of the main process of a PostgreSQL server."""
        with suppress(OSError, ValueError):
            pid = int((self.data(name) / "postmaster.pid").read_text().split()[0])
            if Path(f"/proc/{pid}").exists():
                return pid
        return None

    def stop_sending(self) -> None:
        """From now on, nothing leaves the primary for its standbys, as in a slow network."""
        senders = [
            child
            for child in children_of(self.postmaster(self.primary or "") or 0)
            if b"walsender" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        assert len(senders) == len(NAMES) - 1
        for each in senders:
            os.kill(each, signal.SIGSTOP)

    def start_without_patroni(self, name: str) -> None:
        """Start only PostgreSQL, as a unit of the distribution would after a reboot."""
        self._run(
            f"{name} alone",
            [str(programs() / "postgres"), "-D", str(self.data(name))],
            {},
        )
        wait_for(lambda: self.is_writable(name), f"{name} without Patroni")

    # --- State -----------------------------------------------------------------------------------

    def members(self) -> dict[str, dict[str, Any]]:
        for port in self.rest_ports.values():
            url = f"http://127.0.0.1:{port}/cluster"
            with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=3) as got:
                return {each["name"]: each for each in json.load(got)["members"]}
        return {}

    def find_role(self, role: str) -> str | None:
        found = (name for name, each in self.members().items() if each["role"] == role)
        return next(found, None)

    @property
    def primary(self) -> str | None:
        return self.find_role("leader")

    def is_writable(self, name: str) -> bool:
        try:
            with closing(self.connect(name)) as session, session.cursor() as cursor:
                cursor.execute("SELECT pg_is_in_recovery()")
                return not cursor.fetchone()[0]
        except psycopg2.OperationalError:
            # It is away, or ends now.
            return False

    def wait_for_members(self, *, synchronous: bool = True) -> None:
        """Wait until all servers that run have joined."""

        def have_joined() -> bool:
            members = self.members()
            running = set(self.processes) & set(NAMES)
            states = {members.get(name, {}).get("state") for name in running}
            roles = {members.get(name, {}).get("role") for name in running}
            return (
                states <= {"running", "streaming"}
                and "leader" in roles
                and (not synchronous or "sync_standby" in roles)
            )

        wait_for(have_joined, f"all servers: {self.members()}")

    def connect(self, name: str) -> Any:
        return psycopg2.connect(
            host="127.0.0.1",
            port=self.ports[name],
            user="postgres",
            password=PASSWORD,
            dbname="postgres",
            connect_timeout=3,
        )

    def call(self, method: str, path: str, *, password: str | None = PASSWORD, **body: Any) -> None:
        """Do what patronictl does, at the server that is the primary."""
        port = self.rest_ports[self.primary or "db1"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/{path}", json.dumps(body).encode(), method=method
        )
        if password is not None:
            credentials = base64.b64encode(f"patroni:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {credentials}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    # --- The database of the service -------------------------------------------------------------

    def create_database(self) -> Database:
        """The role and the database of deploy/postgresql/roles.sql, with all tables."""
        create_service_role(
            PASSWORD,
            {
                "PGHOST": "127.0.0.1",
                "PGPORT": str(self.ports[self.primary or "db1"]),
                "PGUSER": "postgres",
                "PGPASSWORD": PASSWORD,
            },
        )
        database = self.database()
        database.migrate()
        return database

    def database(self, *names: str) -> Database:
        """The database on these servers (all), of which the primary is used."""
        ports = [self.ports[name] for name in names or NAMES]
        database = postgres_database("127.0.0.1", ports[0], "roombook", "roombook", PASSWORD)
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        database.url = (
            f"postgres://roombook:{PASSWORD}@{hosts}/roombook?target_session_attrs=read-write"
        )
        database.settings |= {
            "HOST": ",".join("127.0.0.1" for _ in ports),
            "PORT": ",".join(map(str, ports)),
            "OPTIONS": database.settings["OPTIONS"] | {"target_session_attrs": "read-write"},
        }
        return database

    # --- Processes -------------------------------------------------------------------------------

    def _run(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **environment},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.user,
            )

    def remove(self) -> None:
        for name in list(self.processes):
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)
