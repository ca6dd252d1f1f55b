"""Parallel requests of one account stay within its limits, and good ones are not refused.

Each limit has a control: the same without the limit's row, where the test must find a violation.
"""

from functools import partial

import pytest

from payments.gateways.sandbox_models import FaultKind, SandboxFault
from tests.faults.client import Answer, run_concurrently
from tests.faults.service import Service
from tests.faults.world import CARD, World, card

BAD_CARD = card("4000000000000002")
MAX_DECLINES = 6
PARALLEL = 12


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
        slow = SandboxFault.objects.create(operation="authorize", kind=FaultKind.SLOW, seconds=0.3)
    answers = run_concurrently(partial(customer.client.checkout, pk, payment_card) for pk in pks)
    with service.database.open():
        slow.delete()
    return answers


def test_parallel_checkouts_with_good_cards_all_succeed(guarded, check_everything):
    answers = check_out_many(guarded, CARD)

    assert [each.code for each in answers] == ["Confirmed"] * PARALLEL
    check_everything(guarded, "parallel checkouts with good cards")


def test_parallel_checkouts_with_bad_cards_are_declined_six_times(guarded):
    codes = [each.code for each in check_out_many(guarded, BAD_CARD)]

    assert codes.count("CardDeclined") == MAX_DECLINES
    assert codes.count("TooManyRequests") == PARALLEL - MAX_DECLINES


@pytest.mark.postgres
def test_parallel_bad_cards_without_limit_are_declined_more_often(unlimited):
    codes = [each.code for each in check_out_many(unlimited, BAD_CARD)]

    assert codes.count("CardDeclined") > MAX_DECLINES


def test_parallel_saves_of_good_cards_all_succeed(guarded):
    with guarded.database.open():
        customer = World(guarded).customer()

    answers = run_concurrently(
        [partial(customer.client.post, "account/update-payment-info", PaymentInfo=CARD)] * 8
    )

    assert [each.status for each in answers] == [200] * 8
