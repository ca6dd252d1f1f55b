"""POST /api/reservations/cancel"""

import pytest

from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Refund
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import HOUR, NOW, make_booking
from tests.gateway_faults import add_fault
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


def test_cancel_with_unresolved_payment_returns_503(cancel, ada):
    add_fault(operation="capture", kind="timeout_before", times=2)
    reservation = make_booking(ada)

    response = cancel(reservation)

    error = refused(response, 503, "ServiceUnavailable")
    assert int(response["Retry-After"]) > 0
    assert error["Message"] == (
        "The payment is not finished yet. Nothing was changed. Please try again."
    )
    assert Reservation.objects.get().status == Status.CONFIRMED
    assert cancel(reservation).json()["Refund"] == 75


def test_booking_that_a_clock_ahead_of_ours_has_made_can_be_cancelled(cancel, ada, time_machine):
    time_machine.move_to(NOW + HOUR, tick=False)
    reservation = make_booking(ada, now=NOW + HOUR)
    time_machine.move_to(NOW, tick=False)

    assert cancel(reservation).json()["Refund"] == 75
