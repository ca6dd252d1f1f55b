"""Workers are killed and PostgreSQL restarts repeatedly, while customers book and cancel.

No confirmed booking is lost, nobody pays without a booking, and no booking is unpaid.
"""

import datetime as dt
import itertools
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest

from reservations.models import Reservation
from reservations.models.status import Status
from tests.faults import consistency, figures
from tests.faults.client import Answer, retry_until_resolved
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG, SIZE
from tests.faults.world import CARD, Customer, World

QUARTER = dt.timedelta(minutes=15)


@dataclass
class CustomerLog:
    """The answers that one customer received."""

    customer: Customer
    received: list[Answer] = field(default_factory=list)
    booked: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)


def run_customer(
    log: CustomerLog, rooms: list[int], first: dt.datetime, until: float, seed: int
) -> CustomerLog:
    """Book and sometimes cancel until the time is over, and retry until each is resolved."""
    rng = random.Random(seed)
    client = log.customer.client
    while time.monotonic() < until:
        start = first + rng.randrange(96 * 20) * QUARTER
        span = {
            "StartDate": start.isoformat(),
            "EndDate": (start + rng.randrange(2, 9) * QUARTER).isoformat(),
        }
        room = rng.choice(rooms)
        draft = retry_until_resolved(
            partial(client.post, "reservations/create", MeetingRoomId=room, **span),
            received=log.received,
        )
        if draft.status != 200:
            continue
        pk = draft.body["Reservation"]["Id"]
        done = retry_until_resolved(partial(client.checkout, pk, CARD), received=log.received)
        if done.code != "Confirmed":
            continue
        log.booked.add(pk)
        if rng.random() < 0.25:
            answer = retry_until_resolved(partial(client.cancel, pk), received=log.received)
            assert answer.status == 200, answer
            log.booked.discard(pk)
            log.cancelled.add(pk)
    return log


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
        world = World(service)
        rooms = [world.room().pk for _ in range(4)]
        logs = [CustomerLog(world.customer()) for _ in range(SIZE.clients)]
        first = world.start()
        captured = consistency.count_captures()
    until = time.monotonic() + SIZE.storm
    with ThreadPoolExecutor(SIZE.clients) as pool:
        futures = [
            pool.submit(run_customer, log, rooms, first, until, seed)
            for seed, log in enumerate(logs)
        ]
        remarks = []
        for act, every, name in faults:
            with repeated(act, every) as results:
                time.sleep(SIZE.storm / len(faults))
            remarks.append(f"{len(results)} {name}")
        for each in futures:
            each.result()
    received = [answer for log in logs for answer in log.received]
    row.count_answers(received)
    row.runs += len(received)
    row.remarks = ", ".join(remarks)
    time.sleep(LEASE)
    check_everything(service, case)
    with service.database.open():
        status = dict(Reservation.objects.values_list("pk", "status"))
        row.captures += consistency.count_captures() - captured
    row.confirmed += sum(len(log.booked) for log in logs)
    lost = [pk for log in logs for pk in log.booked if status.get(pk) != Status.CONFIRMED]
    not_cancelled = [
        pk for log in logs for pk in log.cancelled if status.get(pk) != Status.CANCELLED
    ]
    row.violations += len(lost) + len(not_cancelled)
    assert not lost, f"confirmed bookings that were lost: {lost}"
    assert not not_cancelled, f"cancelled bookings that are not: {not_cancelled}"
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
