"""roombook as deployed, and the raw reference beside it: both gunicorn, with equal workers."""

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
    """Started, looked at, and stopped by its process id."""

    def __init__(self, name: str, database: str, folder: Path, *words: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        environment = {
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "roombook.settings",
            "ENV_FILE": os.devnull,
            "DEBUG": "false",
            "SECRET_KEY": SECRET_KEY,
            "ALLOWED_HOSTS": HOST,
            "SECURE_SSL_REDIRECT": "false",
            "PAYMENT_GATEWAY": "sandbox",
            "DATABASE_URL": database,
            "EMAIL_URL": f"filemail://{folder / 'mails'}",
            "DEFAULT_FROM_EMAIL": f"Rooms <rooms@{HOST}>",
            "MEDIA_ROOT": str(folder / "media"),
            "STATIC_ROOT": str(folder / "static"),
        }
        self.environment = environment
        with self.log.open("wb") as log:
            self.master = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "-b", f"127.0.0.1:{self.port}", *words],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C ends the run first, and it ends them.
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
                    told = self.log.read_text()[-4000:]
                    raise RuntimeError(f"{self.name} did not start: {told}") from None
                time.sleep(0.05)

    def cpu(self) -> float:
        """Seconds of processor that it has taken so far."""
        return sum(map(cpu_of, [self.master.pid, *children_of(self.master.pid)]))

    def memory(self) -> int:
        """Kilobytes of the largest worker, its share of what all have in common included."""
        return max(map(memory_of, children_of(self.master.pid)))


def roombook(database: str, folder: Path, workers: int, *, threads: int = 0) -> Server:
    """As deploy/ has it; without threads, with as many sync workers."""
    # With threads gunicorn would quietly take gthread for sync.
    kind = ("-k", "gthread" if threads else "sync", "--threads", str(threads or 1))
    words = ("-c", "deploy/gunicorn.conf.py", *kind, "-w", str(workers), "roombook.wsgi")
    return Server(f"roombook{threads or ''}", database, folder, *words)


def raw(database: str, folder: Path, workers: int) -> Server:
    words = ("-k", "sync", "-w", str(workers), "tests.bench.raw.wsgi")
    return Server("raw", database, folder, *words)


def collect_static(folder: Path) -> None:
    """Put the back office's files where `Server` looks for them."""
    environment = {
        "PATH": os.environ["PATH"],
        "ENV_FILE": os.devnull,
        "DEBUG": "false",
        "SECRET_KEY": SECRET_KEY,
        "PAYMENT_GATEWAY": "sandbox",
        "STATIC_ROOT": str(folder / "static"),
    }
    words = ("manage.py", "collectstatic", "--noinput", "--clear", "--verbosity", "0")
    subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=True)


def children_of(parent: int) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # pid (name) state parent ...; a name may hold anything but ends with the last ).
            state, its_parent = file.read_text().rpartition(") ")[2].split()[:2]
        except OSError:
            continue
        if int(its_parent) == parent and state != "Z":
            found.append(int(file.parent.name))
    return found


def cpu_of(process: int) -> float:
    """Seconds of processor, those of its ended children included."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def memory_of(process: int) -> int:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


class DatabaseCpu:
    """The processor time of a PostgreSQL, its backends included."""

    def __init__(self, postmaster: int) -> None:
        self.postmaster = postmaster

    def cpu(self) -> float:
        return sum(map(cpu_of, [self.postmaster, *children_of(self.postmaster)]))
