"""Promo codes: which bookings they are valid for, and the ledger of their uses."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from reservations.booking import changes, integrity, price_adjustments
from reservations.booking.cancellation import cancel
from reservations.booking.change_request import ChangeRequest
from reservations.booking.checkout import check_out
from reservations.models.status import Status
from reservations.pricing import promo_codes
from roombook.errors import CardDeclined, PromoCodeInvalid, ReservationNotOpen, TooManyRequests
from tests.factories_centers import CenterFactory, ResourceTypeFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    DECLINED_NUMBER,
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    AmountOffPromoCodeFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_room,
    update_allowances,
    update_promo_code,
)

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
UNKNOWN = "This promo code cannot be used for this booking."


@pytest.fixture
def ada():
    return UserFactory()


@pytest.fixture
def room():
    return make_room()


@pytest.fixture
def drafted(ada, room):
    """A draft of three hours for 75 dollars."""
    return make_draft(ada, room)


def apply(reservation, code, *, now=NOW):
    return update_promo_code(reservation.pk, code, user=reservation.user, now=now)


def get_refusal(reservation, code, *, now=NOW):
    with pytest.raises(PromoCodeInvalid) as error:
        apply(reservation, code, now=now)
    reservation.refresh_from_db()
    assert reservation.promo_code is None
    assert reservation.total_cost == 75
    return error.value.message


def counted(promo):
    promo.refresh_from_db()
    open_uses = promo_codes.get_open_redemptions(promo)
    assert promo.uses == open_uses.count()
    assert promo.spent == sum((each.amount for each in open_uses), Decimal(0))
    return promo.uses


@pytest.mark.parametrize("typed", ["WELCOME", "welcome", "  WelCome\t"])
def test_promo_code_ignores_case_and_surrounding_spaces(drafted, typed):
    PromoCodeFactory(code=" Welcome ")

    reservation = apply(drafted, typed)

    assert reservation.promo_code.code == "WELCOME"
    assert reservation.total_cost == Decimal("67.50")


def test_promo_code_is_set_replaced_and_removed(drafted):
    PromoCodeFactory(code="TEN")
    AmountOffPromoCodeFactory(code="OFF")
    assert apply(drafted, "TEN").total_cost == Decimal("67.50")
    assert apply(drafted, "OFF").total_cost == 55
    assert apply(drafted, " ").total_cost == 75
    assert apply(drafted, "").promo_code is None


def test_promo_code_amount_is_limited_to_the_price(drafted):
    AmountOffPromoCodeFactory(code="OFF", amount=Decimal(1000))
    assert apply(drafted, "OFF").total_cost == 0


def test_refused_promo_code_keeps_the_previous_one(drafted):
    PromoCodeFactory(code="TEN")
    PromoCodeFactory(code="OLD", valid_until=NOW)
    apply(drafted, "TEN")

    with pytest.raises(PromoCodeInvalid):
        apply(drafted, "OLD")

    drafted.refresh_from_db()
    assert drafted.promo_code.code == "TEN"
    assert drafted.total_cost == Decimal("67.50")


@pytest.mark.parametrize(
    "fields",
    [
        {"is_active": False},
        {"meeting_from": date(2027, 3, 4)},
        {"meeting_until": date(2027, 3, 2)},
    ],
)
def test_inapplicable_promo_code_has_the_error_of_an_unknown_code(drafted, fields):
    assert get_refusal(drafted, "NONESUCH") == UNKNOWN
    PromoCodeFactory(code="TEN", **fields)
    assert get_refusal(drafted, "TEN") == UNKNOWN


def test_promo_code_is_restricted_to_centers(drafted, room):
    promo = PromoCodeFactory(code="TEN")
    promo.centers.add(CenterFactory())
    assert get_refusal(drafted, "TEN") == UNKNOWN
    promo.centers.add(room.center)
    assert apply(drafted, "TEN").promo_code == promo


def test_promo_code_is_restricted_to_room_types(drafted, room):
    promo = PromoCodeFactory(code="TEN")
    promo.room_types.add(ResourceTypeFactory())
    assert get_refusal(drafted, "TEN") == UNKNOWN
    promo.room_types.add(room.resource_type)
    assert apply(drafted, "TEN").promo_code == promo


def test_promo_code_booking_window_is_half_open(drafted):
    PromoCodeFactory(code="TEN", valid_from=NOW + HOUR, valid_until=NOW + 2 * HOUR)
    assert get_refusal(drafted, "TEN") == "This promo code is not valid yet."
    assert get_refusal(drafted, "TEN", now=NOW + 2 * HOUR) == "This promo code has expired."
    assert apply(drafted, "TEN", now=NOW + HOUR).promo_code


def test_promo_code_meeting_window_uses_local_days_of_the_center(ada):
    """20:00 in Denver on Wednesday is Thursday in UTC."""
    room = make_room()
    room.center.opening_hours.update(closes="23:00")
    evening = make_draft(ada, room, start=START + 11 * HOUR, hours=1)
    PromoCodeFactory(code="WED", meeting_from=date(2027, 3, 3), meeting_until=date(2027, 3, 3))
    assert apply(evening, "WED").promo_code


def test_promo_code_minimum_applies_to_the_price_after_allowances(drafted, ada):
    PromoCodeFactory(code="BIG", minimum_spend=Decimal("75.01"))
    assert get_refusal(drafted, "BIG") == "This promo code is for bookings of $75.01 or more."

    PromoCodeFactory(code="FITS", minimum_spend=Decimal("75.00"))
    assert apply(drafted, "FITS").promo_code
    plan = AllowanceFactory(user=ada, is_automatic=False)
    # With hours used the booking no longer meets the code's terms: nothing changes.
    with pytest.raises(PromoCodeInvalid):
        update_allowances(drafted.pk, [plan.pk], user=ada, now=NOW)
    drafted.refresh_from_db()
    assert drafted.total_cost == Decimal("67.50")
    assert not drafted.allowance_uses.exists()


def test_promo_code_on_draft_counts_no_use(drafted):
    promo = PromoCodeFactory(code="ONCE", max_uses=1)
    apply(drafted, "ONCE")
    assert counted(promo) == 0


def test_promo_use_is_consumed_by_checkout_and_returned_by_cancellation(drafted, ada):
    promo = PromoCodeFactory(code="ONCE", max_uses=1)
    apply(drafted, "ONCE")
    check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    assert counted(promo) == 1
    assert promo.spent == Decimal("7.50")

    other = make_draft(start=START + DAY)
    with pytest.raises(PromoCodeInvalid, match="used up"):
        apply(other, "ONCE")

    cancel(drafted.pk, user=ada, now=NOW)
    assert counted(promo) == 0
    assert apply(other, "ONCE").promo_code == promo


def test_checkout_with_used_up_promo_code_is_refused_before_charging(drafted, ada):
    promo = PromoCodeFactory(code="ONCE", max_uses=1)
    apply(drafted, "ONCE")
    other = make_draft(start=START + DAY)
    apply(other, "ONCE")
    check_out(other.pk, user=other.user, payment_method=make_payment_method(), now=NOW)

    with pytest.raises(PromoCodeInvalid, match="used up"):
        check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW)

    drafted.refresh_from_db()
    assert drafted.status == Status.NEW
    assert not drafted.payments.exists()
    assert counted(promo) == 1
    # The customer removes the code and pays the full price.
    apply(drafted, "")
    check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    assert drafted.payments.get().amount == 75


def test_checkout_with_expired_promo_code_is_refused(drafted, ada):
    PromoCodeFactory(code="TEN", valid_until=NOW + HOUR)
    apply(drafted, "TEN")
    with pytest.raises(PromoCodeInvalid, match="expired"):
        check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW + HOUR)


def test_promo_code_without_discount_counts_no_use(ada, drafted):
    promo = PromoCodeFactory(code="TEN")
    AllowanceFactory(user=ada, hours=3)
    assert apply(drafted, "TEN").total_cost == 0

    check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW)

    assert counted(promo) == 0
    assert not list(integrity.find_problems(now=NOW))


def test_declined_card_returns_the_promo_use(drafted, ada):
    promo = PromoCodeFactory(code="ONCE", max_uses=1)
    apply(drafted, "ONCE")
    for _ in range(2):
        with pytest.raises(CardDeclined):
            check_out(
                drafted.pk, user=ada, payment_method=make_payment_method(DECLINED_NUMBER), now=NOW
            )
        assert counted(promo) == 0
    assert promo.redemptions.count() == 2


def test_promo_code_has_a_limit_per_account(ada, room):
    promo = PromoCodeFactory(code="ONCE", max_uses_per_account=1)
    first, second = make_draft(ada, room), make_draft(ada, room, start=START + DAY)
    apply(first, "ONCE")
    apply(second, "ONCE")
    check_out(first.pk, user=ada, payment_method=make_payment_method(), now=NOW)

    with pytest.raises(PromoCodeInvalid, match="already"):
        check_out(second.pk, user=ada, payment_method=make_payment_method(), now=NOW)

    somebody_else = make_draft(room=room, start=START + 2 * DAY)
    apply(somebody_else, "ONCE")
    check_out(
        somebody_else.pk, user=somebody_else.user, payment_method=make_payment_method(), now=NOW
    )
    assert counted(promo) == 2


def test_promo_code_has_a_budget(room):
    promo = PromoCodeFactory(code="TEN", budget=Decimal("15.00"))
    for day in range(2):
        reservation = make_draft(room=room, start=START + day * DAY)
        apply(reservation, "TEN")
        check_out(
            reservation.pk, user=reservation.user, payment_method=make_payment_method(), now=NOW
        )
    assert counted(promo) == 2
    assert promo.spent == 15
    assert get_refusal(make_draft(room=room, start=START + 2 * DAY), "TEN") == (
        "This promo code has been used up."
    )


def test_promo_code_budget_is_checked_again_at_checkout(room):
    promo = PromoCodeFactory(code="TEN", budget=Decimal("7.50"))
    first, second = (make_draft(room=room, start=START + day * DAY) for day in range(2))
    for each in (first, second):
        apply(each, "TEN")
    check_out(first.pk, user=first.user, payment_method=make_payment_method(), now=NOW)
    with pytest.raises(PromoCodeInvalid):
        check_out(second.pk, user=second.user, payment_method=make_payment_method(), now=NOW)
    assert counted(promo) == 1


def test_promo_use_returned_twice_is_returned_once(drafted, ada):
    promo = PromoCodeFactory(code="TEN")
    apply(drafted, "TEN")
    reservation = check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    for _ in range(2):
        promo_codes.return_redemption(reservation, now=NOW)
        assert counted(promo) == 0


def test_changed_promo_code_does_not_silently_change_a_draft(drafted, ada):
    promo = PromoCodeFactory(code="TEN")
    apply(drafted, "TEN")
    promo.percent = Decimal(50)
    promo.save()
    check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    assert drafted.payments.get().amount == Decimal("67.50")


def test_promo_code_on_reservation_that_is_no_draft_is_refused(ada):
    PromoCodeFactory(code="TEN")
    with pytest.raises(ReservationNotOpen):
        apply(make_booking(ada), "TEN")


def test_promo_code_after_twenty_refusals_in_an_hour_is_limited(drafted):
    PromoCodeFactory(code="TEN")
    for _ in range(20):
        get_refusal(drafted, "GUESS")
    for code in ("GUESS", "TEN"):
        with pytest.raises(TooManyRequests) as error:
            apply(drafted, code)
        assert error.value.retry_after == 3600

    assert apply(drafted, "TEN", now=NOW + HOUR).promo_code


def test_valid_codes_and_removals_are_not_limited(drafted):
    PromoCodeFactory(code="TEN")
    for _ in range(25):
        apply(drafted, "TEN")
        apply(drafted, "")


def test_promo_code_can_be_removed_after_the_limit(drafted):
    PromoCodeFactory(code="TEN")
    apply(drafted, "TEN")
    for _ in range(20):
        with pytest.raises(PromoCodeInvalid):
            apply(drafted, "GUESS")
    assert apply(drafted, "").total_cost == 75


def test_adjustment_by_staff_survives_repricing(drafted):
    staff = UserFactory(is_staff=True)
    PromoCodeFactory(code="TEN")
    price_adjustments.adjust_price(
        drafted.pk, amount=Decimal(-5), reason="late key", by=staff, now=NOW
    )
    assert apply(drafted, "TEN").total_cost == Decimal("62.50")


@pytest.mark.time_machine(NOW, tick=False)
def test_customer_keeps_an_expired_code_only_for_its_rooms_and_days(drafted, ada, room):
    promo = PromoCodeFactory(valid_until=NOW + HOUR, max_uses=1, meeting_until=START.date())
    promo.centers.add(room.center)
    apply(drafted, promo.code)
    check_out(drafted.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    later = NOW + 2 * HOUR

    for request in (
        ChangeRequest(make_room().pk, START, START + HOUR),
        ChangeRequest(room.pk, START + DAY, START + DAY + HOUR),
    ):
        with pytest.raises(PromoCodeInvalid):
            changes.preview_change(drafted.pk, request, user=ada, now=later)
        with pytest.raises(PromoCodeInvalid):
            change(drafted, request, total="22.50", now=later)
    assert change(drafted, ChangeRequest(room.pk, START, START + HOUR), total="22.50", now=later)
    promo.refresh_from_db()
    assert (promo.uses, promo.spent) == (1, Decimal("2.50"))


def change(reservation, request, *, total, now):
    outcome = changes.change_booking(
        reservation.pk,
        request,
        user=reservation.user,
        payment_method=make_payment_method(),
        expected_total=Decimal(total),
        now=now,
    )
    return outcome.is_applied
