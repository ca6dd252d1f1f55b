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
from tests.faults.world import CARD, HOUR, World, card
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


def test_parallel_checkouts_with_bad_cards_are_declined_six_times(guarded):
    codes = [each.code for each in check_out_many(guarded, BAD_CARD)]

    assert codes.count("CardDeclined") == MAX_DECLINES
    assert codes.count("TooManyRequests") == PARALLEL - MAX_DECLINES


@pytest.mark.postgres
def test_parallel_bad_cards_without_limit_are_declined_more_often(unlimited):
    codes = [each.code for each in check_out_many(unlimited, BAD_CARD)]

    assert codes.count("CardDeclined") > MAX_DECLINES


def decline_many(service: Service) -> int:
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
    with service.database.open():
        return Reservation.objects.filter(user=customer.user, holds_slot=True).count()


def test_parallel_declines_hold_no_more_rooms_than_allowed(guarded, check_everything):
    assert decline_many(guarded) == settings.HELD_DRAFTS_MAX
    check_everything(guarded)


@pytest.mark.postgres
def test_parallel_declines_without_locks_hold_more_rooms_than_allowed(unlimited):
    assert decline_many(unlimited) > settings.HELD_DRAFTS_MAX


def create_many(service: Service) -> tuple[Counter[int], int]:
    """Create drafts of different rooms at once by one account. Count the status codes and holds."""
    with service.database.open():
        world = World(service)
        customer, start = world.customer(), world.start()
        rooms = [world.room().pk for _ in range(CREATES)]
    span = {"StartDate": start.isoformat(), "EndDate": (start + HOUR).isoformat()}
    create = partial(customer.client.post, "reservations/create", **span)
    answers = run_concurrently(partial(create, MeetingRoomId=room) for room in rooms)
    with service.database.open():
        held = Reservation.objects.filter(user=customer.user, holds_slot=True).count()
    return Counter(answer.status for answer in answers), held


def test_parallel_creates_hold_no_more_rooms_than_allowed(guarded, check_everything):
    statuses, held = create_many(guarded)

    assert statuses == {200: CREATES}
    assert held == settings.HELD_DRAFTS_MAX
    check_everything(guarded)


@pytest.mark.postgres
def test_parallel_creates_without_locks_hold_more_rooms_than_allowed(unlimited):
    assert create_many(unlimited)[1] > settings.HELD_DRAFTS_MAX
