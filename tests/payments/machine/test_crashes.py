"""A worker dies at each place of every request that moves money or saves a card.

Afterwards the same request, or `reconcile_payments`, resolves it: what was requested is done and
paid once, or not at all. docs/checkout.md has the tables of the steps. tests/faults/test_storms.py
kills real processes.
"""

import datetime as dt
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from django.core.management import CommandError
from django.db import connection

from accounts.act import Act
from payments import lifecycle, refunds, setups
from payments.ledger import posting
from payments.models import PaymentSetup, SavedCard
from reservations.booking import amendments, charging, differences, price_adjustments
from reservations.booking.amendments import ChangeRequest
from reservations.booking.commands import Command
from reservations.booking.integrity.money import ledger_off_the_facts
from reservations.models import PriceAdjustment, Reservation
from roombook.db.transactions import in_transaction
from tests.factories_people import AdministratorFactory
from tests.faults import consistency
from tests.faults.size import LONG
from tests.http import post
from tests.payments.machine.banks import Bank
from tests.payments.machine.beginnings import START_LATER
from tests.payments.machine.machine import CheckoutMachine
from tests.payments.machine.points import Fault
from tests.payments.machine.runner import prepare

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        connection.vendor == "postgresql" and not LONG, reason="the rules are the same there"
    ),
]

HOUR = dt.timedelta(hours=1)
MAX_PLACES = 40


