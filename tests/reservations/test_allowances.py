"""Allowances: which are valid for a booking, in which order, and their ledger."""

from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.db.models import Sum

from accounts.act import Act
from centers.span import Span
from reservations.booking import differences, drafts, integrity
from reservations.booking.cancellation import cancel
from reservations.models import history
from reservations.models.status import Status
from reservations.pricing import promo_codes
from reservations.pricing.allowances import get_available
from roombook.errors import (
    AllowanceExhausted,
    PromoCodeInvalid,
    TooManyRequests,
)
from tests.factories_centers import CenterFactory, ResourceTypeFactory
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    DAY,
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_room,
    pay,
    update_allowances,
    update_promo_code,
)
from tests.reservations.rescheduling_helpers import adjust, build_request, change

pytestmark = pytest.mark.django_db


SPAN = Span(START, START + 3 * HOUR)


def offers(user, room, span=SPAN):
    return [(offer.allowance, offer.hours_left) for offer in get_available(user, room, span)]


def used(reservation):
    return list(reservation.allowance_uses.order_by("pk").values_list("allowance", "hours"))


def left(allowance, day=date(2027, 3, 3)):
    period = allowance.get_period(day)
    entered = allowance.entries.filter(period=period).aggregate(hours=Sum("hours"))["hours"]
    return allowance.hours + (entered or 0)


# --- Available allowances -------------------------------------------------------------------------


def test_only_own_active_allowances_are_available(ada, room):
    mine = AllowanceFactory(user=ada)
    AllowanceFactory(user=ada, is_active=False)
    AllowanceFactory()
    assert offers(ada, room) == [(mine, 10)]


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({"valid_from": date(2027, 3, 3), "valid_until": date(2027, 3, 3)}, True),
        ({"valid_from": date(2027, 3, 4)}, False),
        ({"valid_until": date(2027, 3, 2)}, False),
    ],
)
def test_allowance_must_be_valid_on_the_day_of_the_meeting(ada, room, fields, is_valid):
    AllowanceFactory(user=ada, **fields)
    assert bool(offers(ada, room)) == is_valid


def test_allowance_validity_uses_the_local_day_of_the_center(ada, room):
    """20:00 on Wednesday in Denver is Thursday in UTC; at the end of a month, the next month."""
    AllowanceFactory(user=ada, valid_until=date(2027, 3, 3))
    evening = Span(START + 11 * HOUR, START + 12 * HOUR)
    assert evening.start.date() == date(2027, 3, 4)
    assert len(offers(ada, room, evening)) == 1


def test_allowance_is_restricted_to_centers_and_room_types(ada, room):
    here, elsewhere = AllowanceFactory(user=ada), AllowanceFactory(user=ada)
    here.centers.add(room.center)
    here.room_types.add(room.resource_type, ResourceTypeFactory())
    elsewhere.centers.add(CenterFactory())
    other_kind = AllowanceFactory(user=ada)
    other_kind.room_types.add(ResourceTypeFactory())
    assert offers(ada, room) == [(here, 10)]


def test_allowances_are_ordered_by_expiry_and_monthly_first(ada, room):
    for_ever = AllowanceFactory(user=ada)
    month_end = AllowanceFactory(user=ada, valid_until=date(2027, 3, 31))
    monthly = MonthlyAllowanceFactory(user=ada)
    next_week = AllowanceFactory(user=ada, valid_until=date(2027, 3, 10))
    ends_sooner = MonthlyAllowanceFactory(user=ada, valid_until=date(2027, 3, 5))

    assert [allowance for allowance, _ in offers(ada, room)] == [
        *(ends_sooner, next_week, monthly, month_end, for_ever)
    ]


def test_monthly_hours_belong_to_the_month_of_the_meeting_and_expire(ada, room):
    plan = MonthlyAllowanceFactory(user=ada, hours=4)
    make_booking(ada, room)
    april = Span(START + 30 * DAY, START + 30 * DAY + HOUR)
    assert offers(ada, room) == [(plan, 1)]
    assert offers(ada, room, april) == [(plan, 4)]


# --- On a draft -----------------------------------------------------------------------------------


def test_selected_allowances_are_the_only_ones_applied(ada, room):
    first, second = AllowanceFactory(user=ada, hours=1), AllowanceFactory(user=ada, hours=10)
    reservation = make_draft(ada, room)
    assert used(reservation) == [(first.pk, 1), (second.pk, 2)]

    update_allowances(reservation.pk, [second.pk, second.pk], user=ada, now=NOW)
    assert used(reservation) == [(second.pk, 3)]

    reservation = update_allowances(reservation.pk, [], user=ada, now=NOW)
    assert used(reservation) == []
    assert reservation.total_cost == 75


