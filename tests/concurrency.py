"""Calls that run in parallel, each with its own database connection."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection


def run_concurrently(
    calls: Iterable[Callable[[], Any]], *, losers: tuple[type[Exception], ...] = ()
) -> list[Any]:
    """Start all calls at the same time, each in its own thread with its own open connection.

    Returns the result of each call, or the name of its error if that is one of `losers`.
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
