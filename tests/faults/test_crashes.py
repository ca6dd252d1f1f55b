"""A worker dies at each step of checkout, of approval and of cancelling, as by `kill -9`.

Afterwards the client tries again, or `reconcile_payments` comes by: either settles all of it.
"""

import time
from collections.abc import Iterable
from functools import partial

import pytest

from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.faults import books, figures
from tests.faults.client import BROKEN, Answer, at_once, insist
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG
from tests.faults.world import CARD, Customer, World

# Whether the money was reserved when the worker died: then a reconciler books, else it lets go.
CHECKOUT = {
    "in T1": False,
    "after T1": False,
    "in authorize": False,
    "after authorize": True,
    "in T2": True,
    "after T2": True,
    "in capture": True,
    "after the gateway's capture": True,
    "after capture": True,
}
APPROVAL = {
    "in approval": Status.PENDING,
    "after approval": Status.CONFIRMED,
    "in capture": Status.CONFIRMED,
    "after the gateway's capture": Status.CONFIRMED,
    "after capture": Status.CONFIRMED,
}
CANCEL = {
    "in cancel": Status.CONFIRMED,
    "after cancel": Status.CANCELLED,
    "in capture": Status.CANCELLED,  # The same lock: here it is the refund's.
    "after the gateway's refund": Status.CANCELLED,
    "after refund": Status.CANCELLED,
}
CANCEL_REQUEST = {
    "in cancel": Status.PENDING,
    "after cancel": Status.CANCELLED,
    "after the gateway's void": Status.CANCELLED,
    "after void": Status.CANCELLED,
}


def status_of(service: Service, pk: int) -> str:
    with service.database.open():
        return Reservation.objects.get(pk=pk).status


def crashed(service: Service, point: str, answer: Answer) -> Answer:
    """The answer that was none: the worker died where it was told to."""
    assert service.has_crashed, f"nobody came by {point!r}"
    assert answer.status == BROKEN, point
    return answer


def checkouts(
    service: Service, row: figures.Row, points: Iterable[str] = CHECKOUT
) -> dict[str, tuple[Customer, int]]:
    """One checkout for each step that dies there; promo code and included hours take part."""
    with service.database.open():
        world = World(service)
        promo = PromoCodeFactory().code
        begun = {}
        for point in points:
            customer = world.customer()
            AllowanceFactory(user=customer.user, hours=1)
            begun[point] = customer, world.draft(customer, world.room(), promo=promo).pk
    for point, (customer, pk) in begun.items():
        service.crash(point)
        row.hear([crashed(service, point, customer.phone.checkout(pk, CARD))])
        row.runs += 1
    return begun


def test_the_clients_next_try_settles_a_checkout_that_died(hasty, all_is_well):
    case = "checkout dies, client tries again"
    row = figures.row(case)
    with hasty.database.open():
        captured = books.captures()

    for customer, pk in checkouts(hasty, row).values():
        heard = []
        answer = insist(partial(customer.phone.checkout, pk, CARD), heard=heard)
        row.hear(heard)
        assert answer.code == "Confirmed"
        row.confirmed += 1

    all_is_well(hasty, case)
    with hasty.database.open():
        captured = books.captures() - captured
    row.captures += captured
    assert captured == len(CHECKOUT)


def test_many_tries_at_once_settle_a_checkout_that_died(hasty, all_is_well):
    """Everybody finds the same payment in doubt, and one of them settles it."""
    case = "checkout dies, 8 tries at once"
    row = figures.row(case)
    with hasty.database.open():
        captured = books.captures()
    points = list(CHECKOUT) if LONG else ["after T1", "after authorize"]
    for customer, pk in checkouts(hasty, row, points).values():
        time.sleep(LEASE)
        answers = at_once([partial(customer.phone.checkout, pk, CARD)] * 8)
        row.hear(answers)
        # The last is told where a slow machine outlives its own lease.
        allowed = {"Confirmed", "Processing", "ReservationNotOpen"}
        assert {answer.code for answer in answers} <= allowed
        last = insist(partial(customer.phone.checkout, pk, CARD))
        assert last.code == "Confirmed"
        row.confirmed += 1

    all_is_well(hasty, case)
    with hasty.database.open():
        captured = books.captures() - captured
    row.captures += captured
    assert captured == len(points)


