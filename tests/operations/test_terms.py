"""What comes back if a reservation is cancelled: /api/reservations/terms and cancel"""

from datetime import datetime

import pytest

from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Refund
from tests.factories_centers import TermsFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    make_booking,
    make_pending_booking,
    make_room,
)
from tests.gateway_faults import add_fault
from tests.operations.helpers import refused, status_of

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


def test_what_is_missing_or_too_much_is_named(call, room):
    start = {"StartDate": "2027-03-03T09:00:00"}
    for fields, name in (
        *(({}, "ReservationId"), ({"RoomId": room.pk}, "StartDate"), (start, "RoomId")),
        *(
            ({"ReservationId": 1, "RoomId": 1}, "RoomId"),
            ({"ReservationId": 1, **start}, "StartDate"),
        ),
        ({"RoomId": room.pk, "StartDate": "2027-03-14T02:30:00"}, "StartDate"),
    ):
        error = refused(call(TERMS, **fields), 400, "InvalidRequest")
        assert name in error["Details"] + error["Message"], fields
    room.is_active = False
    room.save()
    refused(call(TERMS, RoomId=room.pk, **start), 404, "NotFound")


# --- Cancel reservation ---------------------------------------------------------------------------


@pytest.fixture
def cancel(call):
    return lambda row, **fields: call(CANCEL, **{"ReservationId": row.pk, **fields})


@pytest.mark.time_machine(NOW, tick=False)
def test_cancel_refunds_and_returns_the_reservation_after_a_preview(cancel, read, ada):
    reservation = make_booking(ada)
    before = read(reservation)

    assert cancel(reservation, TestMode=True).json() == {
        "Success": True,
        "Message": "If you cancel now: $75.00 is refunded to Visa ending 4242.",
        "Refund": 75,
        "Reservation": before,
    }
    assert read(reservation) == before
    assert not Refund.objects.exists()

    response = cancel(reservation)

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "Message": "The reservation is cancelled: $75.00 is refunded to Visa ending 4242.",
        "Refund": 75,
        "Reservation": {**before, "Status": "Cancelled"},
    }
    for fields in ({}, {"TestMode": True}):
        assert cancel(reservation, **fields).content == response.content
    assert SandboxPayment.objects.get().refunded == 75
    assert Refund.objects.get().state == "done"


@pytest.mark.time_machine(NOW, tick=False)
def test_cancel_with_an_unresolved_payment_changes_nothing_and_can_be_repeated(cancel, ada):
    add_fault(operation="capture", kind="timeout_before", times=2)
    booking = make_booking(ada)

    response = cancel(booking)

    message = refused(response, 503, "ServiceUnavailable")["Message"]
    assert message == "The payment is not finished yet. Nothing was changed. Please try again."
    assert int(response["Retry-After"]) > 0
    assert status_of(booking) == "Confirmed"
    assert cancel(booking).json()["Refund"] == 75


@pytest.mark.time_machine(NOW, tick=False)
def test_booking_that_a_clock_ahead_of_ours_has_made_can_be_cancelled(cancel, ada, time_machine):
    time_machine.move_to(NOW + HOUR, tick=False)
    reservation = make_booking(ada, now=NOW + HOUR)
    time_machine.move_to(NOW, tick=False)

    assert cancel(reservation).json()["Refund"] == 75
