"""Workers are killed and PostgreSQL restarts repeatedly, while customers book and cancel.

No confirmed booking is lost, nobody pays without a booking, and no booking is unpaid.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.load import Load
from tests.faults.service import Service
from tests.faults.size import LONG, SIZE


@contextmanager
def repeated(act, every: float) -> Iterator[None]:
    over = threading.Event()

    def run() -> None:
        while not over.wait(every):
            act()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(90)
        assert not thread.is_alive()


def storm(service: Service, *faults: tuple) -> None:
    """Run customers during all these faults. Nothing of theirs is lost or made twice."""
    load = Load(service, SIZE.clients, SIZE.storm)
    for act, every in faults:
        with repeated(act, every):
            time.sleep(SIZE.storm / len(faults))
    assert load.end() == []
    assert load.count_acknowledged() > 0
    with service.database.open():
        assert load.count_duplicates() == 0


def make_killer(service: Service):
    turn = itertools.count()

    def kill() -> None:
        workers = sorted(service.workers())
        if workers:
            service.kill(workers[next(turn) % len(workers)])

    return kill


@pytest.mark.skipif(not LONG, reason="the storm of restarts kills workers as well: make faults")
def test_bookings_survive_killed_workers(short_lease_service):
    storm(short_lease_service, (make_killer(short_lease_service), SIZE.kill_every))


@pytest.mark.postgres
def test_bookings_survive_restarts_of_postgresql(cluster, durable):
    """PostgreSQL restarts orderly and as after a power failure, and workers are killed."""
    fast = (lambda: cluster.restart("fast"), SIZE.restart_every)
    immediate = (lambda: cluster.restart("immediate"), SIZE.restart_every)
    if LONG:
        storm(durable, fast)
        storm(durable, immediate)
    with repeated(make_killer(durable), SIZE.kill_every):
        storm(durable, fast, immediate)
