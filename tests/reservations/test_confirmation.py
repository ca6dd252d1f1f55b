"""The message in the response of a checkout."""

from datetime import UTC, datetime

import pytest

from reservations.booking.checkout import check_out, dry_run
from reservations.models.status import Status
from reservations.notifications import confirmation
from roombook.errors import CardDeclined
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
)

pytestmark = pytest.mark.django_db

WHAT = "Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM"


@pytest.fixture
def ada():
    return UserFactory()


def test_booking_message_has_room_center_time_and_charge(ada):
    reservation = make_booking(ada)
    assert confirmation.get_message(reservation) == (
        f"You have booked {WHAT} (reservation {reservation.pk})."
        " $75.00 was charged to Visa ending 4242."
    )


def test_free_booking_message_has_no_charge(ada):
    AllowanceFactory(user=ada)
    message = confirmation.get_message(make_booking(ada))
    assert message.endswith(". There was nothing to pay.")


def test_pending_request_message_mentions_approval(ada):
    reservation = make_pending_booking(ada)
    assert confirmation.get_message(reservation) == (
        f"Your request for {WHAT} is with the center (reservation {reservation.pk})."
        " $75.00 is reserved on Visa ending 4242 and charged only when the center agrees."
    )


def test_free_pending_request_message_has_no_charge(ada):
    AllowanceFactory(user=ada)
    assert confirmation.get_message(make_pending_booking(ada)).endswith("There is nothing to pay.")


def test_processing_message_asks_not_to_pay_again():
    row = ReservationFactory(status=Status.PROCESSING)
    assert confirmation.get_message(row) == (
        "Your payment is being confirmed. Please do not pay again."
    )


def test_dry_run_message_mentions_the_test(ada):
    reservation = dry_run(
        make_draft(ada).pk, user=ada, payment_method=make_payment_method(), now=NOW
    )
    assert confirmation.get_message(reservation) == (
        f"This was a test: {WHAT} can be booked for $75.00. Nothing was booked or charged."
    )


def test_message_times_are_local_and_show_the_second_day(ada):
    room = make_room(time_zone_id="Asia/Kolkata", turnaround_minutes=0)
    room.center.is_after_hours_support_enabled = True
    room.center.save()
    start = datetime(2027, 3, 3, 14, 30, tzinfo=UTC)  # 20:00 in Kolkata
    reservation = make_draft(ada, room, start=start, hours=6)
    assert confirmation.describe_booking(reservation) == (
        "Boardroom at Glenarm, Wed, Mar 3, 2027, 8:00 PM - Thu, Mar 4, 2027, 2:00 AM"
    )


def test_repeated_checkout_has_same_message_after_the_meeting(ada):
    reservation = make_booking(ada)
    first = confirmation.get_message(reservation)
    for status in (Status.COMPLETED, Status.NO_SHOW):
        reservation.transition_to(status, by=None, now=NOW)
        assert confirmation.get_message(reservation) == first


def test_message_names_the_card_that_was_charged(ada):
    reservation = make_draft(ada)
    with pytest.raises(CardDeclined):
        check_out(
            reservation.pk,
            user=ada,
            payment_method=make_payment_method("4000000000000002"),
            now=NOW,
        )
    method = make_payment_method("5555555555554444")
    reservation = check_out(reservation.pk, user=ada, payment_method=method, now=NOW)
    assert "MasterCard ending 4444" in confirmation.get_message(reservation)
