"""Workers are killed in the middle of a checkout, and its retries arrive at the same time.

tests/payments/machine/test_crashes.py lets a worker die at each place of all other requests, too.
"""

import time
from functools import partial

import pytest

from reservations.models import Reservation
from tests.faults.client import BROKEN_CONNECTION, retry_until_resolved, run_concurrently
from tests.faults.size import LEASE, LONG
from tests.faults.world import CARD, World

# The first two are for each commit: of the payment, and of the gateway's answer.
POINTS = [
    "after claim",
    "after authorize",
    "in authorize",
    "in conclude",
    "after conclude",
    "in capture",
]


@pytest.mark.parametrize("point", POINTS if LONG else POINTS[:2])
def test_checkout_of_a_killed_worker_is_done_once_by_parallel_retries(
    point, short_lease_service, check_everything
):
    """All retries find the same unresolved payment, and one of them resolves it."""
    service = short_lease_service
    with service.database.open():
        world = World(service)
        customer = world.customer()
        pk = world.draft(customer, world.room()).pk
    check_out = partial(customer.client.checkout, pk, CARD)
    service.crash(point)
    assert (check_out().status, service.has_crashed) == (BROKEN_CONNECTION, True)
    time.sleep(LEASE)

    answers = run_concurrently([check_out] * 8)

    # On a slow machine, a request may outlive its own lease: ReservationNotOpen.
    allowed = {"Confirmed", "Processing", "ReservationNotOpen"}
    assert {answer.code for answer in answers} <= allowed
    assert retry_until_resolved(check_out).code == "Confirmed"
    check_everything(service)
    with service.database.open():
        assert Reservation.objects.get(pk=pk).status == "Confirmed"
