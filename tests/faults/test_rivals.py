"""32 want the same thing at once: as many get it as there is, and only they pay.

Each case has a control: the same with the guards off, where the test must find something wrong.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.faults import books, figures, unguarded
from tests.faults.client import Answer, run_concurrently
from tests.faults.service import Service
from tests.faults.size import LONG, SIZE
from tests.faults.world import CARD, HOUR, Customer, World

if TYPE_CHECKING:
    from tests.faults.database import Database

N = SIZE.contenders


@dataclass(frozen=True)
class Contest:
    """Who wants what: each rival's reservation, and which refusal the losers read."""

    entries: list[tuple[Customer, int]]
    refusal: str
    status: str = Status.CONFIRMED


def one_slot(world: World) -> Contest:
    """Everybody has a draft of the same room and time; all holds have lapsed."""
    room, start = world.room(), world.start()
    long_ago = timezone.now() - (N + 1) * HOUR
    entries = []
    for n in range(N):
        rival = world.customer()
        made = long_ago + n * HOUR
        entries.append((rival, world.draft(rival, room, start, made=made).pk))
    return Contest(entries, "SlotUnavailable")


def overlapping_slots(world: World) -> Contest:
    """The same where each asks for another time, and all these have one hour in common."""
    room, start = world.room(), world.start()
    long_ago = timezone.now() - (N + 1) * HOUR
    entries = []
    for n in range(N):
        rival = world.customer()
        begin = start + n % 4 * dt.timedelta(minutes=15)
        made = long_ago + n * HOUR
        entries.append((rival, world.draft(rival, room, begin, made=made).pk))
    return Contest(entries, "SlotUnavailable")


def one_reservation(world: World) -> Contest:
    """An impatient thumb."""
    customer = world.customer()
    reservation = world.draft(customer, world.room())
    return Contest([(customer, reservation.pk)] * N, "")


def last_promo_use(world: World) -> Contest:
    promo = PromoCodeFactory(max_uses=1)
    entries = []
    for _ in range(N):
        rival = world.customer()
        entries.append((rival, world.draft(rival, world.room(), promo=promo.code).pk))
    return Contest(entries, "PromoCodeInvalid")


def last_promo_money(world: World) -> Contest:
    """A budget that is enough for one booking's discount."""
    promo = PromoCodeFactory(budget=9)
    entries = []
    for _ in range(N):
        rival = world.customer()
        entries.append((rival, world.draft(rival, world.room(), promo=promo.code).pk))
    return Contest(entries, "PromoCodeInvalid")


def last_use_of_an_account(world: World) -> Contest:
    promo, customer = PromoCodeFactory(max_uses_per_account=1), world.customer()
    return Contest(
        [(customer, world.draft(customer, world.room(), promo=promo.code).pk) for _ in range(N)],
        "PromoCodeInvalid",
    )


def last_allowance_hour(world: World) -> Contest:
    customer = world.customer()
    AllowanceFactory(user=customer.user, hours=1)
    drafts = [world.draft(customer, world.room()) for _ in range(N)]
    return Contest([(customer, draft.pk) for draft in drafts], "AllowanceExhausted")


CONTESTS: list[Callable[[World], Contest]] = [
    one_slot,
    overlapping_slots,
    one_reservation,
    last_promo_use,
    last_promo_money,
    last_use_of_an_account,
    last_allowance_hour,
]
each_contest = pytest.mark.parametrize("prepare", CONTESTS, ids=lambda each: each.__name__)


def hold(contest: Contest) -> list[Answer]:
    return run_concurrently(partial(who.client.checkout, pk, CARD) for who, pk in contest.entries)


@each_contest
def test_only_as_many_requests_succeed_as_there_is_supply(prepare, guarded, check_everything):
    case = f"{N} rivals: {prepare.__name__.replace('_', ' ')}"
    row = figures.get_row(case)
    slowest = []
    for _ in range(SIZE.rounds):
        with guarded.database.open():
            contest = prepare(World(guarded))
            before = books.count_statuses()[Status.CONFIRMED], books.count_captures()
        answers = hold(contest)
        check_everything(guarded, case)
        with guarded.database.open():
            confirmed = books.count_statuses()[Status.CONFIRMED] - before[0]
            captures = books.count_captures() - before[1]
        row.runs += 1
        row.confirmed += confirmed
        row.captures += captures
        row.count_answers(answers)
        slowest.append(max(answer.ms for answer in answers))
        told = sorted({answer.code for answer in answers})
        if prepare is one_reservation:
            assert set(told) <= {"Confirmed", "Processing"}
        else:
            assert told == sorted(["Confirmed", contest.refusal])
            assert [answer.code for answer in answers].count("Confirmed") == 1
        assert (confirmed, captures) == (1, 1)
        assert not [answer.status for answer in answers if answer.status >= 500]
    # A shared machine stalls for seconds at times: one round that had it for itself is enough.
    if LONG:
        assert min(slowest) < SIZE.max_seconds * 1000


@pytest.fixture(scope="module")
def unguarded_service(start, store) -> Service:
    """The service with its guards off."""
    database: Database = store.new()
    with database.open():
        unguarded.drop_database_guards()
    return start(database=database, FAULTS_UNGUARDED="yes")


@pytest.mark.postgres
@each_contest
def test_contest_without_locks_and_constraints_goes_wrong(prepare, unguarded_service):
    """SQLite lets one write at a time whatever we do: there is nothing that could go wrong."""
    with unguarded_service.database.open():
        contest = prepare(World(unguarded_service))
        if "slot" in prepare.__name__:
            # Else all would queue on the row whose lapsed hold each of them releases.
            Reservation.objects.all().release_holds()
        before = books.count_statuses()[Status.CONFIRMED], books.count_captures()
    hold(contest)
    with unguarded_service.database.open():
        confirmed = books.count_statuses()[Status.CONFIRMED] - before[0]
        captures = books.count_captures() - before[1]
    too_many = max(confirmed, captures) - 1
    row = figures.get_row(f"{N} rivals: {prepare.__name__.replace('_', ' ')}")
    row.control = (row.control or 0) + too_many
    assert too_many > 0, "the control went well: this test would notice nothing"
