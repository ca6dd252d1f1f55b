"""Checkout: what it books, charges and refuses."""

from decimal import Decimal

import pytest

from payments.gateways.sandbox_models import SandboxCard, SandboxPayment
from payments.models import Payment
from reservations.booking import checkout
from reservations.booking.checkout import PaymentMethod, check_out
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.errors import (
    CardDeclined,
    InvalidRequest,
    NoSavedCard,
    NotFound,
    ReservationNotOpen,
    SlotUnavailable,
    TooManyRequests,
)
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import (
    DECLINED_NUMBER,
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    PartnerFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_room,
)
from tests.reservations.checkout.helpers import (
    count_charges,
    fault,
    get_benefits,
    has_no_problems,
    pay,
)

pytestmark = pytest.mark.django_db


# --- Without failures ----------------------------------------------------------------------------


def test_checkout_of_instant_booking_room_confirms_and_charges_once(drafted, plan, promo):
    reservation = pay(drafted)

    assert (reservation.status, reservation.booked_at) == (Status.CONFIRMED, NOW)
    payment = reservation.payments.get()
    assert (payment.state, payment.amount, payment.is_live) == ("captured", Decimal(45), False)
    assert get_benefits(plan, promo) == (1, 1)
    assert count_charges() == 1
    assert has_no_problems(NOW)


def test_checkout_repeated_returns_same_status_without_gateway_call(drafted):
    first = pay(drafted)
    fault("*", "timeout_before", times=None)
    for number in ("4242424242424242", DECLINED_NUMBER):
        assert pay(drafted, number, now=NOW + HOUR).status == first.status
    # A payment method is no longer required.
    again = check_out(drafted.pk, user=drafted.user, payment_method=PaymentMethod(), now=NOW + HOUR)
    assert again.booked_at == NOW
    assert count_charges() == 1


def test_checkout_of_room_with_approval_is_pending_and_only_authorized(ada):
    reservation = pay(make_draft(ada, make_room(is_live_inventory=False)))
    assert reservation.status == Status.PENDING
    assert reservation.payments.get().state == "authorized"
    assert pay(reservation).status == Status.PENDING
    assert count_charges() == 0


def test_checkout_with_saved_card_charges_it(ada):
    SavedCardFactory(user=ada)
    reservation = make_draft(ada)
    check_out(reservation.pk, user=ada, payment_method=PaymentMethod(use_saved_card=True), now=NOW)
    assert reservation.payments.get().card_last4 == "4242"


@pytest.mark.parametrize("fields", [None, {"exp_year": 2027, "exp_month": 2}, {"gateway": "other"}])
def test_checkout_without_usable_saved_card_is_refused(ada, fields):
    if fields:
        SavedCardFactory(user=ada, **fields)
    reservation = make_draft(ada)
    with pytest.raises(NoSavedCard):
        check_out(
            reservation.pk, user=ada, payment_method=PaymentMethod(use_saved_card=True), now=NOW
        )
    assert not Payment.objects.exists()


@pytest.mark.parametrize(
    "payment_method", [PaymentMethod(), PaymentMethod(use_saved_card=True, card={"x": 1})]
)
def test_checkout_with_both_or_no_payment_methods_is_refused(ada, payment_method):
    with pytest.raises(InvalidRequest) as error:
        check_out(make_draft(ada).pk, user=ada, payment_method=payment_method, now=NOW)
    assert error.value.fields.keys() == {"payment_info"}


@pytest.mark.parametrize(
    "payment_method",
    [PaymentMethod(), PaymentMethod(use_saved_card=True), make_payment_method(DECLINED_NUMBER)],
)
def test_free_checkout_ignores_the_payment_method(ada, payment_method):
    AllowanceFactory(user=ada)
    reservation = make_draft(ada)
    assert reservation.total_cost == 0
    assert (
        check_out(reservation.pk, user=ada, payment_method=payment_method, now=NOW).status
        == Status.CONFIRMED
    )
    assert not Payment.objects.exists()
    assert not SandboxPayment.objects.exists()


def test_checkout_by_another_user_raises_not_found(ada):
    for user, pk in ((UserFactory(), make_draft(ada).pk), (ada, 999)):
        with pytest.raises(NotFound):
            check_out(pk, user=user, payment_method=make_payment_method(), now=NOW)


def test_checkout_after_start_is_refused(ada):
    reservation = make_draft(ada)
    with pytest.raises(ReservationNotOpen, match="has passed"):
        pay(reservation, now=START)


@pytest.mark.parametrize("status", [Status.CANCELLED, Status.EXPIRED])
def test_checkout_of_closed_reservation_is_refused(ada, status):
    reservation = make_draft(ada)
    reservation.transition_to(status, by=None, now=NOW)
    with pytest.raises(ReservationNotOpen):
        pay(reservation)
    assert not Payment.objects.exists()


def test_checkout_with_expired_hold_succeeds_while_room_is_available(ada):
    reservation = make_draft(ada)
    assert pay(reservation, now=NOW + HOUR).status == Status.CONFIRMED


def test_checkout_with_expired_hold_fails_if_room_is_held_by_another(ada):
    room = make_room()
    mine = make_draft(ada, room)
    competing = make_draft(room=room, now=NOW + 15 * MINUTE)

    with pytest.raises(SlotUnavailable):
        pay(mine, now=NOW + 16 * MINUTE)

    assert pay(competing, now=NOW + 16 * MINUTE).status == Status.CONFIRMED
    assert count_charges() == 1


