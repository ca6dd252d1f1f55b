"""Workers are killed and PostgreSQL restarts, again and again, while customers book and cancel.

Nobody who was told that a room is booked loses it, nobody pays without a booking, and nobody has a
booking without paying.
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
from tests.faults import books, figures
from tests.faults.client import Answer, retry_until_resolved
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG, SIZE
from tests.faults.world import CARD, Customer, World

QUARTER = dt.timedelta(minutes=15)


@dataclass
class Diary:
    """What one customer was told."""

    customer: Customer
    received: list[Answer] = field(default_factory=list)
    booked: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)


def live(diary: Diary, rooms: list[int], first: dt.datetime, until: float, seed: int) -> Diary:
    """Book, and at times cancel, whatever comes; each errand is seen through to its end."""
    luck = random.Random(seed)
    phone = diary.customer.client
    while time.monotonic() < until:
        start = first + luck.randrange(96 * 20) * QUARTER
        span = {
            "StartDate": start.isoformat(),
            "EndDate": (start + luck.randrange(2, 9) * QUARTER).isoformat(),
        }
        room = luck.choice(rooms)
        draft = retry_until_resolved(
            partial(phone.post, "reservations/create", MeetingRoomId=room, **span),
            received=diary.received,
        )
        if draft.status != 200:
            continue
        pk = draft.body["Reservation"]["Id"]
        done = retry_until_resolved(partial(phone.checkout, pk, CARD), received=diary.received)
        if done.code != "Confirmed":
            continue
        diary.booked.add(pk)
        if luck.random() < 0.25:
            answer = retry_until_resolved(partial(phone.cancel, pk), received=diary.received)
            assert answer.status == 200, answer
            diary.booked.discard(pk)
            diary.cancelled.add(pk)
    return diary


@contextmanager
def repeated(act, every: float) -> Iterator[list[float]]:
    """Do this again and again in the background; yields what it returned."""
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


def storm(service: Service, case: str, check_everything, *evils: tuple) -> figures.CaseFigures:
    """Customers live through all these evils; the table gets what they met."""
    row = figures.get_row(case)
    with service.database.open():
        world = World(service)
        rooms = [world.room().pk for _ in range(4)]
        diaries = [Diary(world.customer()) for _ in range(SIZE.clients)]
        first = world.start()
        captured = books.count_captures()
    until = time.monotonic() + SIZE.storm
    with ThreadPoolExecutor(SIZE.clients) as pool:
        lives = [
            pool.submit(live, diary, rooms, first, until, seed)
            for seed, diary in enumerate(diaries)
        ]
        remarks = []
        for act, every, name in evils:
            with repeated(act, every) as results:
                time.sleep(SIZE.storm / len(evils))
            remarks.append(f"{len(results)} {name}")
        for each in lives:
            each.result()
    received = [answer for diary in diaries for answer in diary.received]
    row.count_answers(received)
    row.runs += len(received)
    row.remarks = ", ".join(remarks)
    time.sleep(LEASE)
    check_everything(service, case)
    with service.database.open():
        status = dict(Reservation.objects.values_list("pk", "status"))
        row.captures += books.count_captures() - captured
    row.confirmed += sum(len(diary.booked) for diary in diaries)
    lost = [pk for diary in diaries for pk in diary.booked if status.get(pk) != Status.CONFIRMED]
    back = [pk for diary in diaries for pk in diary.cancelled if status.get(pk) != Status.CANCELLED]
    row.violations += len(lost) + len(back)
    assert not lost, f"told as booked, and lost: {lost}"
    assert not back, f"told as cancelled, and not: {back}"
    assert row.confirmed > 0
    assert {answer.status for answer in received} <= {0, 200, 409, 503}
    return row


def killer(service: Service):
    """Kills one worker after the other, whatever it is doing."""
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
        (killer(short_lease_service), SIZE.kill_every, "kills"),
    )


@pytest.mark.postgres
def test_bookings_survive_restarts_of_postgresql(cluster, durable, check_everything):
    """Orderly, and as after a power cut; workers die too."""
    fast = (lambda: cluster.restart("fast"), SIZE.restart_every, "fast restarts")
    immediate = (lambda: cluster.restart("immediate"), SIZE.restart_every, "immediate restarts")
    if LONG:
        storm(durable, "storm: PostgreSQL restarts fast", check_everything, fast)
        storm(durable, "storm: PostgreSQL restarts immediate", check_everything, immediate)
    evils = (fast, immediate)
    with repeated(killer(durable), SIZE.kill_every) as kills:
        row = storm(durable, "storm: both restarts, workers killed", check_everything, *evils)
    row.remarks += f", {len(kills)} kills"
