"""A gateway that hangs: other requests go on.

What follows if it does not answer a call is in tests/payments/machine.
"""

import threading
import time
from functools import partial

from reservations.models import Reservation
from tests.faults import consistency
from tests.faults.client import Answer, run_concurrently
from tests.faults.size import LONG, SIZE, WORKERS
from tests.faults.world import CARD, World
from tests.gateway_faults import FaultKind


def request_while_gateway_hangs(service) -> list[Answer]:
    """The answers to other customers while checkouts wait for a hanging gateway."""
    with service.database.open():
        world = World(service)
        waiting = []
        for _ in range(SIZE.hung):
            customer = world.customer()
            waiting.append((customer, world.draft(customer, world.room()).pk))
        other, room, start = world.customer(), world.room(), world.start()
        read = world.draft(other, room, start).pk
    service.add_gateway_fault("authorize", FaultKind.SLOW, seconds=SIZE.hang, times=SIZE.hung)
    span = {"StartDate": start.isoformat(), "EndDate": (start.replace(minute=45)).isoformat()}
    received: list[Answer] = []

    def hang() -> None:
        run_concurrently([partial(each.client.checkout, pk, CARD) for each, pk in waiting])

    hanging = threading.Thread(target=hang)
    hanging.start()
    time.sleep(SIZE.hang / 4)
    until = time.monotonic() + SIZE.hang / 2
    while time.monotonic() < until:
        received += run_concurrently(
            [
                lambda: other.client.post("account/reservation", Id=read),
                lambda: other.client.post(
                    "meeting-rooms/check-availability", RoomId=room.pk, **span
                ),
                lambda: other.client.post("locations/search", Query="Denver"),
            ]
        )
    hanging.join(SIZE.hang + 60)
    assert not hanging.is_alive()
    return received


def test_hanging_checkouts_do_not_block_other_requests(start, check_everything):
    """Each worker has threads, so more hanging checkouts than workers do not block the others."""
    assert SIZE.hung > WORKERS
    service = start()
    received = request_while_gateway_hangs(service)
    check_everything(service)
    with service.database.open():
        assert consistency.count_captures() == SIZE.hung
    assert {answer.status for answer in received} == {200}
    # No other request waited for the gateway.
    assert max(answer.ms for answer in received) < SIZE.hang * 1000 * (0.25 if LONG else 0.9)


def test_hanging_checkouts_block_requests_with_one_thread(start, check_everything):
    """The control: the same with workers that process one request at a time."""
    service = start("--worker-class", "sync", "--threads", "1")
    received = request_while_gateway_hangs(service)
    check_everything(service)
    assert any(answer.ms > SIZE.hang * 1000 / 4 for answer in received)
    with service.database.open():
        assert Reservation.objects.filter(status="Confirmed").count() == SIZE.hung