def test_checkout_releases_own_conflicting_drafts(ada):
    room = make_room()
    first = make_draft(ada, room)
    second = make_draft(ada, room)
    first.refresh_from_db()
    assert (first.status, first.holds_slot) == (Status.NEW, False)

    assert pay(first).status == Status.CONFIRMED
    second.refresh_from_db()
    assert (second.status, second.holds_slot) == (Status.NEW, False)
    with pytest.raises(SlotUnavailable):
        pay(second)


def test_checkout_validates_partner_before_charging_and_ignores_case(ada):
    partner = PartnerFactory(code="acme")
    PartnerFactory(code="GONE", is_active=False)
    reservation = make_draft(ada)
    for code in ("GONE", "NONESUCH"):
        with pytest.raises(InvalidRequest) as error:
            check_out(
                reservation.pk,
                user=ada,
                payment_method=make_payment_method(),
                partner_code=code,
                now=NOW,
            )
        assert error.value.fields == {"partner_code": "There is no such partner."}
    assert not Payment.objects.exists()

    check_out(
        reservation.pk,
        user=ada,
        payment_method=make_payment_method(),
        partner_code=" Acme ",
        now=NOW,
    )
    reservation.refresh_from_db()
    assert reservation.partner == partner


def test_checkout_repeated_with_inactive_partner_returns_the_booking(ada):
    partner = PartnerFactory(code="ACME")
    reservation = make_draft(ada)
    check_out(
        reservation.pk, user=ada, payment_method=make_payment_method(), partner_code="ACME", now=NOW
    )
    partner.is_active = False
    partner.save()

    again = check_out(
        reservation.pk, user=ada, payment_method=make_payment_method(), partner_code="ACME", now=NOW
    )

    assert again.status == Status.CONFIRMED


def test_card_is_saved_only_after_authorization(ada):
    reservation = make_draft(ada)
    with pytest.raises(CardDeclined):
        pay(reservation, DECLINED_NUMBER, save_card=True)
    assert not SandboxCard.objects.exists()

    pay(reservation, save_card=True)
    ada.refresh_from_db()
    assert ada.saved_card.last4 == "4242"


def test_failed_card_save_does_not_affect_the_booking(ada):
    fault("store", "timeout_before")
    assert pay(make_draft(ada), save_card=True).status == Status.CONFIRMED
    assert not SandboxCard.objects.exists()


def test_card_that_was_not_charged_is_not_saved(ada, monkeypatch):
    """A second request with another card finds the status New and then loses the race."""
    reservation = make_draft(ada)
    claim = checkout._claim

    def overtaken(*args, **kwargs):
        monkeypatch.setattr(checkout, "_claim", claim)
        pay(reservation)
        return claim(*args, **kwargs)

    monkeypatch.setattr(checkout, "_claim", overtaken)
    outcome = pay(reservation, DECLINED_NUMBER, save_card=True)

    assert outcome.status == Status.CONFIRMED
    assert count_charges() == 1
    assert not SandboxCard.objects.exists()


# --- Declined ------------------------------------------------------------------------------------


def test_declined_checkout_resets_draft_with_ten_minute_hold(drafted, plan, promo):
    with pytest.raises(CardDeclined, match="You were not charged"):
        pay(drafted, DECLINED_NUMBER)

    drafted.refresh_from_db()
    assert (drafted.status, drafted.holds_slot) == (Status.NEW, True)
    assert drafted.hold_until == NOW + 10 * MINUTE
    assert drafted.payments.get().state == "declined"
    assert get_benefits(plan, promo) == (0, 0)
    with pytest.raises(SlotUnavailable):
        make_draft(room=drafted.room, now=NOW + 9 * MINUTE)
    make_draft(room=drafted.room, now=NOW + 10 * MINUTE)
    assert has_no_problems(NOW)


def test_checkout_with_second_card_after_decline_confirms(drafted, plan, promo):
    with pytest.raises(CardDeclined):
        pay(drafted, DECLINED_NUMBER)
    assert pay(drafted, "5555555555554444").status == Status.CONFIRMED
    assert [each.state for each in drafted.payments.order_by("pk")] == ["declined", "captured"]
    assert get_benefits(plan, promo) == (1, 1)
    assert count_charges() == 1


def test_checkout_after_six_declines_in_an_hour_is_limited(drafted):
    for _ in range(6):
        with pytest.raises(CardDeclined):
            pay(drafted, DECLINED_NUMBER)
    with pytest.raises(TooManyRequests):
        pay(drafted)

    drafted.refresh_from_db()
    assert (drafted.status, drafted.payments.count()) == (Status.NEW, 6)
    assert pay(drafted, now=NOW + HOUR).status == Status.CONFIRMED


def test_errors_other_than_declines_are_not_limited(ada):
    room = make_room()
    make_booking(room=room)
    taken = make_draft(ada, room, start=START + 4 * HOUR)
    for _ in range(8):
        with pytest.raises(InvalidRequest):
            pay(taken, "4242424242424241")
    Reservation.objects.filter(pk=taken.pk).update(holds_slot=False, hold_until=None)
    make_booking(room=room, start=START + 4 * HOUR)
    for _ in range(8):
        with pytest.raises(SlotUnavailable):
            pay(taken)
    with pytest.raises(CardDeclined):
        pay(make_draft(ada, room, start=START - HOUR, hours=1), DECLINED_NUMBER)
