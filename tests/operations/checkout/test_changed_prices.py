"""POST /api/reservations/checkout: a price that the customer has not seen is never charged"""

from datetime import timedelta
from decimal import Decimal
from unittest.mock import Mock

import pytest

from accounts.act import Act
from centers.models import Rate
from payments import lifecycle
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment
from reservations import records
from reservations.booking.checkout import require_current_price
from reservations.booking.drafts import extend_hold
from reservations.models import Reservation, history
from tests.factories_people import AdministratorFactory, StaffFactory
from tests.factories_reservations import (
    CARD,
    HOUR,
    MINUTE,
    NOW,
    AllowanceFactory,
    PromoCodeFactory,
    make_draft,
)
from tests.operations.helpers import BAD_CARD, refused
from tests.reservations.rescheduling_helpers import adjust

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

SECOND = timedelta(seconds=1)


@pytest.fixture
def outdated(drafted, time_machine):
    """The draft's hold ended 24 hours and a second ago, and its room has become more expensive."""
    Rate.objects.update(hourly=30)
    time_machine.move_to(NOW + 15 * MINUTE + 24 * HOUR + SECOND, tick=False)
    return drafted


PRICE_HAS_CHANGED = {
    "Success": False,
    "Error": {
        "Summary": "ReservationNotOpen",
        "Message": "The price has changed. Please look at it again.",
    },
}


@pytest.mark.parametrize("test_mode", [False, True])
def test_checkout_with_outdated_price_is_refused_until_it_is_shown(
    get, check_out, outdated, test_mode
):
    response = check_out(PaymentInfo=CARD, TestMode=test_mode)

    assert (response.status_code, response.json()) == (409, PRICE_HAS_CHANGED)
    # The response was lost, and the app repeats the request, however often and however late.
    for _ in range(2):
        assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED
    assert not Payment.objects.exists()
    shown = get("/api/account/reservation", Id=outdated.pk)
    assert (shown["Reservation"]["TotalCost"], shown["Reservation"]["Status"]) == (90, "New")
    assert history.get_changes(outdated)[0].changes["total_cost"] == ["75.00", "90.00"]

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get().amount == 90


def test_checkout_whose_price_another_request_changes_meanwhile_is_refused(
    check_out, drafted, monkeypatch
):
    get_payment_source = lifecycle.get_payment_source

    def change_price(*args, **kwargs):
        Reservation.objects.filter(pk=drafted.pk).update(total_cost=90)
        return get_payment_source(*args, **kwargs)

    monkeypatch.setattr(lifecycle, "get_payment_source", change_price)
    response = check_out(PaymentInfo=CARD)

    assert (response.status_code, response.json()) == (409, PRICE_HAS_CHANGED)
    assert not Payment.objects.exists()


def test_checkout_with_outdated_but_equal_price_books(check_out, outdated):
    Rate.objects.update(hourly=25)

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"


def test_draft_that_staff_hold_again_during_its_checkout_has_no_outdated_price(outdated):
    Rate.objects.update(hourly=25)
    now = NOW + 40 * HOUR
    draft = Reservation.objects.get(pk=outdated.pk)
    extend_hold(Act(StaffFactory(), now, is_staff=True), outdated.pk, until=now + MINUTE)

    require_current_price(draft, Act(draft.user, now))


def test_checkout_24_hours_after_the_hold_has_the_promised_price(check_out, outdated, time_machine):
    time_machine.move_to(NOW + 15 * MINUTE + 24 * HOUR, tick=False)

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get().amount == 75


def test_price_of_released_draft_is_outdated_24_hours_after_its_release(
    check_out, ada, drafted, settings, time_machine
):
    make_draft(ada, drafted.room, now=NOW + 5 * MINUTE)  # takes over the hold
    Rate.objects.update(hourly=30)
    settings.DRAFT_PRICE_HOURS = 2

    time_machine.move_to(NOW + 5 * MINUTE + 2 * HOUR + SECOND, tick=False)

    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED


