"""Customers who book and cancel all the time, and whether each confirmed booking is kept."""

import datetime as dt
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from reservations.models import Reservation
from reservations.models.status import Status
from tests.faults import consistency
from tests.faults.client import BROKEN_CONNECTION, Answer, retry_until_resolved
from tests.faults.service import Service
from tests.faults.size import LEASE
from tests.faults.world import CARD, Customer, World

QUARTER = dt.timedelta(minutes=15)


@dataclass
class CustomerLog:
    """The answers that one customer received."""

    customer: Customer
    received: list[Answer] = field(default_factory=list)
    drafts: set[int] = field(default_factory=set)
    # Creates without an answer until the end: each may have created a draft or not.
    unanswered: int = 0
    booked: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)


def run_customer(
    log: CustomerLog,
    rooms: list[int],
    first: dt.datetime,
    get_end: Callable[[], float],
    seed: int,
) -> CustomerLog:
    """Book and sometimes cancel until the time is over, and retry until each is resolved."""
    rng = random.Random(seed)
    client = log.customer.client
    while time.monotonic() < get_end():
        start = first + rng.randrange(96 * 20) * QUARTER
        span = {
            "StartDate": start.isoformat(),
            "EndDate": (start + rng.randrange(2, 9) * QUARTER).isoformat(),
        }
        room = rng.choice(rooms)
        create = partial(client.post, "reservations/create", key=uuid4().hex, MeetingRoomId=room)
        draft = retry_until_resolved(partial(create, **span), received=log.received)
        if draft.status != 200:
            log.unanswered += draft.status in {BROKEN_CONNECTION, 503}
            continue
        pk = draft.body["Reservation"]["Id"]
        log.drafts.add(pk)
        done = retry_until_resolved(partial(client.checkout, pk, CARD), received=log.received)
        if done.code != "Confirmed":
            continue
        log.booked.add(pk)
        if rng.random() < 0.25:
            answer = retry_until_resolved(partial(client.cancel, pk), received=log.received)
            # Otherwise the booking was lost: find_lost counts it.
            if answer.status == 200:
                log.booked.discard(pk)
                log.cancelled.add(pk)
    return log


class Load:
    """Customers of a service, who stop after some seconds or when `stop` is called."""

    def __init__(self, service: Service, clients: int, seconds: float, port: int | None = None):
        self.service = service
        with service.database.open():
            world = World(service)
            rooms = [world.room().pk for _ in range(4)]
            self.logs = [CustomerLog(world.customer(port)) for _ in range(clients)]
            first = world.start()
        self.until = time.monotonic() + seconds
        self._pool = ThreadPoolExecutor(clients)
        self._futures: list[Future[CustomerLog]] = [
            self._pool.submit(run_customer, log, rooms, first, lambda: self.until, seed)
            for seed, log in enumerate(self.logs)
        ]

    def stop(self) -> None:
        self.until = 0.0

    def wait(self) -> list[Answer]:
        """Wait for the end, and return the answers. `make faults ARGS=-rP` shows their figures."""
        with self._pool:
            for each in self._futures:
                each.result()
        received = [answer for log in self.logs for answer in log.received]
        statuses = dict(sorted(Counter(answer.status for answer in received).items()))
        slowest = max(answer.ms for answer in received) / 1000
        sys.stdout.write(
            f"{self.count_acknowledged()} acknowledged, {statuses}, slowest {slowest:.1f} s\n"
        )
        return received

    def end(self, lease: float = LEASE) -> list[str]:
        """Stop, resolve every payment, and return what is wrong, lost or inconsistent then."""
        self.stop()
        statuses = {answer.status for answer in self.wait()}
        # Until then, payments without an outcome belong to their requests.
        time.sleep(lease)
        with self.service.database.open():
            consistency.run_reconcile_payments()
            wrong = [f"the answer {each}" for each in statuses - {BROKEN_CONNECTION, 200, 409, 503}]
            lost = [f"reservation {pk} is lost" for pk in self.find_lost()]
            return [*wrong, *lost, *consistency.find_problems()]

    def count_acknowledged(self) -> int:
        """How many bookings were confirmed to a customer so far."""
        return sum(len(log.booked) + len(log.cancelled) for log in self.logs)

    def find_lost(self) -> list[int]:
        """Acknowledged bookings and cancellations that the open database does not have."""
        status = dict(Reservation.objects.values_list("pk", "status"))
        expected = [(Status.CONFIRMED, log.booked) for log in self.logs]
        expected += [(Status.CANCELLED, log.cancelled) for log in self.logs]
        return [pk for wanted, pks in expected for pk in pks if status.get(pk) != wanted]

    def count_duplicates(self) -> int:
        """How many drafts exist only because a create was sent again."""
        existing = Counter(Reservation.objects.values_list("user", flat=True))
        return sum(
            max(0, existing[log.customer.user.pk] - len(log.drafts) - log.unanswered)
            for log in self.logs
        )
