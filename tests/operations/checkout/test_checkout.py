"""POST /api/reservations/checkout: paid, in test mode, repeated, and refused

See tests/reservations/checkout/ for crashes.
"""

from datetime import timedelta

import pytest

from payments import gateways
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxFault, SandboxPayment
from payments.models import Payment, SavedCard
from reservations.booking import approval
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import SavedCardFactory, issue_token
from tests.factories_reservations import (
    CARD,
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    PartnerFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
    update_allowances,
    update_promo_code,
)
from tests.operations.checkout.helpers import BAD_CARD, status_of
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

WHAT = "Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM"
SECOND = timedelta(seconds=1)


@pytest.fixture
def free(ada, drafted):
    """The draft, paid by included hours."""
    update_allowances(drafted.pk, [AllowanceFactory(user=ada).pk], user=ada, now=NOW)


@pytest.fixture
def with_approval(drafted):
    """The center decides about requests."""
    drafted.room.is_live_inventory = False
    drafted.room.save()


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


@pytest.mark.usefixtures("with_approval")
def test_checkout_of_room_with_approval_is_pending(check_out, drafted):
    response = check_out(PaymentInfo=CARD)

    assert response.json() == {
        "Success": True,
        "ConfirmationMessage": (
            f"Your request for {WHAT} is with the center (reservation {drafted.pk})."
            " $75.00 is reserved on Visa ending 4242 and charged only when the center agrees."
        ),
        "IsLive": False,
        "Status": "Pending",
    }
    assert SandboxPayment.objects.get().captures == 0
    SandboxFault.objects.create(operation="*", kind="error")
    assert check_out(PaymentInfo=BAD_CARD).content == response.content


def test_checkout_charges_the_total_of_the_reservation(check_out, read, ada):
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
    shown = read(reservation)["TotalCost"]

    check_out(ReservationId=reservation.pk, PaymentInfo=CARD)

    assert float(SandboxPayment.objects.get().amount) == shown == 90.09


def test_saved_card_is_charged_unless_there_is_none_or_it_has_expired(check_out, ada):
    def get_message():
        response = check_out(UseSavedPaymentInfo=True)
        return refused(response, 409, "NoSavedCard")["Message"]

    assert get_message() == "There is no saved card that can be used. Please enter a card."
    card = SavedCardFactory(user=ada, exp_year=2027, exp_month=2, last4="4444", brand="MasterCard")
    assert get_message() == "Your saved card has expired. Please enter another card."
    SavedCard.objects.filter(pk=card.pk).update(exp_month=3)
    message = check_out(UseSavedPaymentInfo=True).json()["ConfirmationMessage"]
    assert message.endswith("$75.00 was charged to MasterCard ending 4444.")


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("fields", [{}, {"UseSavedPaymentInfo": True}, {"PaymentInfo": CARD}])
def test_free_checkout_needs_no_card(check_out, fields):
    answer = check_out(**fields).json()
    assert answer["Status"] == "Confirmed"
    assert answer["ConfirmationMessage"].endswith("There was nothing to pay.")
    assert not SandboxPayment.objects.exists()


def test_card_is_saved_only_after_authorization(check_out, ada):
    refused(check_out(PaymentInfo=BAD_CARD, SavePaymentInfo=True), 402, "CardDeclined")
    assert not SavedCard.objects.exists()
    check_out(PaymentInfo=CARD, SavePaymentInfo=True)
    assert SavedCard.objects.get().user == ada


# --- Partners -------------------------------------------------------------------------------------


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


def assert_is_limited(response):
    assert refused(response, 429, "TooManyRequests") == {
        "Summary": "TooManyRequests",
        "Message": "Too many attempts. Please wait a little and try again.",
    }
    assert response["Retry-After"] == "3600"


def test_checkout_with_partner_code_after_twenty_wrong_ones_is_limited(check_out):
    PartnerFactory(code="ACME")
    for number in range(20):
        fields = {"PartnerCode": f"X{number}", "TestMode": number % 2 == 0}
        refused(check_out(PaymentInfo=CARD, **fields), 400, "InvalidRequest")

    for test_mode in (True, False):
        assert_is_limited(check_out(PaymentInfo=CARD, PartnerCode="ACME", TestMode=test_mode))
    booked = check_out(PaymentInfo=CARD)
    assert booked.json()["Status"] == "Confirmed"
    assert check_out(PaymentInfo=CARD, PartnerCode="ACME").content == booked.content


def test_six_declines_in_an_hour_are_limited_without_wrong_partner_codes(check_out):
    for _ in range(20):
        check_out(PaymentInfo=CARD, PartnerCode="NONESUCH")
    for number in range(6):
        # Neither is a checkout in test mode that would succeed a decline.
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


@pytest.mark.usefixtures("live", "free")
def test_is_live_is_true_for_free_instant_booking(check_out):
    assert check_out().json()["IsLive"] is True


@pytest.mark.usefixtures("live", "with_approval")
def test_is_live_is_false_for_pending_request(check_out):
    answer = check_out(PaymentInfo=CARD).json()
    assert (answer["Status"], answer["IsLive"]) == ("Pending", False)


# --- TestMode -------------------------------------------------------------------------------------


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
    for model in (Payment, SandboxPayment, SavedCard):
        assert not model.objects.exists()
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"


def test_test_mode_refuses_the_same_as_checkout(check_out, ada, drafted):
    refused(check_out(PaymentInfo=BAD_CARD, TestMode=True), 402, "CardDeclined")
    refused(check_out(UseSavedPaymentInfo=True, TestMode=True), 409, "NoSavedCard")
    promo = PromoCodeFactory(code="TEN")
    update_promo_code(drafted.pk, "TEN", user=ada, now=NOW)
    promo.is_active = False
    promo.save()
    refused(check_out(PaymentInfo=CARD, TestMode=True), 409, "PromoCodeInvalid")


# --- Repeated, in doubt ---------------------------------------------------------------------------


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


def test_unresolved_payment_returns_200_processing_until_retry(check_out, time_machine):
    SandboxFault.objects.create(operation="authorize", kind="timeout_after", times=1)
    for fields in ({}, {}, {"TestMode": True}):
        response = check_out(PaymentInfo=CARD, **fields)
        assert response.status_code == 200
        assert response.json() == {
            "Success": True,
            "ConfirmationMessage": "Your payment is being confirmed. Please do not pay again.",
            "IsLive": False,
            "Status": "Processing",
        }

    time_machine.move_to(NOW + 2 * MINUTE, tick=False)
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get().captures == 1


# --- Refused, and nothing is charged --------------------------------------------------------------


def test_declined_card_returns_402_and_resets_to_new(check_out, drafted):
    error = refused(check_out(PaymentInfo=BAD_CARD), 402, "CardDeclined")

    assert error == {
        "Summary": "CardDeclined",
        "Message": "The card was declined. You were not charged.",
    }
    row = Reservation.objects.get(pk=drafted.pk)
    assert (row.status, row.hold_until) == (Status.NEW, NOW + 10 * MINUTE)
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"


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
def test_checkout_of_closed_reservation_is_refused(check_out, ada, status):
    row = ReservationFactory(user=ada, status=status, total_cost=10)
    for test_mode in (True, False):
        response = check_out(ReservationId=row.pk, PaymentInfo=CARD, TestMode=test_mode)
        refused(response, 409, "ReservationNotOpen")
