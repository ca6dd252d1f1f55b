"""Starts roombook as it is deployed, and the raw reference, both in gunicorn with equal workers."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HOST = "rooms.example.com"
SECRET_KEY = "bench-sK7vQ2xW9mB4nL6pR8tY1uE3iO5aD0fG-hJzXcVbNqMwZ_kTrPs"
START_SECONDS = 60.0
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A running gunicorn. It is measured and stopped by its process id."""

    def __init__(
        self, name: str, database: str, folder: Path, *arguments: str, **extra_environment: str
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        environment = {
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "roombook.settings",
            "ENV_FILE": os.devnull,
            "DEBUG": "false",
            "SECRET_KEY": SECRET_KEY,
            "ALLOWED_HOSTS": HOST,
            "SECURE_SSL_REDIRECT": "false",
            "PAYMENT_GATEWAY": "sandbox",
            "CREATES_PER_HOUR": "1000000000",
            "DATABASE_URL": database,
            "EMAIL_URL": f"filemail://{folder / 'mails'}",
            "DEFAULT_FROM_EMAIL": f"Rooms <rooms@{HOST}>",
            "MEDIA_ROOT": str(folder / "media"),
            **extra_environment,
        }
        self.environment = environment
        with self.log.open("wb") as log:
            self.master = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "-b", f"127.0.0.1:{self.port}", *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C stops the run, which then stops its servers.
            )
        self._wait()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.master.terminate()
        self.master.wait(timeout=30)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.master.poll() is not None or time.monotonic() > deadline:
                    log_text = self.log.read_text()[-4000:]
                    raise RuntimeError(f"{self.name} did not start: {log_text}") from None
                time.sleep(0.05)

    def get_cpu_seconds(self) -> float:
        """The processor time that it has used so far."""
        return sum(map(get_cpu_seconds, [self.master.pid, *get_children(self.master.pid)]))


def start_roombook(database: str, folder: Path, workers: int) -> Server:
    """roombook with the configuration of deploy/, but with sync workers."""
    # gunicorn replaces sync by gthread if it has threads.
    kind = ("-k", "sync", "--threads", "1")
    arguments = ("-c", "deploy/gunicorn.conf.py", *kind, "-w", str(workers), "roombook.wsgi")
    return Server("roombook", database, folder, *arguments)


def start_raw(database: str, folder: Path, workers: int, *, prepare: bool) -> Server:
    arguments = ("-k", "sync", "-w", str(workers), "tests.bench.raw.wsgi")
    name = "raw-prepared" if prepare else "raw-unprepared"
    return Server(name, database, folder, *arguments, RAW_PREPARE=str(prepare).lower())


def get_children(parent: int) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name) state parent ...". The name may contain anything, and ends at the last ).
            state, parent_of_process = file.read_text().rpartition(") ")[2].split()[:2]
        except OSError:
            continue
        if int(parent_of_process) == parent and state != "Z":
            found.append(int(file.parent.name))
    return found


def get_cpu_seconds(process: int) -> float:
    """The processor time, including that of children that have ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


class DatabaseCpu:
    """The processor time of a PostgreSQL server with its backends."""

    def __init__(self, postmaster: int) -> None:
        self.postmaster = postmaster

    def get_cpu_seconds(self) -> float:
        return sum(map(get_cpu_seconds, [self.postmaster, *get_children(self.postmaster)]))
