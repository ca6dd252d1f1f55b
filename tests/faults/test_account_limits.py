"""Parallel requests of one account stay within its limits.

Each limit has a control: the same without the limit's row, where the test must find a violation.
"""

from collections import Counter
from functools import partial

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.models import AttemptWindow
from reservations.models import Reservation
from tests.faults.client import Answer, run_concurrently
from tests.faults.service import Service
from tests.faults.world import CARD, HOUR, Customer, World, card
from tests.gateway_faults import FaultKind

BAD_CARD = card("4000000000000002")
MAX_DECLINES = 6
PARALLEL = 12
CREATES = 16


@pytest.fixture(scope="module")
def unlimited(start) -> Service:
    """The service without locks and without the rows of limits."""
    return start(FAULTS_UNGUARDED="yes")


def check_out_many(service: Service, payment_card: dict[str, object]) -> list[Answer]:
    """Check out different drafts of one account at once, with a slow gateway."""
    with service.database.open():
        world = World(service)
        customer = world.customer()
        pks = [world.draft(customer, world.room()).pk for _ in range(PARALLEL)]
    undo = service.add_gateway_fault("authorize", FaultKind.SLOW, seconds=0.3, times=None)
    answers = run_concurrently(partial(customer.client.checkout, pk, payment_card) for pk in pks)
    undo()
    return answers


def test_parallel_checkouts_with_good_cards_are_given_back(guarded, check_everything):
    """Beyond six at the same time, they are refused, but only as long as the others take."""
    codes = Counter(each.code for each in check_out_many(guarded, CARD))

    assert codes.keys() <= {"Confirmed", "TooManyRequests"}
    assert codes["Confirmed"] >= MAX_DECLINES
    with guarded.database.open():
        assert not AttemptWindow.objects.filter(scope="card-declined", count__gt=0).exists()
    check_everything(guarded)


def count_declines(service: Service) -> int:
    codes = Counter(each.code for each in check_out_many(service, BAD_CARD))
    assert codes.keys() <= {"CardDeclined", "TooManyRequests"}
    return codes["CardDeclined"]


def count_holds_after_declines(service: Service) -> int:
    """Decline parallel checkouts of drafts without a hold, by an account that may hold one more.

    Returns the number of rooms that its drafts hold then.
    """
    with service.database.open():
        world = World(service)
        customer = world.customer()
        released = [world.draft(customer, world.room()).pk for _ in range(MAX_DECLINES)]
        Reservation.objects.filter(pk__in=released).release_holds(timezone.now())
        for _ in range(settings.HELD_DRAFTS_MAX - 1):
            world.draft(customer, world.room())
    undo = service.add_gateway_fault("authorize", FaultKind.SLOW, seconds=0.3, times=None)
    answers = run_concurrently(partial(customer.client.checkout, pk, BAD_CARD) for pk in released)
    assert [each.code for each in answers] == ["CardDeclined"] * MAX_DECLINES
    undo()
    return count_holds(service, customer)


def count_holds_after_creates(service: Service) -> int:
    """Create drafts of different rooms at once by one account. Returns how many hold a room."""
    with service.database.open():
        world = World(service)
        customer, start = world.customer(), world.start()
        rooms = [world.room().pk for _ in range(CREATES)]
    span = {"StartDate": start.isoformat(), "EndDate": (start + HOUR).isoformat()}
    create = partial(customer.client.post, "reservations/create", **span)
    answers = run_concurrently(partial(create, MeetingRoomId=room) for room in rooms)
    assert [each.status for each in answers] == [200] * CREATES
    return count_holds(service, customer)


def count_holds(service: Service, customer: Customer) -> int:
    with service.database.open():
        return Reservation.objects.filter(user=customer.user, holds_slot=True).count()


each_limit = pytest.mark.parametrize(
    ("count", "most"),
    [
        (count_declines, MAX_DECLINES),
        (count_holds_after_declines, settings.HELD_DRAFTS_MAX),
        (count_holds_after_creates, settings.HELD_DRAFTS_MAX),
    ],
)


@each_limit
def test_parallel_requests_of_an_account_reach_its_limit(count, most, guarded, check_everything):
    assert count(guarded) == most
    check_everything(guarded)


@pytest.mark.postgres
@each_limit
def test_parallel_requests_without_locks_and_limits_exceed_the_limit(count, most, unlimited):
    assert count(unlimited) > most
