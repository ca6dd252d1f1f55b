"""Races between two different requests for one reservation: one of them wins, and is paid once.

tests/payments/machine lets each request be overtaken by each other one, at any place.
"""

import datetime as dt
import random
import time
from collections.abc import Callable
from functools import partial

import pytest

from payments.models import Payment
from reservations.models import Reservation
from reservations.models.status import Status
from tests.faults.client import Answer, retry_until_resolved, run_concurrently
from tests.faults.size import SIZE
from tests.faults.world import CARD, World
from tests.gateway_faults import FaultKind

JITTER = 0.06

Call = Callable[[], Answer]


def delayed(call: Call, most: float = JITTER) -> Call:
    """The call after a random delay, so that every round interleaves differently."""
    seconds = random.uniform(0.0, most)

    def run() -> Answer:
        time.sleep(seconds)
        return call()

    return run


class Arena:
    """Runs races on new reservations of one customer."""

    def __init__(self, service) -> None:
        self.service = service
        with service.database.open():
            self.world = World(service)
            self.customer = self.world.customer()
        self.client = self.customer.client

    def draft(self) -> int:
        with self.service.database.open():
            return self.world.draft(self.customer, self.world.room()).pk

    def race(self, pk: int, *calls) -> list[Answer]:
        answers = run_concurrently(calls)
        assert not [answer for answer in answers if answer.is_defect]
        return answers

    def get_final_status(self, pk: int) -> str:
        with self.service.database.open():
            return Reservation.objects.get(pk=pk).status


@pytest.fixture
def arena(short_lease_service, check_everything):
    yield Arena(short_lease_service)
    check_everything(short_lease_service)


rounds = range(SIZE.races)


def test_cancel_against_checkout(arena):
    for _ in rounds:
        pk = arena.draft()
        checkout, cancel = arena.race(
            pk,
            partial(arena.client.checkout, pk, CARD),
            delayed(partial(arena.client.cancel, pk)),
        )
        status = arena.get_final_status(pk)
        if cancel.status == 200:
            assert status == Status.CANCELLED
            assert cancel.body["Refund"] == (50 if checkout.status == 200 else 0)
        else:
            assert (checkout.code, status) == ("Confirmed", Status.CONFIRMED)
            assert cancel.status in {409, 503}


def test_checkout_against_another_customer_when_the_hold_expires(arena):
    """The hold of a draft expires during the race: one of the two customers gets the room."""
    for _ in rounds:
        with arena.service.database.open():
            other = arena.world.customer()
            room, start = arena.world.room(), arena.world.start()
            pk = arena.world.draft(arena.customer, room, start).pk
            expires = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=0.05)
            Reservation.objects.filter(pk=pk).update(hold_until=expires)
        body = {
            "MeetingRoomId": room.pk,
            "StartDate": start.isoformat(),
            "EndDate": (start + dt.timedelta(hours=2)).isoformat(),
        }
        checkout, created = arena.race(
            pk,
            delayed(partial(arena.client.checkout, pk, CARD), 0.1),
            delayed(partial(other.client.post, "reservations/create", **body), 0.1),
        )
        assert (checkout.status, created.status) in {(200, 409), (409, 200)}
        assert arena.get_final_status(pk) == (
            Status.CONFIRMED if checkout.status == 200 else Status.NEW
        )


def test_payment_is_called_off_during_its_authorization(arena):
    """A second request finds the key unknown at the gateway and voids it; in between, the paused
    worker authorizes the payment.
    """
    service = arena.service
    pk = arena.draft()
    service.add_gateway_fault("authorize", FaultKind.SLOW, seconds=1.7)
    # 0.0 the worker authorizes, 1.2 the second request finds nothing, 1.7 authorized, 2.2 voided,
    # 2.7 the worker continues, 3.2 the second request continues.
    service.pause("after authorize", 1.0)
    service.pause("after lookup", 1.0)
    service.pause("after the gateway's void", 1.0)

    def resolve() -> Answer:
        time.sleep(1.2)
        return arena.client.checkout(pk, CARD)

    check_out = partial(arena.client.checkout, pk, CARD)
    arena.race(pk, check_out, resolve)
    last = retry_until_resolved(check_out)

    assert last.code == "Confirmed"
    with service.database.open():
        states = [payment.state for payment in Payment.objects.filter(reservation=pk)]
    assert states.count("captured") == 1
    assert arena.get_final_status(pk) == Status.CONFIRMED
