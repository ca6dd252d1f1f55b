"""POST /api/reservations/checkout: paid, in test mode, and repeated

See tests/reservations/checkout/ for crashes.
"""

import pytest

from payments import gateways
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxFault, SandboxPayment
from payments.models import Payment, SavedCard
from reservations.booking import approval
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import (
    CARD,
    HOUR,
    MINUTE,
    NOW,
    AllowanceFactory,
    PartnerFactory,
    PromoCodeFactory,
    make_draft,
    make_room,
    update_allowances,
    update_promo_code,
)
from tests.http import jsonp, post, post_csv, table
from tests.operations.checkout.helpers import BAD_CARD, PATH, refused, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

WHAT = "Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM"


# --- Paid ----------------------------------------------------------------------------------------


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


def test_checkout_of_room_with_approval_is_pending(client, ada, token):
    reservation = make_draft(ada, make_room(is_live_inventory=False))

    body = {"Token": token, "ReservationId": reservation.pk, "PaymentInfo": CARD}
    assert post(client, PATH, body).json() == {
        "Success": True,
        "ConfirmationMessage": (
            f"Your request for {WHAT} is with the center (reservation {reservation.pk})."
            " $75.00 is reserved on Visa ending 4242 and charged only when the center agrees."
        ),
        "IsLive": False,
        "Status": "Pending",
    }
    assert SandboxPayment.objects.get().captures == 0


def test_checkout_accepts_and_returns_csv_and_jsonp(client, ada, token, drafted):
    row = {
        "Token": token,
        "ReservationId": drafted.pk,
        "UseSavedPaymentInfo": "",
        **{f"PaymentInfo.{name}": value for name, value in CARD.items()},
        "PaymentInfo.BillingAddress.City": "Denver",
    }
    header, line = table(post_csv(client, f"{PATH}.csv", row))
    assert header == ["Success", "ConfirmationMessage", "IsLive", "Status"]
    assert line[2:] == ["false", "Confirmed"]

    body = {"Token": token, "ReservationId": drafted.pk}
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", body), "cb")
    assert wrapped["Status"] == "Confirmed"


def test_checkout_charges_the_total_of_the_reservation(client, check_out, ada, token):
    room = make_room()
    room.center.tax_rate = "8.81"
    room.center.save()
    AllowanceFactory(user=ada, hours=1)
    PromoCodeFactory(code="TEN")
    reservation = make_draft(ada, room, hours=5)
    update_promo_code(reservation.pk, "TEN", user=ada, now=NOW)
    # A change of rates in between does not change the price.
    room.rate.hourly = 99
    room.rate.save()
    shown = post(client, "/api/account/reservation", {"Token": token, "Id": reservation.pk})

    check_out(ReservationId=reservation.pk, PaymentInfo=CARD)

    charged = SandboxPayment.objects.get().amount
    assert float(charged) == shown.json()["Reservation"]["TotalCost"] == 90.09


def test_checkout_with_saved_card_charges_it(check_out, ada):
    SavedCardFactory(user=ada, last4="4444", brand="MasterCard")
    message = check_out(UseSavedPaymentInfo=True).json()["ConfirmationMessage"]
    assert message.endswith("$75.00 was charged to MasterCard ending 4444.")


def test_checkout_without_usable_saved_card_returns_409(check_out, ada):
    error = refused(check_out(UseSavedPaymentInfo=True), 409, "NoSavedCard")
    assert error["Message"] == "There is no saved card that can be used. Please enter a card."

    SavedCardFactory(user=ada, exp_year=2027, exp_month=2)
    error = refused(check_out(UseSavedPaymentInfo=True), 409, "NoSavedCard")
    assert error["Message"] == "Your saved card has expired. Please enter another card."


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "A card is needed, here or by UseSavedPaymentInfo."),
        ({"UseSavedPaymentInfo": False}, "A card is needed, here or by UseSavedPaymentInfo."),
        ({"PaymentInfo": None}, "A card is needed, here or by UseSavedPaymentInfo."),
        (
            {"UseSavedPaymentInfo": True, "PaymentInfo": CARD},
            "Must be left out when the saved card is to be used.",
        ),
    ],
)
def test_checkout_with_both_or_no_cards_is_refused(check_out, ada, fields, reason):
    SavedCardFactory(user=ada)
    for more in ({}, {"TestMode": True}):
        error = refused(check_out(**fields, **more), 400, "InvalidRequest")
        assert error["Details"] == f"PaymentInfo: {reason}"
    assert not Payment.objects.exists()


