"""Waiting for processes, and finding their children and free ports."""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_SECONDS = 120.0


def children_of(parent: int) -> list[int]:
    """The ids of the children of a process that have not ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # pid (name) state parent ...; the name may contain anything; it ends at the last ).
            state, its_parent = file.read_text().rpartition(") ")[2].split()[:2]
            if int(its_parent) == parent and state != "Z":
                found.append(int(file.parent.name))
    return found


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], bool], what: str) -> float:
    """Wait until the condition holds. Returns the seconds that it took."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > MAX_SECONDS:
            raise RuntimeError(f"Not reached in {MAX_SECONDS:.0f} s: {what}")
        time.sleep(0.2)
    return time.monotonic() - start
