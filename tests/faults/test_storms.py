"""Workers are killed and PostgreSQL restarts repeatedly, while customers book and cancel.

No confirmed booking is lost, nobody pays without a booking, and no booking is unpaid.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults import consistency, figures
from tests.faults.load import Load
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG, SIZE


@contextmanager
def repeated(act, every: float) -> Iterator[list[float]]:
    """Repeat the function in the background. Yields the list of its results."""
    over, results = threading.Event(), []

    def run() -> None:
        while not over.wait(every):
            results.append(act())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield results
    finally:
        over.set()
        thread.join(90)
        assert not thread.is_alive()


def storm(service: Service, case: str, check_everything, *faults: tuple) -> figures.CaseFigures:
    """Run customers during all these faults, and record the figures."""
    row = figures.get_row(case)
    with service.database.open():
        captured = consistency.count_captures()
    load = Load(service, SIZE.clients, SIZE.storm)
    remarks = []
    for act, every, name in faults:
        with repeated(act, every) as results:
            time.sleep(SIZE.storm / len(faults))
        remarks.append(f"{len(results)} {name}")
    received = load.wait(row)
    row.remarks = ", ".join(remarks)
    time.sleep(LEASE)
    check_everything(service, case)
    with service.database.open():
        row.captures += consistency.count_captures() - captured
        lost = load.find_lost()
        duplicates = load.count_duplicates()
    row.lost += len(lost)
    assert not lost, f"acknowledged bookings that were lost: {lost}"
    assert duplicates == 0
    assert row.confirmed > 0
    assert {answer.status for answer in received} <= {0, 200, 409, 503}
    return row


def make_killer(service: Service):
    """A function that kills one worker after the other."""
    turn = itertools.count()

    def kill() -> float:
        workers = sorted(service.workers())
        if workers:
            service.kill(workers[next(turn) % len(workers)])
        return 0.0

    return kill


def test_bookings_survive_killed_workers(short_lease_service, check_everything):
    storm(
        short_lease_service,
        f"storm: workers killed every {SIZE.kill_every} s",
        check_everything,
        (make_killer(short_lease_service), SIZE.kill_every, "kills"),
    )


@pytest.mark.postgres
def test_bookings_survive_restarts_of_postgresql(cluster, durable, check_everything):
    """PostgreSQL restarts orderly and as after a power failure, and workers are killed."""
    fast = (lambda: cluster.restart("fast"), SIZE.restart_every, "fast restarts")
    immediate = (lambda: cluster.restart("immediate"), SIZE.restart_every, "immediate restarts")
    if LONG:
        storm(durable, "storm: PostgreSQL restarts fast", check_everything, fast)
        storm(durable, "storm: PostgreSQL restarts immediate", check_everything, immediate)
    faults = (fast, immediate)
    with repeated(make_killer(durable), SIZE.kill_every) as kills:
        row = storm(durable, "storm: both restarts, workers killed", check_everything, *faults)
    row.remarks += f", {len(kills)} kills"
