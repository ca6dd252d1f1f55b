"""Starts roombook as it is deployed, and the raw reference, both in gunicorn with two workers."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HOST = "rooms.example.com"
START_SECONDS = 60.0
TICKS = os.sysconf("SC_CLK_TCK")
# gunicorn would replace sync by gthread if it had threads.
WORKERS = ("-k", "sync", "--threads", "1", "-w", "2")


class Server:
    """A running gunicorn. It is measured and stopped by its process id."""

    def __init__(self, name: str, database: str, folder: Path, *arguments: str) -> None:
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        environment = {
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "roombook.settings",
            "ENV_FILE": os.devnull,
            "DEBUG": "false",
            "SECRET_KEY": "bench-sK7vQ2xW9mB4nL6pR8tY1uE3iO5aD0fG-hJzXcVbNqMwZ_kTrPs",
            "ALLOWED_HOSTS": HOST,
            "SECURE_SSL_REDIRECT": "false",
            "PAYMENT_GATEWAY": "sandbox",
            "CREATES_PER_HOUR": "1000000000",
            "DATABASE_URL": database,
            "EMAIL_URL": f"filemail://{folder / 'mails'}",
            "DEFAULT_FROM_EMAIL": f"Rooms <rooms@{HOST}>",
            "MEDIA_ROOT": str(folder / "media"),
        }
        log_file = folder / f"{name}.log"
        with log_file.open("wb") as log:
            self.master = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "-b", f"127.0.0.1:{self.port}", *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C stops the run, which then stops its servers.
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.master.poll() is not None or time.monotonic() > deadline:
                    text = log_file.read_text()[-4000:]
                    raise RuntimeError(f"{name} did not start: {text}") from None
                time.sleep(0.05)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.master.terminate()
        self.master.wait(timeout=30)

    def get_cpu_seconds(self) -> float:
        """The processor time that it has used so far."""
        return get_cpu_seconds(self.master.pid)


def start_roombook(database: str, folder: Path) -> Server:
    """roombook with the configuration of deploy/, but with sync workers."""
    arguments = ("-c", "deploy/gunicorn.conf.py", *WORKERS, "roombook.wsgi")
    return Server("roombook", database, folder, *arguments)


def start_raw(database: str, folder: Path) -> Server:
    return Server("raw", database, folder, *WORKERS, "tests.bench.raw.wsgi")


class DatabaseCpu:
    """The processor time of a PostgreSQL server with its backends."""

    def __init__(self, postmaster: int) -> None:
        self.postmaster = postmaster

    def get_cpu_seconds(self) -> float:
        return get_cpu_seconds(self.postmaster)


def get_cpu_seconds(parent: int) -> float:
    """The processor time of a process and its children, also of those that have ended."""
    seconds = 0.0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name) state parent ...". The name may contain anything, and ends at the last ).
            fields = file.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        is_child = int(fields[1]) == parent and fields[0] != "Z"
        if is_child or file.parent.name == str(parent):
            seconds += sum(map(int, fields[11:15])) / TICKS
    return seconds
