"""Concurrent reschedules, checkouts and cancellations."""

import datetime as dt

import pytest

from reservations.booking import cancellation, checkout
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.errors import DomainError
from tests.concurrency import run_concurrently
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    MINUTE,
    NOW,
    START,
    make_booking,
    make_draft,
    make_payment_method,
    make_room,
)
from tests.reservations.moves import at_rate, beside, moved, net

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("books_agree"),
]

DAY = dt.timedelta(days=1)


def outcomes(calls):
    """Run the calls concurrently and return their results."""
    ended = run_concurrently(calls, losers=(DomainError,))
    return sorted(each if isinstance(each, str) else "done" for each in ended)


def test_concurrent_reschedules_into_one_slot_one_succeeds():
    clerk, target = StaffFactory(), make_room()
    rows = [make_booking(room=beside(target)) for _ in range(6)]

    answers = outcomes([lambda row=row: moved(row, clerk, room=target) for row in rows])

    assert answers == [*["SlotUnavailable"] * 5, "done"]
    assert Reservation.objects.filter(room=target).count() == 1


def test_reschedule_and_checkouts_of_one_slot_one_succeeds():
    clerk, target = StaffFactory(), make_room()
    row = make_booking(room=beside(target))
    rivals = [make_draft(UserFactory(), target, now=NOW - n * 16 * MINUTE) for n in (3, 2, 1)]
    pays = [
        lambda rival=rival: checkout.check_out(
            rival.pk, user=rival.user, payment_method=make_payment_method(), now=NOW
        )
        for rival in rivals
    ]

    answers = outcomes([lambda: moved(row, clerk, room=target), *pays])

    assert answers == [*["SlotUnavailable"] * 3, "done"]


def test_crossing_reschedules_do_not_deadlock():
    """Two bookings repeatedly change to the room of the other, at a time when it is available."""
    clerk, one = StaffFactory(), make_room()
    two = beside(one)
    first, second = make_booking(room=one), make_booking(room=two)

    for day in range(1, 5):
        answers = outcomes(
            [
                lambda day=day: moved(
                    first, clerk, room=(one, two)[day % 2], start=START + day * DAY
                ),
                lambda day=day: moved(
                    second, clerk, room=(two, one)[day % 2], start=START + day * DAY
                ),
            ]
        )
        assert answers == ["done", "done"]


def test_concurrent_reschedule_and_cancellation_keep_the_money_consistent():
    clerk = StaffFactory()
    reservation = make_booking()
    cheap = at_rate(reservation.room, 15)

    outcomes(
        [
            lambda: moved(reservation, clerk, room=cheap),
            lambda: cancellation.cancel(reservation.pk, now=NOW),
        ]
    )

    assert Reservation.objects.get().status == Status.CANCELLED
    assert net() == 0