def test_selected_allowances_survive_repricing(ada, room):
    AllowanceFactory(user=ada)
    manual = AllowanceFactory(user=ada, is_automatic=False, hours=1)
    reservation = make_draft(ada, room)
    update_allowances(reservation.pk, [manual.pk], user=ada, now=NOW)
    PromoCodeFactory(code="TEN")

    update_promo_code(reservation.pk, "TEN", user=ada, now=NOW)
    assert used(reservation) == [(manual.pk, 1)]

    update_allowances(reservation.pk, [], user=ada, now=NOW)
    update_promo_code(reservation.pk, "", user=ada, now=NOW)
    assert used(reservation) == []


# --- The ledger -----------------------------------------------------------------------------------


def test_hours_are_consumed_by_checkout_and_returned_by_cancellation(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    reservation = make_booking(ada, room)
    assert left(plan) == 0
    assert reservation.payments.get().amount == 25

    cancel(Act(ada, NOW), reservation.pk)

    assert left(plan) == 2
    assert [(each.hours, each.reservation) for each in plan.entries.order_by("pk")] == [
        (-2, reservation),
        (2, reservation),
    ]


def test_checkout_with_hours_used_elsewhere_is_refused_before_charging(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    first, second = make_draft(ada, room), make_draft(ada, room, start=START + DAY)
    pay(first)

    with pytest.raises(AllowanceExhausted):
        pay(second)

    second.refresh_from_db()
    assert second.status == Status.NEW
    assert not second.payments.exists()
    assert left(plan) == 0
    # Repriced without the hours, the draft can be booked.
    update_allowances(second.pk, [], user=ada, now=NOW)
    pay(second)
    assert second.payments.get().amount == 75


def test_checkout_with_deactivated_allowance_is_refused(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    reservation = make_draft(ada, room)
    plan.is_active = False
    plan.save()
    with pytest.raises(AllowanceExhausted):
        pay(reservation)


def test_allowance_with_fewer_hours_than_used_is_invalid(ada, room):
    plan = AllowanceFactory(user=ada, hours=4)
    pay(make_draft(ada, room))
    plan.hours = 3
    plan.full_clean()

    plan.hours = 2
    with pytest.raises(ValidationError, match="3 hours are used already"):
        plan.full_clean()


# --- Promo codes: which bookings they are valid for, and the ledger of their uses -----------------


UNKNOWN = "This promo code cannot be used for this booking."


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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"code": "OTHER"}, UNKNOWN),
        ({"is_active": False}, UNKNOWN),
        ({"meeting_from": date(2027, 3, 4)}, UNKNOWN),
        ({"meeting_until": date(2027, 3, 2)}, UNKNOWN),
        ({"valid_until": NOW}, "This promo code has expired."),
        ({"valid_from": NOW + HOUR / 60}, "This promo code is not valid yet."),
        ({"valid_from": NOW, "valid_until": NOW + HOUR / 60}, None),
        ({"max_uses": 0}, "This promo code has been used up."),
        ({"budget": Decimal("7.49")}, "This promo code has been used up."),
        ({"max_uses_per_account": 0}, "You have used this promo code already."),
    ],
)
def test_promo_code_that_does_not_fit_is_refused_with_its_message(drafted, fields, message):
    PromoCodeFactory(**{"code": "TEN", **fields})
    if message:
        assert get_refusal(drafted, "TEN") == message
    else:
        assert apply(drafted, "TEN").promo_code


@pytest.mark.parametrize(
    ("places", "make", "here"),
    [
        ("centers", CenterFactory, "center"),
        ("room_types", ResourceTypeFactory, "resource_type"),
    ],
)
def test_promo_code_is_restricted_to_centers_and_room_types(drafted, room, places, make, here):
    promo = PromoCodeFactory(code="TEN")
    getattr(promo, places).add(make())
    assert get_refusal(drafted, "TEN") == UNKNOWN
    getattr(promo, places).add(getattr(room, here))
    assert apply(drafted, "TEN").promo_code == promo


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


