"""Parallel requests for the same thing: as many succeed as there is supply, and only they pay.

Each case has a control: the same without locks and constraints, where the test must find a problem.
The short form has one for rooms and one for promo codes.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.faults import consistency, unguarded
from tests.faults.client import Answer, run_concurrently
from tests.faults.service import Service
from tests.faults.size import LONG, SIZE
from tests.faults.world import CARD, HOUR, Customer, World

if TYPE_CHECKING:
    from tests.faults.database import Database

N = SIZE.contenders
# Those that change a booking, which they have to make first.
CHANGERS = 16 if LONG else 6
# How often a control is tried, until it goes wrong as it should.
CONTROL_ROUNDS = 5


@dataclass(frozen=True)
class Contest:
    """Customers who compete for one thing, and the errors that the losers get.

    They check out drafts, or change bookings in the way that `change` says.
    """

    entries: list[tuple[Customer, int]]
    refusals: set[str]
    change: dict[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> str:
        return "200" if self.change else "Confirmed"

    def run(self) -> list[Answer]:
        """Send all requests at once."""
        if self.change:
            more = {"PaymentInfo": CARD, **self.change}
            calls = [partial(who.client.change, pk, **more) for who, pk in self.entries]
        else:
            calls = [partial(who.client.checkout, pk, CARD) for who, pk in self.entries]
        return run_concurrently(calls)


def enter(world: World, make: Callable[[Customer, int], Reservation]) -> list[tuple[Customer, int]]:
    """New customers, each with a draft."""
    customers = [world.customer() for _ in range(N)]
    return [(each, make(each, number).pk) for number, each in enumerate(customers)]


def one_slot(world: World, *, shift: int = 0) -> Contest:
    """All have a draft for the same room and time, and all holds have expired."""
    room, start = world.room(), world.start()
    long_ago = timezone.now() - (N + 1) * HOUR

    def make(customer: Customer, number: int) -> Reservation:
        begin = start + number % 4 * dt.timedelta(minutes=shift)
        return world.draft(customer, room, begin, made=long_ago + number * HOUR)

    return Contest(enter(world, make), {"SlotUnavailable"})


def overlapping_slots(world: World) -> Contest:
    """All have drafts for the same room at different times that share one hour."""
    return one_slot(world, shift=15)


def one_reservation(world: World) -> Contest:
    """One customer submits the same checkout many times."""
    customer = world.customer()
    reservation = world.draft(customer, world.room())
    return Contest([(customer, reservation.pk)] * N, set())


def last_promo_use(world: World, **limit: int) -> Contest:
    promo = PromoCodeFactory(**limit or {"max_uses": 1})
    entries = enter(world, lambda each, _: world.draft(each, world.room(), promo=promo.code))
    return Contest(entries, {"PromoCodeInvalid"})


def last_promo_money(world: World) -> Contest:
    """The budget of the promo code is enough for one booking."""
    return last_promo_use(world, budget=9)


def last_use_of_an_account(world: World) -> Contest:
    promo, customer = PromoCodeFactory(max_uses_per_account=1), world.customer()
    return Contest(
        [(customer, world.draft(customer, world.room(), promo=promo.code).pk) for _ in range(N)],
        {"PromoCodeInvalid"},
    )


def last_allowance_hour(world: World) -> Contest:
    customer = world.customer()
    AllowanceFactory(user=customer.user, hours=1)
    drafts = [world.draft(customer, world.room()) for _ in range(N)]
    return Contest([(customer, draft.pk) for draft in drafts], {"AllowanceExhausted"})


def book(world: World, customer: Customer) -> Reservation:
    draft = world.draft(customer, world.room())
    assert customer.client.checkout(draft.pk, CARD).code == "Confirmed"
    return draft


def change_into_one_slot(world: World) -> Contest:
    """Customers move their bookings, of another room each, to the same room and time."""
    room, start = world.room(), world.start()
    entries = []
    for _ in range(CHANGERS):
        contender = world.customer()
        entries.append((contender, book(world, contender).pk))
    wanted = {
        "MeetingRoomId": room.pk,
        "StartDate": start.isoformat(),
        "EndDate": (start + 3 * HOUR).isoformat(),
        "ExpectedTotal": 75,
    }
    # The slot is not held during the payment: if it is gone then, the payment is voided.
    return Contest(entries, {"SlotUnavailable", "ReservationNotOpen"}, wanted)


def change_one_booking(world: World) -> Contest:
    """One customer submits the same change many times."""
    customer = world.customer()
    booking = book(world, customer)
    wanted = {"EndDate": (booking.end + HOUR).isoformat(), "ExpectedTotal": 75}
    return Contest([(customer, booking.pk)] * CHANGERS, set(), wanted)


CONTESTS: list[Callable[[World], Contest]] = [
    one_slot,
    overlapping_slots,
    one_reservation,
    last_promo_use,
    last_promo_money,
    last_use_of_an_account,
    last_allowance_hour,
    change_into_one_slot,
    change_one_booking,
]
each_contest = pytest.mark.parametrize("prepare", CONTESTS, ids=lambda each: each.__name__)


@each_contest
def test_only_as_many_requests_succeed_as_there_is_supply(prepare, guarded, check_everything):
    slowest = []
    for _ in range(SIZE.rounds):
        with guarded.database.open():
            contest = prepare(World(guarded))
            before = consistency.count_statuses()[Status.CONFIRMED], consistency.count_captures()
        answers = contest.run()
        check_everything(guarded)
        with guarded.database.open():
            confirmed = consistency.count_statuses()[Status.CONFIRMED] - before[0]
            captures = consistency.count_captures() - before[1]
        slowest.append(max(answer.ms for answer in answers))
        codes = [answer.code for answer in answers]
        if contest.refusals:
            assert codes.count(contest.success) == 1
        assert set(codes) <= {contest.success, *(contest.refusals or {"Processing"})}
        assert (confirmed, captures) == (0 if contest.change else 1, 1)
        assert not [answer.status for answer in answers if answer.status >= 500]
    # A shared machine may stall for seconds, so one fast round is enough.
    if LONG:
        assert min(slowest) < SIZE.max_seconds * 1000


@pytest.fixture(scope="module")
def unguarded_service(start, store) -> Service:
    """The service without locks and constraints."""
    database: Database = store.new()
    with database.open():
        unguarded.drop_database_guards()
    # With the default, a customer's checkouts would wait for the drafts that they release.
    return start(database=database, FAULTS_UNGUARDED="yes", HELD_DRAFTS_MAX="1000")


@pytest.mark.postgres
@pytest.mark.parametrize(
    "prepare", CONTESTS if LONG else [one_slot, last_promo_use], ids=lambda each: each.__name__
)
def test_contest_without_locks_and_constraints_goes_wrong(prepare, unguarded_service):
    """On PostgreSQL only: SQLite always allows only one writer, so nothing can go wrong."""
    # On a busy machine, requests may arrive one after the other and not disturb each other.
    for _ in range(CONTROL_ROUNDS):
        too_many = count_too_many_successes(prepare, unguarded_service)
        if too_many > 0:
            return
    pytest.fail("the control found no problem, so this test would find none")


def count_too_many_successes(prepare: Callable[[World], Contest], service: Service) -> int:
    with service.database.open():
        contest = prepare(World(service))
        if "slot" in prepare.__name__:
            # Otherwise all would wait for the row whose expired hold they release.
            Reservation.objects.all().release_holds(timezone.now())
        before = consistency.count_statuses()[Status.CONFIRMED], consistency.count_captures()
    contest.run()
    with service.database.open():
        confirmed = consistency.count_statuses()[Status.CONFIRMED] - before[0]
        captures = consistency.count_captures() - before[1]
    return max(confirmed, captures) - 1