def test_declined_card_does_not_extend_the_promise_of_a_price(
    get, check_out, drafted, time_machine
):
    Rate.objects.update(hourly=30)
    for hours in (12, 24):
        time_machine.move_to(NOW + hours * HOUR, tick=False)
        refused(check_out(PaymentInfo=BAD_CARD), 402, "CardDeclined")
    time_machine.move_to(NOW + 15 * MINUTE + 24 * HOUR + SECOND, tick=False)

    assert check_out(PaymentInfo=BAD_CARD).json() == PRICE_HAS_CHANGED

    # Staff promise the new price.
    now = NOW + 25 * HOUR
    extend_hold(Act(StaffFactory(), now, is_staff=True), drafted.pk, until=now + MINUTE)
    Rate.objects.update(hourly=35)
    get("/api/account/reservation", Id=drafted.pk)
    time_machine.move_to(now + 22 * HOUR, tick=False)
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get(captures=1).amount == 90


# --- What counts as shown ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/api/account/reservation", {"Id": "id"}),
        ("/api/account/reservations", {}),
        ("/api/reservation/update-promo-code", {"ReservationId": "id", "PromoCode": ""}),
        ("/api/reservations/update-allowances", {"ReservationId": "id", "AllowanceIds": []}),
        ("/api/reservations/cancel", {"ReservationId": "id", "TestMode": True}),
    ],
)
def test_responses_with_the_price_show_it(get, check_out, outdated, path, fields):
    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED

    fields = {name: outdated.pk if value == "id" else value for name, value in fields.items()}
    assert get(path, **fields)["Success"]

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get().amount == 90


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/api/reservation/update-promo-code", {"PromoCode": "TEN"}),
        ("/api/reservations/update-allowances", {"AllowanceIds": []}),
    ],
)
def test_changed_price_whose_response_was_lost_is_not_charged(
    ada, call, get, client, check_out, monkeypatch, path, fields
):
    """The worker dies after it has stored the new price, and before it answers."""
    PromoCodeFactory(code="TEN")
    AllowanceFactory(user=ada, hours=1)
    drafted = make_draft(ada, start=NOW + 48 * HOUR)
    client.raise_request_exception = False
    with monkeypatch.context() as patched:
        patched.setattr(records, "get_record", Mock(side_effect=RuntimeError))
        assert call(path, **fields, ReservationId=drafted.pk).status_code == 500

    assert check_out(PaymentInfo=CARD, ReservationId=drafted.pk).json() == PRICE_HAS_CHANGED
    shown = get(path, **fields, ReservationId=drafted.pk)["UpdatedReservation"]["TotalCost"]
    assert shown != drafted.total_cost
    check_out(PaymentInfo=CARD, ReservationId=drafted.pk)
    assert SandboxPayment.objects.get().amount == Decimal(str(shown))


def test_get_allowances_does_not_show_the_price(ada, get, check_out, outdated):
    AllowanceFactory(user=ada, is_automatic=False)
    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED

    assert get("/api/reservations/get-allowances", ReservationId=outdated.pk)["Allowances"]

    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED


def test_next_page_of_a_list_is_not_shown(ada, get, check_out, outdated):
    """The list reads one reservation more, which is the first of the next page."""
    make_draft(ada, start=outdated.start - HOUR, hours=1, now=NOW + 24 * HOUR)
    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED

    page = get("/api/account/reservations", PageSize=1)
    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED
    get("/api/account/reservations", PageSize=1, Cursor=page["NextCursor"])
    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"


@pytest.mark.parametrize("amount", [-5, 5])
def test_price_adjusted_by_staff_is_charged_once_it_is_shown(get, check_out, drafted, amount):
    adjust(drafted, AdministratorFactory(), amount)
    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED

    get("/api/account/reservation", Id=drafted.pk)

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
    assert SandboxPayment.objects.get().amount == 75 + amount


def test_price_that_is_the_shown_one_again_is_charged(check_out, drafted):
    for amount in (5, -5):
        adjust(drafted, AdministratorFactory(), amount)

    assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"


def test_price_that_changes_again_while_it_is_shown_stays_unseen(
    get, check_out, outdated, monkeypatch
):
    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED
    get_record = records.query_own_reservation

    def change_price_after_reading(**params):
        rows = get_record(**params)
        Reservation.objects.update(total_cost=95)
        return rows

    monkeypatch.setattr(records, "query_own_reservation", change_price_after_reading)
    assert get("/api/account/reservation", Id=outdated.pk)["Reservation"]["TotalCost"] == 90
    monkeypatch.undo()

    assert check_out(PaymentInfo=CARD).json() == PRICE_HAS_CHANGED
