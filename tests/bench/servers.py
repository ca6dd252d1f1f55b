"""Starts roombook as it is deployed, and the raw reference, both in gunicorn with two workers."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from tests.faults.database import Database
from tests.faults.processes import children_of, is_listening
from tests.faults.service import Service

TICKS = os.sysconf("SC_CLK_TCK")
# gunicorn would replace sync by gthread if it had threads.
WORKERS = ("-k", "sync", "--threads", "1", "-w", "2")


class Server(Service):
    """A running gunicorn with the configuration of deploy/, but with sync workers."""

    def __init__(self, name: str, application: str, database: str, folder: Path) -> None:
        self.name = name
        folder = folder / f"server-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        super().__init__(
            Database(database),
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
