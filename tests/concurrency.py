"""Many at once: calls that are let go at the same moment."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection


def run_concurrently(
    calls: Iterable[Callable[[], Any]], *, losers: tuple[type[Exception], ...] = ()
) -> list[Any]:
    """What each call returns, or the name of the error by which it lost.

    Each has a thread and a connection of its own, which is open before they start.
    """
    calls = list(calls)
    gate = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            gate.wait(timeout=30)
            return call()
        except losers as error:
            return type(error).__name__
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
