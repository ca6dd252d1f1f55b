"""POST /api/reservations/cancel"""

import pytest

from payments.gateways.sandbox_models import SandboxFault, SandboxPayment
from payments.models import Refund
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import issue_token
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    ReservationFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


@pytest.fixture
def cancel(call):
    return lambda row, **fields: call(
        "/api/reservations/cancel", **{"ReservationId": row.pk, **fields}
    )


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


def test_late_cancellation_has_no_refund(cancel, ada, time_machine):
    reservation = make_booking(ada)
    time_machine.move_to(START - 23 * HOUR, tick=False)
    token = issue_token(ada)

    preview = cancel(reservation, TestMode=True, Token=token).json()
    outcome = cancel(reservation, Token=token).json()

    sentence = "it is less than 24 hours before its start, so nothing is refunded."
    assert preview["Message"] == f"If you cancel now: {sentence}"
    assert outcome["Message"] == f"The reservation is cancelled: {sentence}"
    assert preview["Refund"] == outcome["Refund"] == 0
    assert not Refund.objects.exists()


@pytest.mark.parametrize("make", [make_draft, make_pending_booking])
def test_cancelled_draft_or_request_charges_nothing_and_releases_its_room(cancel, ada, make):
    room = make_room(is_live_inventory=make is make_draft)
    answer = cancel(make(ada, room)).json()
    assert answer["Message"] == "The reservation is cancelled: nothing was charged."
    assert answer["Refund"] == 0
    assert make_draft(room=room).holds_slot
    states = list(SandboxPayment.objects.values_list("state", flat=True))
    assert states == ([] if make is make_draft else ["voided"])


@pytest.mark.parametrize(
    "status", [Status.PROCESSING, Status.DECLINED, Status.EXPIRED, Status.COMPLETED, Status.NO_SHOW]
)
def test_processing_or_closed_reservation_cannot_be_cancelled(cancel, ada, status):
    row = ReservationFactory(user=ada, status=status)
    for test_mode in (True, False):
        refused(cancel(row, TestMode=test_mode), 409, "ReservationNotOpen")
    row.refresh_from_db()
    assert row.status == status


def test_cancel_after_start_is_refused(cancel, ada, time_machine):
    reservation = make_booking(ada)
    time_machine.move_to(START, tick=False)
    error = refused(cancel(reservation, Token=issue_token(ada)), 409, "ReservationNotOpen")
    assert error["Message"] == "The meeting has begun; it can no longer be cancelled."


def test_cancel_with_unresolved_payment_returns_503(cancel, ada):
    SandboxFault.objects.create(operation="capture", kind="timeout_before", times=2)
    reservation = make_booking(ada)

    response = cancel(reservation)

    error = refused(response, 503, "ServiceUnavailable")
    assert int(response["Retry-After"]) > 0
    assert error["Message"] == (
        "The payment is not finished yet. Nothing was changed. Please try again."
    )
    assert Reservation.objects.get().status == Status.CONFIRMED
    assert cancel(reservation).json()["Refund"] == 75
