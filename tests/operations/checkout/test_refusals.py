"""POST /api/reservations/checkout: refused, and nothing is charged"""

from datetime import timedelta

import pytest

from payments.models import Payment
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import issue_token
from tests.factories_reservations import (
    CARD,
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    update_allowances,
    update_promo_code,
)
from tests.http import post
from tests.operations.checkout.helpers import BAD_CARD, PATH, refused, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

SECOND = timedelta(seconds=1)


# --- Refused, and nothing is charged -------------------------------------------------------------


def test_declined_card_returns_402_and_resets_to_new(check_out, drafted):
    response = check_out(PaymentInfo=BAD_CARD)

    assert response.status_code == 402
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "CardDeclined",
            "Message": "The card was declined. You were not charged.",
        },
    }
    row = Reservation.objects.get(pk=drafted.pk)
    assert (row.status, row.hold_until) == (Status.NEW, NOW + 10 * MINUTE)
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"


def test_declined_card_does_not_hold_the_room_beyond_the_start(check_out, drafted, time_machine):
    time_machine.move_to(START - 5 * MINUTE, tick=False)

    refused(check_out(PaymentInfo=BAD_CARD), 402, "CardDeclined")

    assert Reservation.objects.get(pk=drafted.pk).hold_until == START


def test_checkout_after_six_declines_in_an_hour_is_limited(check_out):
    for _ in range(6):
        refused(check_out(PaymentInfo=BAD_CARD), 402, "CardDeclined")
    response = check_out(PaymentInfo=CARD)
    refused(response, 429, "TooManyRequests")
    assert response["Retry-After"] == "3600"


def test_declined_card_holds_a_room_again_within_the_limit_of_holds(
    ada, check_out, drafted, settings
):
    settings.HELD_DRAFTS_MAX = 1
    newer = make_draft(ada, drafted.room, start=START + 24 * HOUR, now=NOW)
    Reservation.objects.filter(pk=drafted.pk).release_holds(NOW)

    refused(check_out(PaymentInfo=BAD_CARD), 402, "CardDeclined")

    for draft in (drafted, newer):
        draft.refresh_from_db()
    assert (drafted.holds_slot, newer.holds_slot) == (True, False)
    assert (drafted.status, newer.status) == (Status.NEW, Status.NEW)


def test_checkout_of_taken_slot_returns_409(check_out, drafted):
    Reservation.objects.filter(pk=drafted.pk).update(holds_slot=False, hold_until=None)
    make_booking(room=drafted.room)
    error = refused(check_out(PaymentInfo=CARD), 409, "SlotUnavailable")
    assert error["Message"] == "The room is already taken at that time."
    assert not Payment.objects.filter(reservation=drafted).exists()


def test_checkout_with_used_up_promo_code_or_hours_returns_409(check_out, ada, drafted):
    plan = AllowanceFactory(user=ada, hours=1)
    update_allowances(drafted.pk, [plan.pk], user=ada, now=NOW)
    plan.entries.create(hours=-1, reason="used elsewhere", at=NOW)
    refused(check_out(PaymentInfo=CARD), 409, "AllowanceExhausted")
    update_allowances(drafted.pk, [], user=ada, now=NOW)

    PromoCodeFactory(code="TEN", valid_until=NOW)
    once = PromoCodeFactory(code="ONCE", max_uses=1)
    update_promo_code(drafted.pk, "ONCE", user=ada, now=NOW)
    type(once).objects.filter(pk=once.pk).update(uses=1)
    refused(check_out(PaymentInfo=CARD), 409, "PromoCodeInvalid")
    assert not Payment.objects.exists()
    type(once).objects.filter(pk=once.pk).update(uses=0)


def test_checkout_after_start_is_refused(check_out, ada, time_machine):
    time_machine.move_to(START, tick=False)
    error = refused(check_out(PaymentInfo=CARD, Token=issue_token(ada)), 409, "ReservationNotOpen")
    assert error["Message"] == "This reservation's time has passed."


@pytest.mark.parametrize("status", [Status.CANCELLED, Status.DECLINED, Status.EXPIRED])
@pytest.mark.parametrize("test_mode", [True, False])
def test_checkout_of_closed_reservation_is_refused(check_out, ada, status, test_mode):
    row = ReservationFactory(user=ada, status=status, total_cost=10)
    response = check_out(ReservationId=row.pk, PaymentInfo=CARD, TestMode=test_mode)
    refused(response, 409, "ReservationNotOpen")


def test_reservation_of_another_account_is_not_found(check_out):
    strangers = make_draft()
    for test_mode in (True, False):
        answers = [
            check_out(ReservationId=pk, PaymentInfo=CARD, TestMode=test_mode)
            for pk in (strangers.pk, 2**31 - 1)
        ]
        assert {each.status_code for each in answers} == {404}
        assert answers[0].content == answers[1].content
    assert status_of(strangers) == Status.NEW


# --- Wrong fields --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"ReservationId": None}, "ReservationId: Required."),
        ({"ReservationId": "1"}, "ReservationId: Must be a whole number."),
        ({"UseSavedPaymentInfo": "true"}, "UseSavedPaymentInfo: Must be true or false."),
        ({"SavePaymentInfo": 1}, "SavePaymentInfo: Must be true or false."),
        ({"TestMode": "yes"}, "TestMode: Must be true or false."),
        ({"PartnerCode": 1}, "PartnerCode: Must be text."),
        ({"PartnerCode": "x" * 51}, "PartnerCode: Must have at most 50 characters."),
        ({"PaymentInfo": "4242"}, "PaymentInfo: Must be an object."),
        (
            {"PaymentInfo": {**CARD, "CreditCardNumber": "4242424242424241"}},
            "PaymentInfo.CreditCardNumber: This is not a valid card number.",
        ),
        (
            {"PaymentInfo": {**CARD, "SecurityCode": "12"}},
            "PaymentInfo.SecurityCode: The security code has 3 digits.",
        ),
        (
            {"PaymentInfo": {**CARD, "ExpirationDate": "2027-02-28T00:00:00Z"}},
            "PaymentInfo.ExpirationDate: This card has expired.",
        ),
        (
            {"PaymentInfo": {**CARD, "LastName": "4242 4242 4242 4242"}},
            "PaymentInfo.LastName: This looks like a card number, not a name.",
        ),
    ],
)
def test_invalid_request_names_fields_without_card_number(check_out, drafted, fields, details):
    for more in ({}, {"TestMode": True}):
        response = check_out(**{"PaymentInfo": CARD, **more, **fields})
        error = refused(response, 400, "InvalidRequest")
        assert error["Details"] == details
        assert "4242" not in response.content.decode()
    assert status_of(drafted) == Status.NEW
    assert not Payment.objects.exists()


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"ReservationId": 1, "PaymentInfo": CARD}).status_code == 401
