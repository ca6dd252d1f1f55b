"""POST /api/reservations/checkout: paid, in test mode, repeated, and refused

See tests/reservations/checkout/ for crashes.
"""

import pytest

from payments import gateways
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import SavedCard
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import (
    CARD,
    HOUR,
    MINUTE,
    NOW,
    START,
    PartnerFactory,
    make_draft,
)
from tests.gateway_faults import add_fault
from tests.operations.helpers import BAD_CARD, refused, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

WHAT = "Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM"


# --- Paid -----------------------------------------------------------------------------------------


def test_checkout_of_instant_booking_room_is_confirmed(check_out, drafted):
    response = check_out(PaymentInfo=CARD)

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "ConfirmationMessage": (
            f"You have booked {WHAT} (reservation {drafted.pk})."
            " $75.00 was charged to Visa ending 4242."
        ),
        "IsLive": False,
        "Status": "Confirmed",
    }
    assert status_of(drafted) == Status.CONFIRMED
    payment = SandboxPayment.objects.get()
    assert (payment.amount, payment.captures) == (75, 1)
    # The card is not saved, neither by a repeated request, which charges nothing.
    check_out(PaymentInfo=CARD, SavePaymentInfo=True)
    assert not SavedCard.objects.exists()


# --- Partners -------------------------------------------------------------------------------------


def test_checkout_without_partner_after_a_declined_one_stores_no_partner(check_out, drafted):
    PartnerFactory(code="ACME")
    refused(check_out(PaymentInfo=BAD_CARD, PartnerCode="ACME"), 402, "CardDeclined")

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert Reservation.objects.get(pk=drafted.pk).partner is None


def assert_is_limited(response):
    assert refused(response, 429, "TooManyRequests") == {
        "Summary": "TooManyRequests",
        "Message": "Too many attempts. Please wait a little and try again.",
    }
    assert response["Retry-After"] == "3600"


def test_twenty_wrong_partner_codes_and_six_declines_in_an_hour_are_limited(check_out):
    PartnerFactory(code="ACME")
    for number in range(20):
        fields = {"PartnerCode": f"X{number}", "TestMode": number % 2 == 0}
        refused(check_out(PaymentInfo=CARD, **fields), 400, "InvalidRequest")
    for test_mode in (True, False):
        assert_is_limited(check_out(PaymentInfo=CARD, PartnerCode="ACME", TestMode=test_mode))

    # They are no declines, and neither is a checkout in test mode that would succeed.
    for number in range(6):
        assert check_out(PaymentInfo=CARD, TestMode=True).status_code == 200
        response = check_out(PaymentInfo=BAD_CARD, TestMode=number % 2 == 0)
        refused(response, 402, "CardDeclined")
    for test_mode in (True, False):
        assert_is_limited(check_out(PaymentInfo=CARD, TestMode=test_mode))


# --- IsLive ---------------------------------------------------------------------------------------


class LiveGateway(SandboxGateway):
    """A sandbox gateway that claims to be live."""

    name = "live"
    is_live = True


def test_is_live_is_true_for_instant_booking_charged_by_live_gateway(
    ada, check_out, drafted, settings, monkeypatch
):
    request = make_draft(ada)
    request.room.is_live_inventory = False
    request.room.save()
    monkeypatch.setitem(gateways.GATEWAY_CLASSES, "live", f"{__name__}.LiveGateway")
    settings.PAYMENT_GATEWAY = "live"

    assert check_out(PaymentInfo=CARD, TestMode=True).json()["IsLive"] is False
    assert check_out(PaymentInfo=CARD).json()["IsLive"] is True
    assert check_out(PaymentInfo=CARD, TestMode=True).json()["IsLive"] is False
    answer = check_out(PaymentInfo=CARD, ReservationId=request.pk).json()
    assert (answer["Status"], answer["IsLive"]) == ("Pending", False)


# --- Without an answer of the gateway -------------------------------------------------------------


def test_unresolved_payment_is_processing_until_it_is_repeated(check_out, time_machine):
    add_fault(operation="authorize", kind="timeout_after", times=1)
    for fields in ({}, {}, {"TestMode": True}):
        answer = check_out(PaymentInfo=CARD, **fields).json()
        message = "Your payment is being confirmed. Please do not pay again."
        assert (answer["Status"], answer["ConfirmationMessage"]) == ("Processing", message)

    time_machine.move_to(NOW + 2 * MINUTE, tick=False)
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get().captures == 1


def test_test_mode_is_503_while_the_gateway_is_away(check_out):
    add_fault(operation="check", kind="timeout_before", times=1)
    refused(check_out(PaymentInfo=CARD, TestMode=True), 503, "ServiceUnavailable")


# --- Refused, and nothing is charged --------------------------------------------------------------


def test_declined_card_does_not_hold_the_room_beyond_the_start(check_out, drafted, time_machine):
    time_machine.move_to(START - 5 * MINUTE, tick=False)

    refused(check_out(PaymentInfo=BAD_CARD), 402, "CardDeclined")

    assert Reservation.objects.get(pk=drafted.pk).hold_until == START


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
