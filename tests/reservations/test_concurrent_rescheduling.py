"""Concurrent reschedules, changes, checkouts and cancellations."""

import datetime as dt

import pytest

from reservations.booking import cancellation, checkout
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.views import changes as change_views
from roombook.errors import DomainError
from tests.concurrency import run_concurrently
from tests.factories_people import StaffFactory, UserFactory, issue_token
from tests.factories_reservations import (
    MINUTE,
    NOW,
    START,
    make_booking,
    make_draft,
    make_payment_method,
    make_room,
)
from tests.http import post
from tests.reservations.rescheduling_helpers import (
    get_net_payment,
    make_room_at_rate,
    make_room_in_same_center,
    reschedule,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]

DAY = dt.timedelta(days=1)


def outcomes(calls):
    """Run the calls concurrently and return their results."""
    ended = run_concurrently(calls, losers=(DomainError,))
    return sorted(each if isinstance(each, str) else "done" for each in ended)


def test_concurrent_reschedules_into_one_slot_one_succeeds():
    clerk, target = StaffFactory(), make_room()
    rows = [make_booking(room=make_room_in_same_center(target)) for _ in range(6)]

    answers = outcomes([lambda row=row: reschedule(row, clerk, room=target) for row in rows])

    assert answers == [*["SlotUnavailable"] * 5, "done"]
    assert Reservation.objects.filter(room=target).count() == 1


def test_reschedule_and_checkouts_of_one_slot_one_succeeds():
    clerk, target = StaffFactory(), make_room()
    row = make_booking(room=make_room_in_same_center(target))
    competitors = [make_draft(UserFactory(), target, now=NOW - n * 16 * MINUTE) for n in (3, 2, 1)]
    pays = [
        lambda competitor=competitor: checkout.check_out(
            competitor.pk, user=competitor.user, payment_method=make_payment_method(), now=NOW
        )
        for competitor in competitors
    ]

    answers = outcomes([lambda: reschedule(row, clerk, room=target), *pays])

    assert answers == [*["SlotUnavailable"] * 3, "done"]


def test_crossing_reschedules_do_not_deadlock():
    """Two bookings repeatedly change to the room of the other, at a time when it is available."""
    clerk, one = StaffFactory(), make_room()
    two = make_room_in_same_center(one)
    first, second = make_booking(room=one), make_booking(room=two)

    for day in range(1, 5):
        answers = outcomes(
            [
                lambda day=day: reschedule(
                    first, clerk, room=(one, two)[day % 2], start=START + day * DAY
                ),
                lambda day=day: reschedule(
                    second, clerk, room=(two, one)[day % 2], start=START + day * DAY
                ),
            ]
        )
        assert answers == ["done", "done"]


def test_concurrent_reschedule_and_cancellation_keep_the_money_consistent():
    clerk = StaffFactory()
    reservation = make_booking()
    cheap = make_room_at_rate(reservation.room, 15)

    outcomes(
        [
            lambda: reschedule(reservation, clerk, room=cheap),
            lambda: cancellation.cancel(reservation.pk, now=NOW),
        ]
    )

    assert Reservation.objects.get().status == Status.CANCELLED
    assert get_net_payment() == 0


def test_change_of_attendees_does_not_undo_a_move_by_staff_at_the_same_time(
    client, clerk, monkeypatch
):
    booking = make_booking(room=make_room_at_rate(make_room(), 25))
    other_room = make_room_at_rate(booking.room, 25)
    real = change_views._build_request

    def build_before_staff_move_it(*args, **fields):
        request = real(*args, **fields)
        reschedule(booking, clerk, room=other_room)
        return request

    monkeypatch.setattr(change_views, "_build_request", build_before_staff_move_it)
    body = {"Token": issue_token(booking.user), "ReservationId": booking.pk}
    body |= {"NumberOfAttendees": 4, "ExpectedTotal": 75}

    answer = post(client, "/api/reservations/change", body)

    assert answer.json()["Error"]["Summary"] == "ReservationNotOpen"
    booking.refresh_from_db()
    assert booking.room == other_room
    assert booking.number_of_attendees != 4