@pytest.mark.parametrize("fields", [{}, {"UseSavedPaymentInfo": True}, {"PaymentInfo": CARD}])
def test_free_checkout_needs_no_card(check_out, ada, drafted, fields):
    plan = AllowanceFactory(user=ada)
    update_allowances(drafted.pk, [plan.pk], user=ada, now=NOW)
    answer = check_out(**fields).json()
    assert answer["Status"] == "Confirmed"
    assert answer["ConfirmationMessage"].endswith("There was nothing to pay.")
    assert not SandboxPayment.objects.exists()


def test_card_is_saved_only_after_authorization(check_out, ada):
    refused(check_out(PaymentInfo=BAD_CARD, SavePaymentInfo=True), 402, "CardDeclined")
    assert not SavedCard.objects.exists()
    check_out(PaymentInfo=CARD, SavePaymentInfo=True)
    assert SavedCard.objects.get().user == ada


def test_card_is_not_saved_by_default(check_out):
    check_out(PaymentInfo=CARD)
    check_out(PaymentInfo=CARD, SavePaymentInfo=True)  # a repeat, which charges nothing
    assert not SavedCard.objects.exists()


def test_checkout_with_unknown_partner_is_refused_before_charging(check_out, drafted):
    PartnerFactory(code="ACME")
    PartnerFactory(code="GONE", is_active=False)
    for code in ("NONESUCH", "gone"):
        error = refused(check_out(PaymentInfo=CARD, PartnerCode=code), 400, "InvalidRequest")
        assert error["Details"] == "PartnerCode: There is no such partner."
    assert not Payment.objects.exists()

    assert check_out(PaymentInfo=CARD, PartnerCode=" acme ").json()["Status"] == "Confirmed"
    assert Reservation.objects.get(pk=drafted.pk).partner.code == "ACME"


def test_checkout_without_partner_after_a_declined_one_stores_no_partner(check_out, drafted):
    PartnerFactory(code="ACME")
    refused(check_out(PaymentInfo=BAD_CARD, PartnerCode="ACME"), 402, "CardDeclined")

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert Reservation.objects.get(pk=drafted.pk).partner is None


TOO_MANY_ATTEMPTS = {
    "Success": False,
    "Error": {
        "Summary": "TooManyRequests",
        "Message": "Too many attempts. Please wait a little and try again.",
    },
}


def test_checkout_with_partner_code_after_twenty_wrong_ones_is_limited(
    client, check_out, ada, token
):
    PartnerFactory(code="ACME")
    for number in range(20):
        refused(
            check_out(PaymentInfo=CARD, PartnerCode=f"X{number}", TestMode=number % 2 == 0),
            400,
            "InvalidRequest",
        )

    for test_mode in (True, False):
        response = check_out(PaymentInfo=CARD, PartnerCode="ACME", TestMode=test_mode)
        assert (response.status_code, response.json()) == (429, TOO_MANY_ATTEMPTS)
        assert response["Retry-After"] == "3600"
    booked = check_out(PaymentInfo=CARD)
    assert booked.json()["Status"] == "Confirmed"
    assert check_out(PaymentInfo=CARD, PartnerCode="ACME").content == booked.content


def test_wrong_partner_codes_do_not_count_as_declines_or_the_reverse(check_out):
    for _ in range(20):
        check_out(PaymentInfo=CARD, PartnerCode="NONESUCH")

    for _ in range(6):
        refused(check_out(PaymentInfo=BAD_CARD), 402, "CardDeclined")
    refused(check_out(PaymentInfo=CARD), 429, "TooManyRequests")


# --- IsLive --------------------------------------------------------------------------------------


class LiveGateway(SandboxGateway):
    """A sandbox gateway that claims to be live."""

    name = "live"
    is_live = True


@pytest.fixture
def live(settings, monkeypatch):
    path = f"{__name__}.LiveGateway"
    monkeypatch.setitem(gateways.GATEWAY_CLASSES, "live", path)
    settings.PAYMENT_GATEWAY = "live"


@pytest.mark.usefixtures("live")
def test_is_live_is_true_for_instant_booking_charged_by_live_gateway(check_out):
    assert check_out(PaymentInfo=CARD, TestMode=True).json()["IsLive"] is False
    assert check_out(PaymentInfo=CARD).json()["IsLive"] is True
    assert check_out(PaymentInfo=CARD, TestMode=True).json()["IsLive"] is False


@pytest.mark.usefixtures("live")
def test_is_live_is_true_for_free_instant_booking(check_out, ada, drafted):
    plan = AllowanceFactory(user=ada)
    update_allowances(drafted.pk, [plan.pk], user=ada, now=NOW)
    assert check_out().json()["IsLive"] is True