def test_reconciling_settles_a_checkout_that_died(hasty, all_is_well):
    case = "checkout dies, reconcile_payments"
    row = figures.row(case)
    with hasty.database.open():
        captured = books.captures()
    begun = checkouts(hasty, row)
    time.sleep(LEASE)

    all_is_well(hasty, case)

    for point, (_, pk) in begun.items():
        was_reserved = CHECKOUT[point]
        wanted = Status.CONFIRMED if was_reserved else Status.NEW
        assert status_of(hasty, pk) == wanted, point
        row.confirmed += was_reserved
    with hasty.database.open():
        captured = books.captures() - captured
    row.captures += captured
    assert captured == sum(CHECKOUT.values())
    # Nothing is held for ever: what was let go can be had, here by the same customer.
    customer, pk = begun["after T1"]
    assert customer.phone.checkout(pk, CARD).code == "Confirmed"


def test_reconciling_as_a_command_reports_what_it_did(hasty, all_is_well):
    """Once as an administrator runs it, in a process of its own."""
    with hasty.database.open():
        world = World(hasty)
        customer = world.customer()
        pk = world.draft(customer, world.room()).pk
    hasty.crash("after T2")
    crashed(hasty, "after T2", customer.phone.checkout(pk, CARD))

    done = hasty.manage("reconcile_payments")

    assert (done.returncode, done.stderr) == (0, "")
    assert "1 captured" in done.stdout
    check = hasty.manage("verify_integrity")
    assert (check.returncode, check.stdout) == (0, "")


@pytest.mark.parametrize("settler", ["tries again", "reconcile_payments"])
def test_an_approval_that_died_is_settled(settler, hasty, all_is_well):
    case = f"approval dies, {settler}"
    row = figures.row(case)
    with hasty.database.open():
        world = World(hasty)
        desk = world.desk()
        asked = {}
        for point in APPROVAL:
            customer = world.customer()
            room = world.room(is_live_inventory=False)
            asked[point] = customer, world.draft(customer, room).pk
    for customer, pk in asked.values():
        assert customer.phone.checkout(pk, CARD).code == "Pending"

    for point, (_, pk) in asked.items():
        hasty.crash(point)
        row.hear([crashed(hasty, point, desk.act("approve", pk))])
        row.runs += 1
        assert status_of(hasty, pk) == APPROVAL[point], point
        if settler == "tries again":
            assert desk.act("approve", pk).status == 302
            assert status_of(hasty, pk) == Status.CONFIRMED

    all_is_well(hasty, case)
    confirmed = [pk for _, pk in asked.values() if status_of(hasty, pk) == Status.CONFIRMED]
    row.confirmed += len(confirmed)
    with hasty.database.open():
        row.captures += sum(
            payment.state == "captured"
            for pk in confirmed
            for payment in Reservation.objects.get(pk=pk).payments.all()
        )
    assert len(confirmed) == (len(APPROVAL) if settler == "tries again" else len(APPROVAL) - 1)


@pytest.mark.parametrize("settler", ["tries again", "reconcile_payments"])
@pytest.mark.parametrize("live", [True, False], ids=["a booking", "a request"])
def test_a_cancellation_that_died_is_settled(live, settler, hasty, all_is_well):
    steps = CANCEL if live else CANCEL_REQUEST
    case = f"cancelling {'a booking' if live else 'a request'} dies, {settler}"
    row = figures.row(case)
    with hasty.database.open():
        world = World(hasty)
        booked = {}
        for point in steps:
            customer = world.customer()
            room = world.room(is_live_inventory=live)
            booked[point] = customer, world.draft(customer, room).pk
    for customer, pk in booked.values():
        wanted = "Confirmed" if live else "Pending"
        assert customer.phone.checkout(pk, CARD).code == wanted

    for point, (customer, pk) in booked.items():
        hasty.crash(point)
        row.hear([crashed(hasty, point, customer.phone.cancel(pk))])
        row.runs += 1
        assert status_of(hasty, pk) == steps[point], point
        if settler == "tries again":
            answer = customer.phone.cancel(pk)
            row.hear([answer])
            assert answer.status == 200
            assert answer.body.get("Refund", 0) == (50 if live else 0)
            assert status_of(hasty, pk) == Status.CANCELLED

    # That what was taken was given back once, and reserved money let go, is among the books.
    all_is_well(hasty, case)
