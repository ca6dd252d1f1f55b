"""Waiting for processes, and finding their children."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_SECONDS = 120.0


def children_of(parent: int) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(file.read_text().rpartition(") ")[2].split()[1]) == parent:
                found.append(int(file.parent.name))
    return found


def wait_for(condition: Callable[[], bool], what: str) -> float:
    """Wait until the condition holds. Returns the seconds that it took."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > MAX_SECONDS:
            raise RuntimeError(f"Not reached in {MAX_SECONDS:.0f} s: {what}")
        time.sleep(0.2)
    return time.monotonic() - start
