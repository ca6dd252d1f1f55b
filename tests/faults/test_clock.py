"""Clock jumps and daylight saving changes: no hold ends early, no hour is charged twice."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from reservations.models import Reservation
from reservations.models.status import Status
from tests.faults import consistency
from tests.faults.client import retry_until_resolved, run_concurrently
from tests.faults.world import CARD, World
from tests.gateway_faults import FaultKind

DENVER = ZoneInfo("America/Denver")
MINUTE = 60.0


@pytest.fixture
def moving(short_lease_service):
    """A service whose clock is reset after the test."""
    yield short_lease_service
    short_lease_service.move_clock(0)


def booking(room, start: dt.datetime, hours: float = 2) -> dict:
    end = start.astimezone(dt.UTC) + dt.timedelta(hours=hours)
    return {
        "MeetingRoomId": room.pk,
        "StartDate": start.isoformat(),
        "EndDate": end.isoformat(),
    }


def test_hold_lasts_its_time_when_the_clock_jumps(moving, check_everything):
    with moving.database.open():
        world = World(moving)
        ada, bob = world.customer(), world.customer()
        wanted = booking(world.room(), world.start())
    assert ada.client.post("reservations/create", **wanted).status == 200

    for minutes, status in ((-60, 409), (0, 409), (14, 409), (16, 200)):
        moving.move_clock(minutes * MINUTE)
        answer = bob.client.post("reservations/create", **wanted)
        assert answer.status == status, f"after {minutes} minutes"
    check_everything(moving)


@pytest.mark.parametrize("jump", [60 * MINUTE, -60 * MINUTE], ids=["ahead", "back"])
def test_checkout_survives_a_clock_jump(jump, moving, check_everything):
    """After a jump ahead, every lease has expired: two requests resolve one payment."""
    with moving.database.open():
        world, captured = World(moving), consistency.count_captures()
        customer = world.customer()
        pk = world.draft(customer, world.room()).pk
    moving.add_gateway_fault("authorize", FaultKind.SLOW, seconds=0.6)

    def jumps():
        moving.move_clock(jump)
        return customer.client.checkout(pk, CARD)

    run_concurrently([lambda: customer.client.checkout(pk, CARD), jumps])
    moving.move_clock(0)
    last = retry_until_resolved(lambda: customer.client.checkout(pk, CARD))

    assert last.code == "Confirmed"
    check_everything(moving)
    with moving.database.open():
        captured = consistency.count_captures() - captured
        assert Reservation.objects.get(pk=pk).status == Status.CONFIRMED
    assert captured == 1


def test_booking_survives_a_clock_jump_backwards(moving, check_everything):
    """A booking whose creation is in the future can be cancelled and is refunded."""
    with moving.database.open():
        world = World(moving)
        customer = world.customer()
        pk = world.draft(customer, world.room()).pk
    moving.move_clock(60 * MINUTE)
    assert customer.client.checkout(pk, CARD).code == "Confirmed"
    moving.move_clock(-60 * MINUTE)
    answer = customer.client.cancel(pk)
    assert (answer.status, answer.body["Refund"]) == (200, 50)
    moving.move_clock(0)
    check_everything(moving)


def night(month: int) -> dt.datetime:
    """The midnight in Denver before the daylight saving change in that month."""
    today = dt.datetime.now(DENVER)
    for day in range(1, 366):
        midnight = (today + dt.timedelta(days=day)).replace(
            hour=0, minute=0, second=0, microsecond=0, fold=0
        )
        noon = midnight.replace(hour=12)
        if midnight.month == month and midnight.utcoffset() != noon.utcoffset():
            return midnight
    raise AssertionError("there is no such night within a year")


@pytest.mark.parametrize(("month", "hours"), [(11, 5), (3, 3)], ids=["long", "short"])
def test_booking_in_the_night_of_a_clock_change(
    month, hours, short_lease_service, check_everything
):
    """From midnight to four is charged and held for the real duration."""
    midnight = night(month)
    four = midnight.replace(hour=4)
    with short_lease_service.database.open():
        world = World(short_lease_service)
        ada, bob = world.customer(), world.customer()
        room = world.room()
    # Without UTC offset, as from a client that sends local times.
    draft = ada.client.post(
        "reservations/create",
        MeetingRoomId=room.pk,
        StartDate=midnight.replace(tzinfo=None).isoformat(),
        EndDate=four.replace(tzinfo=None).isoformat(),
    )
    made = draft.body["Reservation"]
    assert made["TotalCost"] == 25 * hours
    assert ada.client.checkout(made["Id"], CARD).code == "Confirmed"

    # The last half hour in UTC. In November, it is the second one with this local time.
    real_end = midnight.astimezone(dt.UTC) + dt.timedelta(hours=hours)
    half = dt.timedelta(minutes=30)
    within = bob.client.post("reservations/create", **booking(room, real_end - half, 1))
    after = bob.client.post("reservations/create", **booking(room, real_end, 1))
    before = bob.client.post("reservations/create", **booking(room, midnight - 2 * half, 1))
    assert (within.status, after.status, before.status) == (409, 200, 200)
    check_everything(short_lease_service)
