"""Creates are repeated with one Idempotency-Key, at the same time and after a worker has died."""

from functools import partial

import pytest

from reservations.models import Reservation
from roombook.models import SavedResponse
from tests.faults.client import BROKEN_CONNECTION, Answer, run_concurrently
from tests.faults.service import Service
from tests.faults.world import HOUR, Customer, World

CLIENTS = 16


class Arena:
    """A customer who creates one booking again and again."""

    def __init__(self, service: Service) -> None:
        self.service = service
        with service.database.open():
            world = World(service)
            self.customer: Customer = world.customer()
            start, room = world.start(), world.room().pk
        span = {"StartDate": start.isoformat(), "EndDate": (start + HOUR).isoformat()}
        self.body = {"MeetingRoomId": room, **span}

    def create(self, key: str | None = None) -> Answer:
        return self.customer.client.post("reservations/create", key=key, **self.body)

    def create_in_parallel(self, key: str | None = None) -> list[Answer]:
        return run_concurrently([partial(self.create, key)] * CLIENTS)

    def count_reservations(self) -> int:
        with self.service.database.open():
            return Reservation.objects.filter(user=self.customer.user).count()


@pytest.fixture
def arena(guarded):
    return Arena(guarded)


def test_parallel_creates_with_one_key_create_one_reservation(arena):
    # The others arrive while the first one is at work.
    arena.service.pause("in create", 0.5)

    answers = arena.create_in_parallel("k1")

    assert [each.status for each in answers] == [200] * CLIENTS
    assert all(each.body == answers[0].body for each in answers)
    assert arena.count_reservations() == 1


def test_parallel_creates_without_key_create_as_many_reservations(arena):
    """The control."""
    answers = arena.create_in_parallel()

    assert [each.status for each in answers] == [200] * CLIENTS
    assert arena.count_reservations() == CLIENTS


@pytest.mark.parametrize(("point", "is_committed"), [("in create", False), ("after create", True)])
def test_key_of_a_worker_that_was_killed_is_free_or_answers(arena, point, is_committed):
    arena.service.crash(point)

    assert arena.create("k1").status == BROKEN_CONNECTION
    assert arena.count_reservations() == is_committed
    assert arena.create("k1").status == 200
    assert arena.count_reservations() == 1


def test_requests_that_wait_for_a_worker_that_is_killed_get_one_reservation(arena):
    arena.service.crash("in create")

    answers = arena.create_in_parallel("k1")

    created = [each for each in answers if each.status != BROKEN_CONNECTION]
    # A worker serves several requests: those that it had begun end with it.
    assert len(created) < CLIENTS
    assert {each.status for each in created} <= {200}
    retried = arena.create("k1")
    assert all(each.body == retried.body for each in created)
    assert arena.count_reservations() == 1
    with arena.service.database.open():
        assert SavedResponse.objects.filter(user=arena.customer.user).count() == 1
