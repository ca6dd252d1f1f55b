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
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservations/cancel"


@pytest.fixture
def cancel(client, token):
    def cancel(reservation, **fields):
        body = {"Token": token, "ReservationId": getattr(reservation, "pk", reservation), **fields}
        return post(client, PATH, body)

    return cancel


@pytest.fixture
def read(client, token):
    def read(reservation):
        body = {"Token": token, "Id": reservation.pk}
        return post(client, "/api/account/reservation", body).json()["Reservation"]

    return read


def test_cancel_refunds_and_returns_the_reservation(cancel, read, ada):
    reservation = make_booking(ada)
    before = read(reservation)

    response = cancel(reservation)

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "Message": "The reservation is cancelled: $75.00 is refunded to Visa ending 4242.",
        "Refund": 75,
        "Reservation": {**before, "Status": "Cancelled"},
    }
    assert SandboxPayment.objects.get().refunded == 75


def test_preview_shows_terms_and_changes_nothing(cancel, read, ada):
    reservation = make_booking(ada)

    response = cancel(reservation, TestMode=True)

    assert response.json() == {
        "Success": True,
        "Message": "If you cancel now: $75.00 is refunded to Visa ending 4242.",
        "Refund": 75,
        "Reservation": read(reservation),
    }
    assert read(reservation)["Status"] == "Confirmed"
    assert not Refund.objects.exists()


def test_cancel_repeated_returns_same_response_and_one_refund(cancel, ada):
    reservation = make_booking(ada)
    answers = [cancel(reservation) for _ in range(3)]
    assert len({each.content for each in answers}) == 1
    assert cancel(reservation, TestMode=True).content == answers[0].content
    assert Refund.objects.get().state == "done"


def test_cancel_accepts_and_returns_csv_and_jsonp(client, token, ada):
    reservation = make_booking(ada)
    body = {"Token": token, "ReservationId": reservation.pk, "TestMode": "true"}

    header, row = table(post_csv(client, f"{PATH}.csv", body))
    cells = dict(zip(header, row, strict=True))
    assert header[:4] == ["Success", "Message", "Refund", "Reservation.Id"]
    assert cells["Refund"] == "75.0"
    assert cells["Reservation.Status"] == "Confirmed"

    body = {"Token": token, "ReservationId": reservation.pk}
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", body), "cb")
    assert wrapped["Reservation"]["Status"] == "Cancelled"


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


def test_cancelled_draft_has_no_fee_and_releases_its_room(cancel, ada):
    room = make_room()
    answer = cancel(make_draft(ada, room)).json()
    assert (answer["Message"], answer["Refund"]) == (
        "The reservation is cancelled: nothing was charged.",
        0,
    )
    assert make_draft(room=room).holds_slot


def test_cancelled_pending_request_is_voided(cancel, ada):
    answer = cancel(make_pending_booking(ada)).json()
    assert (answer["Message"], answer["Refund"]) == (
        "The reservation is cancelled: nothing was charged.",
        0,
    )
    assert SandboxPayment.objects.get().state == "voided"


@pytest.mark.parametrize(
    "status", [Status.PROCESSING, Status.DECLINED, Status.EXPIRED, Status.COMPLETED, Status.NO_SHOW]
)
@pytest.mark.parametrize("test_mode", [True, False])
def test_processing_or_closed_reservation_cannot_be_cancelled(cancel, ada, status, test_mode):
    row = ReservationFactory(user=ada, status=status)
    response = cancel(row, TestMode=test_mode)
    assert response.status_code == 409
    assert response.json()["Error"]["Summary"] == "ReservationNotOpen"
    row.refresh_from_db()
    assert row.status == status


def test_cancel_after_start_is_refused(cancel, ada, time_machine):
    reservation = make_booking(ada)
    time_machine.move_to(START, tick=False)
    response = cancel(reservation, Token=issue_token(ada))
    assert response.status_code == 409
    assert response.json()["Error"] == {
        "Summary": "ReservationNotOpen",
        "Message": "The meeting has begun; it can no longer be cancelled.",
    }


def test_cancel_with_unresolved_payment_returns_503(cancel, ada):
    SandboxFault.objects.create(operation="capture", kind="timeout_before", times=2)
    reservation = make_booking(ada)

    response = cancel(reservation)

    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert response.json()["Error"] == {
        "Summary": "ServiceUnavailable",
        "Message": "The payment is not finished yet. Nothing was changed. Please try again.",
    }
    assert Reservation.objects.get().status == Status.CONFIRMED
    assert cancel(reservation).json()["Refund"] == 75


@pytest.mark.parametrize("test_mode", [True, False])
def test_reservation_of_another_account_is_not_found(cancel, test_mode):
    strangers = make_booking()
    answers = [cancel(each, TestMode=test_mode) for each in (strangers, 2**31 - 1)]
    assert {each.status_code for each in answers} == {404}
    assert answers[0].content == answers[1].content
    strangers.refresh_from_db()
    assert strangers.status == Status.CONFIRMED


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"ReservationId": None}, "ReservationId: Required."),
        ({"ReservationId": "1"}, "ReservationId: Must be a whole number."),
        ({"TestMode": "true"}, "TestMode: Must be true or false."),
        ({"TestMode": 1}, "TestMode: Must be true or false."),
    ],
)
def test_invalid_request_names_the_wrong_fields(cancel, fields, details):
    response = cancel(1, **fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == details


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"ReservationId": 1}).status_code == 401