class CrashMachine(CheckoutMachine):
    """One customer with one reservation; the actions that the random machine does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: tuple[ChangeRequest, Any] | None = None

    def begin_with(self, card: str, room: int, before: str) -> tuple[int, int]:
        self.save_card(0, card)
        self.create_draft(0, room, START_LATER, has_promo=True)
        if before:
            self.do(before, *self.get(0))
        return self.get(0)

    def get_request(self, pk: int, hours: int) -> tuple[ChangeRequest, Any]:
        """The wanted change and its price, which is the same when the request is repeated."""
        if self.wanted is None:
            booking = Reservation.objects.get(pk=pk)
            request = ChangeRequest(booking.room_id, booking.start, booking.start + hours * HOUR)
            would = amendments.amend.preview(
                Act(AdministratorFactory(), self.now, is_staff=True), pk, request
            )
            self.wanted = request, would.result.new_total
        return self.wanted

    def do_extend(self, pk: int, number: int, hours: int = 4) -> None:
        request, total = self.get_request(pk, hours)
        body = self.post(
            number,
            "reservations/change",
            ReservationId=pk,
            EndDate=request.end.isoformat(),
            ExpectedTotal=float(total),
            UseSavedPaymentInfo=True,
        )
        if not body["Success"]:
            self.problems.append(f"refused: {body['Error']['Summary']}")

    def do_shorten(self, pk: int, number: int) -> None:
        self.do_extend(pk, number, hours=2)

    def do_extend_for_cash(self, pk: int, number: int) -> None:
        request, total = self.get_request(pk, 4)
        amendments.amend(
            Act(AdministratorFactory(), self.now, is_staff=True),
            pk,
            request,
            taken=amendments.TakenPayment("cash"),
            expected_total=total,
        )

    def do_adjust(self, pk: int, number: int) -> None:
        act = Act(AdministratorFactory(), self.now, is_staff=True)
        price_adjustments.adjust_price(act, pk, amount=Decimal(-5), reason="Noise")

    def do_enter_other_card(self, pk: int, number: int) -> None:
        self.do_enter_card(pk, number, kind="asks")

    def do_open_setup_once(self, pk: int, number: int) -> None:
        """The app repeats the request with the same key."""
        customer = self.world.customers[number]
        fields = {"Token": customer.token, "ReturnUrl": "https://app.test/"}
        path, headers = "/api/account/create-payment-setup", {"Idempotency-Key": "the same"}
        body = post(customer.client, path, fields, headers=headers).json()
        assert body["Success"], body
        self.setups[number].append(body["PaymentSetup"]["Id"])


def read_booking(pk: int) -> tuple[str, int]:
    """The status of a reservation and its hours."""
    booking = Reservation.objects.get(pk=pk)
    return booking.status, (booking.end - booking.start) // HOUR


def count_adjustments(pk: int) -> int:
    return PriceAdjustment.objects.filter(reservation=pk).count()


def count_setups(pk: int) -> int:
    return PaymentSetup.objects.count()


def read_saved_card(pk: int) -> str:
    customer = CheckoutMachine.world.customers[0].user
    return SavedCard.objects.get(user=customer).last4


@dataclass(frozen=True)
class Way:
    """A request in which the worker dies, after what nobody disturbs, and its result.

    If nobody repeats the request, either it is done or the state is one of `undone`.
    """

    action: str
    done: Any
    undone: set[Any]
    before: str = ""
    room: int = 0
    card: str = "good"
    read: Callable[[int], Any] = read_booking
    is_repeatable: bool = True


BOOK, WAIT = "checkout", "checkout, confirm"
BOOKED, LONGER, SHORTER = ("Confirmed", 3), ("Confirmed", 4), ("Confirmed", 2)
NEW, PENDING, CANCELLED = ("New", 3), ("Pending", 3), ("Cancelled", 3)
WAITING = ("Processing", 3)
WAYS = {
    "checkout": Way("checkout", BOOKED, {NEW}),
    "checkout of a card that asks": Way("checkout", WAITING, {NEW}, card="asks"),
    "confirmed checkout": Way("checkout", BOOKED, {NEW}, before=WAIT, card="asks"),
    "cancelling while the bank waits": Way("cancel", CANCELLED, {NEW, WAITING}, BOOK, card="asks"),
    "request": Way("checkout", PENDING, {NEW}, room=1),
    "approval": Way("approve", BOOKED, {PENDING}, BOOK, room=1),
    "decline": Way("decline", ("Declined", 3), {PENDING}, BOOK, room=1),
    "cancelling a booking": Way("cancel", CANCELLED, {BOOKED}, BOOK),
    "cancelling a request": Way("cancel", CANCELLED, {PENDING}, BOOK, room=1),
    "change": Way("extend", LONGER, {BOOKED}, BOOK),
    "confirmed change": Way(
        "extend", LONGER, {BOOKED}, f"{WAIT}, checkout, extend, confirm", card="asks"
    ),
    "cheaper change": Way("shorten", SHORTER, {BOOKED}, BOOK),
    # Staff cannot extend it to the same end again.
    "change for cash": Way("extend for cash", LONGER, {BOOKED}, BOOK, is_repeatable=False),
    "price adjustment": Way("adjust", 1, {0}, BOOK, read=count_adjustments, is_repeatable=False),
    "opening a payment setup": Way("open setup once", 1, {0, 1}, read=count_setups),
    "end of a payment setup": Way(
        "complete setup",
        "3184",
        {"4242"},
        "open setup, enter other card",
        read=read_saved_card,
    ),
}


def crash(way: Way, place: int, *, is_repeated: bool) -> tuple[bool, list[str]]:
    """Let the worker die at the place, and resolve that.

    Returns whether there is such a place, and everything that is wrong in the end.
    """
    machine, found = CrashMachine(), []
    try:
        pk, number = machine.begin_with(way.card, way.room, way.before)
        machine.run(Fault("dies", place), way.action, pk, number)
        # Whatever was committed is posted: no line without its event, no event without its line.
        found += ledger_off_the_facts(machine.now)
        machine.do("two minutes", pk, number)
        if not is_repeated:
            machine.act("reconcile", pk, number)
            # The checks name payments that still wait for the bank.
            found += [] if way.read(pk) == WAITING else consistency.find_problems()
            if (state := way.read(pk)) not in {way.done, *way.undone}:
                found.append(f"{state} after reconcile_payments")
        if way.is_repeatable or way.read(pk) != way.done:
            machine.act(way.action, pk, number)
        if (state := way.read(pk)) != way.done:
            found.append(f"{state} after the repetition")
        if way.done != WAITING:
            machine.act("reconcile", pk, number)
            found += consistency.find_problems()
        return bool(machine.places.deaths), [*found, *machine.problems]
    except (AssertionError, CommandError) as error:
        return bool(machine.places.deaths), [*found, str(error)]
    finally:
        machine.close()


def crash_everywhere(way: Way, *, step: int = 1) -> Iterator[tuple[int, bool, list[str]]]:
    """Yield each place after whose death something is wrong, whether somebody repeats, and what."""
    with prepare(Bank()):
        for place in range(1, MAX_PLACES, step):
            resolvers = [True, False] if LONG else [place // step % 2 == 1]
            for is_repeated in resolvers:
                has_died, problems = crash(way, place, is_repeated=is_repeated)
                if problems:
                    yield place, is_repeated, problems
            if not has_died:
                return
    raise AssertionError("There is always another place.")


@pytest.mark.parametrize("name", WAYS)
def test_request_whose_worker_dies_is_done_once_or_not_at_all(name):
    # The short form takes every third place, and one of the two resolvers at each.
    assert list(crash_everywhere(WAYS[name], step=1 if LONG else 3)) == []


# --- Controls ------------------------------------------------------------------------------------


@contextmanager
def apply_changes_in_two_transactions() -> Iterator[None]:
    """A booking is changed in one transaction, and the change marked as applied in another one."""
    conclude = differences.Difference.conclude

    def conclude_without_transaction(*args: Any) -> None:
        with patch.object(amendments, "perform", inspect.unwrap(amendments.perform)):
            conclude(*args)

    with (
        patch.object(charging, "conclude", inspect.unwrap(charging.conclude)),
        patch.object(differences.Difference, "conclude", conclude_without_transaction),
    ):
        yield


def end_setups_in_two_transactions() -> AbstractContextManager[Any]:
    """A setup ends in a transaction of its own, before its card is saved."""
    return patch.multiple(
        setups,
        _replace_saved_card=inspect.unwrap(setups._replace_saved_card),
        _end_setup=in_transaction(setups._end_setup),
    )


@contextmanager
def post_in_a_second_transaction() -> Iterator[None]:
    """An event is stored in one transaction, and posted to the ledger in another one."""
    write, waiting = posting._write, list[Any]()

    def delay(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            waiting.clear()  # The lines of a worker that died.
            result = function(*args, **kwargs)
            for arguments, event in [*waiting]:
                in_transaction(write)(*arguments, **event)
            return result

        return run

    with (
        patch.object(posting, "_write", lambda *args, **event: waiting.append((args, event))),
        patch.object(Command, "_commit", delay(Command._commit)),
        patch.object(charging, "conclude", delay(charging.conclude)),
        patch.object(refunds, "_close_refund", delay(refunds._close_refund)),
        patch.object(lifecycle, "record_gateway_result", delay(lifecycle.record_gateway_result)),
    ):
        yield


@pytest.mark.parametrize(
    ("defect", "name"),
    [
        (apply_changes_in_two_transactions, "change"),
        (post_in_a_second_transaction, "checkout"),
        (post_in_a_second_transaction, "change"),
        (post_in_a_second_transaction, "cancelling a booking"),
        (post_in_a_second_transaction, "price adjustment"),
        (end_setups_in_two_transactions, "end of a payment setup"),
    ],
)
def test_control_with_two_transactions_leaves_half_of_it(defect, name):
    # Not only that something is wrong: the ledger is.
    wrong = "differ from the ledger" if defect is post_in_a_second_transaction else ""
    with defect(), closing(crash_everywhere(WAYS[name])) as found:
        # The first place is enough, because each takes time.
        assert any(wrong in str(problems) for _, _, problems in found)
