"""What comes back if a reservation is cancelled: /api/reservations/terms"""

from datetime import datetime

import pytest

from tests.factories_centers import TermsFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    START,
    make_booking,
    make_pending_booking,
    make_room,
)
from tests.operations.helpers import refused

BOOKED_AT = START - 200 * HOUR
pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(BOOKED_AT, tick=False)]

TERMS = "/api/reservations/terms"
CANCEL = "/api/reservations/cancel"
WEEK_BEFORE, TWO_DAYS_BEFORE = "2027-02-24T09:00:00-07:00", "2027-03-01T09:00:00-07:00"
TEXT = (
    "Cancel free of charge until Wed, Feb 24, 2027, 9:00 AM."
    " Until Mon, Mar 1, 2027, 9:00 AM you get half of the price back. After that, nothing."
)
OVER = {"Text": "It can no longer be cancelled.", "Steps": [{"RefundPercent": 0}]}


@pytest.fixture
def room():
    room = make_room()
    room.center.terms = TermsFactory(center=room.center, grace_minutes=15)
    room.center.save()
    return room


@pytest.fixture
def show(get):
    return lambda **fields: get(TERMS, **fields)["Terms"]


def test_terms_of_a_room_have_no_amounts(show, room):
    assert show(RoomId=room.pk, StartDate="2027-03-03T09:00:00") == {
        "Name": "Flexible",
        "Text": TEXT,
        "Steps": [
            {"Until": WEEK_BEFORE, "RefundPercent": 100},
            {"Until": TWO_DAYS_BEFORE, "RefundPercent": 50},
            {"RefundPercent": 0},
        ],
    }


def test_steps_of_a_booking_are_what_cancel_refunds(show, get, ada, room, time_machine):
    booking = make_booking(ada, room, now=BOOKED_AT)
    shown = show(ReservationId=booking.pk)

    assert (shown["Text"], shown["GraceUntil"]) == (TEXT, "2027-02-23T01:15:00-07:00")
    assert [step["Refund"] for step in shown["Steps"]] == [75, 37.5, 0]
    for step, following in zip(shown["Steps"], [*shown["Steps"][1:], None], strict=True):
        if "Until" not in step:
            continue
        until = datetime.fromisoformat(step["Until"])
        for at, expected in ((until - MINUTE, step), (until, following)):
            time_machine.move_to(at, tick=False)
            refund = get(CANCEL, ReservationId=booking.pk, TestMode=True)["Refund"]
            assert refund == expected["Refund"]
            assert show(ReservationId=booking.pk)["Steps"][0] == expected
    assert get(CANCEL, ReservationId=booking.pk)["Refund"] == 0
    assert show(ReservationId=booking.pk) == {"Name": "Flexible", **OVER}


def test_grace_is_a_step_of_its_own_if_the_others_give_less(show, ada, room, time_machine):
    booked_at = START - HOUR
    booking = make_booking(ada, room, now=booked_at)
    time_machine.move_to(booked_at, tick=False)
    shown = show(ReservationId=booking.pk)
    assert shown["Steps"] == [
        {"Until": shown["GraceUntil"], "RefundPercent": 100, "Refund": 75},
        {"RefundPercent": 0, "Refund": 0},
    ]
    time_machine.move_to(booked_at + 15 * MINUTE, tick=False)
    shown = show(ReservationId=booking.pk)
    assert "GraceUntil" not in shown
    assert shown["Steps"] == [{"RefundPercent": 0, "Refund": 0}]
    assert shown["Text"] == "You can cancel until it begins, but nothing is refunded."


def test_request_costs_nothing_to_cancel_and_what_has_begun_cannot_be(show, ada, time_machine):
    request = make_pending_booking(ada, now=BOOKED_AT)
    booking = make_booking(ada, now=BOOKED_AT)
    shown = show(ReservationId=request.pk)
    assert shown["Steps"] == [{"RefundPercent": 100}]
    assert shown["Text"] == (
        "Until the center has answered, cancelling costs nothing. Once it has agreed, cancel free"
        " of charge until Tue, Mar 2, 2027, 9:00 AM. After that, nothing."
    )
    time_machine.move_to(START, tick=False)
    assert show(ReservationId=booking.pk) == OVER


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ["ReservationId"]),
        ({"RoomId": 1}, ["StartDate"]),
        ({"StartDate": "2027-03-03T09:00:00"}, ["RoomId"]),
        ({"ReservationId": 1, "RoomId": 1}, ["RoomId"]),
        ({"ReservationId": 1, "StartDate": "2027-03-03T09:00:00"}, ["StartDate"]),
        ({"RoomId": 1, "StartDate": "2027-03-14T02:30:00"}, ["StartDate"]),
    ],
)
def test_what_is_missing_or_too_much_is_named(call, room, fields, names):
    if "RoomId" in fields:
        fields = {**fields, "RoomId": room.pk}
    error = refused(call(TERMS, **fields), 400, "InvalidRequest")
    assert all(name in error["Details"] + error["Message"] for name in names)


def test_inactive_room_is_not_found(call, room):
    room.is_active = False
    room.save()
    refused(call(TERMS, RoomId=room.pk, StartDate="2027-03-03T09:00:00"), 404, "NotFound")