def test_promo_use_is_consumed_by_checkout_and_returned_by_cancellation(drafted, ada):
    promo = PromoCodeFactory(code="ONCE", max_uses=1)
    apply(drafted, "ONCE")
    pay(drafted)
    assert counted(promo) == 1
    assert promo.spent == Decimal("7.50")

    other = make_draft(start=START + DAY)
    with pytest.raises(PromoCodeInvalid, match="used up"):
        apply(other, "ONCE")

    cancel(Act(ada, NOW), drafted.pk)
    assert counted(promo) == 0
    assert apply(other, "ONCE").promo_code == promo


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"max_uses": 1}, "used up"),
        ({"max_uses_per_account": 1}, "already"),
        ({"budget": Decimal("7.50")}, "used up"),
    ],
)
def test_limit_of_a_promo_code_is_checked_again_before_charging(ada, room, limit, message):
    promo = PromoCodeFactory(code="TEN", **limit)
    first, second = make_draft(ada, room), make_draft(ada, room, start=START + DAY)
    for each in (first, second):
        apply(each, "TEN")
    pay(first)

    with pytest.raises(PromoCodeInvalid, match=message):
        pay(second)

    second.refresh_from_db()
    assert second.status == Status.NEW
    assert not second.payments.exists()
    assert counted(promo) == 1
    if "max_uses_per_account" in limit:  # The account of somebody else has uses.
        other = make_draft(room=room, start=START + 2 * DAY)
        apply(other, "TEN")
        pay(other)
        assert counted(promo) == 2


def test_promo_code_without_discount_counts_no_use(ada, drafted):
    promo = PromoCodeFactory(code="TEN")
    AllowanceFactory(user=ada, hours=3)
    assert apply(drafted, "TEN").total_cost == 0

    pay(drafted)

    assert counted(promo) == 0
    assert not list(integrity.find_problems(now=NOW))


def test_changed_promo_code_does_not_silently_change_a_draft(drafted, ada):
    promo = PromoCodeFactory(code="TEN")
    apply(drafted, "TEN")
    promo.percent = Decimal(50)
    promo.save()
    pay(drafted)
    assert drafted.payments.get().amount == Decimal("67.50")


def test_promo_code_after_twenty_refusals_in_an_hour_is_limited(drafted):
    PromoCodeFactory(code="TEN")
    for _ in range(20):
        get_refusal(drafted, "GUESS")
    for code in ("GUESS", "TEN"):
        with pytest.raises(TooManyRequests) as error:
            apply(drafted, code)
        assert error.value.retry_after == 3600

    assert apply(drafted, "TEN", now=NOW + HOUR).promo_code
    assert apply(drafted, "", now=NOW + HOUR / 2).total_cost == 75


@pytest.mark.time_machine(NOW, tick=False)
def test_customer_keeps_an_expired_code_only_for_its_rooms_and_days(drafted, ada, room):
    promo = PromoCodeFactory(valid_until=NOW + HOUR, max_uses=1, meeting_until=START.date())
    promo.centers.add(room.center)
    apply(drafted, promo.code)
    pay(drafted)
    later = NOW + 2 * HOUR

    for wanted in ({"room": make_room()}, {"start": START + DAY}):
        request = build_request(drafted, hours=1, **wanted)
        with pytest.raises(PromoCodeInvalid):
            differences.preview_change(Act(ada, later), drafted.pk, request)
        with pytest.raises(PromoCodeInvalid):
            change(drafted, hours=1, total="22.50", now=later, **wanted)
    assert change(drafted, hours=1, total="22.50", now=later).is_applied
    promo.refresh_from_db()
    assert (promo.uses, promo.spent) == (1, Decimal("2.50"))


@pytest.mark.time_machine(NOW, tick=False)
def test_draft_changes_are_in_the_history():
    clerk, ada = StaffFactory(), UserFactory()
    reservation = make_draft(ada)
    plan = AllowanceFactory(user=ada, hours=1, is_automatic=False)
    PromoCodeFactory(code="TEN")

    drafts.apply_promo_code(Act(ada, NOW), reservation.pk, "ten")
    drafts.select_allowances(Act(ada, NOW), reservation.pk, [plan.pk])
    adjust(reservation, clerk, -5, reason="Kind")
    drafts.extend_hold(Act(clerk, NOW, is_staff=True), reservation.pk, until=NOW + HOUR)

    assert [(row.actor, row.changes) for row in reversed(history.get_changes(reservation))] == [
        (ada, {"promo_code": [None, "TEN"], "total_cost": ["75.00", "67.50"]}),
        (ada, {"allowances": [None, plan.description], "total_cost": ["67.50", "45.00"]}),
        (clerk, {"adjustment": [None, "-$5.00: Kind"], "total_cost": ["45.00", "40.00"]}),
        (
            clerk,
            {"hold_until": ["2027-03-01T16:15:00+00:00", "2027-03-01T17:00:00+00:00"]},
        ),
    ]