@pytest.mark.usefixtures("live")
def test_is_live_is_false_for_pending_request(check_out, drafted):
    drafted.room.is_live_inventory = False
    drafted.room.save()
    answer = check_out(PaymentInfo=CARD).json()
    assert (answer["Status"], answer["IsLive"]) == ("Pending", False)


# --- TestMode ------------------------------------------------------------------------------------


def test_test_mode_returns_test_message_and_status_new(check_out, drafted):
    response = check_out(PaymentInfo=CARD, TestMode=True, SavePaymentInfo=True)
    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "ConfirmationMessage": (
            f"This was a test: {WHAT} can be booked for $75.00. Nothing was booked or charged."
        ),
        "IsLive": False,
        "Status": "New",
    }
    assert status_of(drafted) == Status.NEW
    assert not Payment.objects.exists()
    assert not SandboxPayment.objects.exists()
    assert not SavedCard.objects.exists()


def test_test_mode_refuses_the_same_as_checkout(check_out, ada, drafted):
    refused(check_out(PaymentInfo=BAD_CARD, TestMode=True), 402, "CardDeclined")
    refused(check_out(UseSavedPaymentInfo=True, TestMode=True), 409, "NoSavedCard")
    promo = PromoCodeFactory(code="TEN")
    update_promo_code(drafted.pk, "TEN", user=ada, now=NOW)
    promo.is_active = False
    promo.save()
    refused(check_out(PaymentInfo=CARD, TestMode=True), 409, "PromoCodeInvalid")


def test_declines_in_test_mode_count_and_are_limited(check_out):
    for number in range(6):
        response = check_out(PaymentInfo=BAD_CARD, TestMode=number % 2 == 0)
        refused(response, 402, "CardDeclined")

    for test_mode in (True, False):
        response = check_out(PaymentInfo=CARD, TestMode=test_mode)
        assert (response.status_code, response.json()) == (429, TOO_MANY_ATTEMPTS)
        assert response["Retry-After"] == "3600"


def test_test_mode_without_decline_does_not_count(check_out):
    for _ in range(7):
        assert check_out(PaymentInfo=CARD, TestMode=True).status_code == 200


def test_checkout_after_test_mode_succeeds(check_out):
    check_out(PaymentInfo=CARD, TestMode=True)
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"


# --- Repeated, in doubt --------------------------------------------------------------------------


def test_checkout_repeated_returns_same_response_without_gateway_call(check_out, time_machine):
    first = check_out(PaymentInfo=CARD)
    SandboxFault.objects.create(operation="*", kind="error")
    time_machine.move_to(NOW + HOUR, tick=False)
    for fields in ({"PaymentInfo": CARD}, {"PaymentInfo": BAD_CARD}, {}):
        assert check_out(**fields).content == first.content
    assert SandboxPayment.objects.get().captures == 1


@pytest.mark.parametrize("has_shown_up", [True, False])
def test_checkout_repeated_after_the_meeting_returns_same_message(
    check_out, drafted, time_machine, has_shown_up
):
    first = check_out(PaymentInfo=CARD).json()
    SandboxFault.objects.create(operation="*", kind="error")
    end = Reservation.objects.get(pk=drafted.pk).end
    time_machine.move_to(end, tick=False)
    assert len(list(approval.close_overdue(now=end))) == 1
    if not has_shown_up:
        approval.mark_no_show(drafted.pk, now=end)

    again = check_out(PaymentInfo=BAD_CARD)

    status = "Completed" if has_shown_up else "NoShow"
    assert (again.status_code, again.json()) == (200, {**first, "Status": status})
    assert check_out(PaymentInfo=CARD, TestMode=True).json() == again.json()


def test_checkout_of_pending_request_repeated_returns_same_response(client, ada, token):
    reservation = make_draft(ada, make_room(is_live_inventory=False))
    body = {"Token": token, "ReservationId": reservation.pk, "PaymentInfo": CARD}
    first = post(client, PATH, body)
    SandboxFault.objects.create(operation="*", kind="error")

    assert post(client, PATH, {**body, "PaymentInfo": BAD_CARD}).content == first.content


def test_unresolved_payment_returns_200_processing_until_retry(check_out, drafted, time_machine):
    SandboxFault.objects.create(operation="authorize", kind="timeout_after", times=1)
    processing = {
        "Success": True,
        "ConfirmationMessage": "Your payment is being confirmed. Please do not pay again.",
        "IsLive": False,
        "Status": "Processing",
    }
    for _ in range(2):
        response = check_out(PaymentInfo=CARD)
        assert response.status_code == 200
        assert response.json() == processing
    assert check_out(PaymentInfo=CARD, TestMode=True).json() == processing

    time_machine.move_to(NOW + 2 * MINUTE, tick=False)
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get().captures == 1
