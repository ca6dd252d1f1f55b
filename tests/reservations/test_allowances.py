"""Allowances: which are valid for a booking, in which order, and their ledger."""

from datetime import date, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db.models import Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from centers.span import Span
from reservations.booking.cancellation import cancel
from reservations.booking.checkout import check_out
from reservations.models import LineItemType
from reservations.models.status import Status
from reservations.pricing import allowances
from reservations.pricing.allowances import get_available
from roombook.errors import (
    AllowanceExhausted,
    CardDeclined,
    InvalidRequest,
    NotFound,
    ReservationNotOpen,
)
from tests.factories_centers import CenterFactory, ResourceTypeFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    DECLINED_NUMBER,
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    MonthlyAllowanceFactory,
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
SPAN = Span(START, START + 3 * HOUR)


@pytest.fixture
def ada():
    return UserFactory()


@pytest.fixture
def room():
    return make_room()


def offers(user, room, span=SPAN):
    return [(offer.allowance, offer.hours_left) for offer in get_available(user, room, span)]


def used(reservation):
    return list(reservation.allowance_uses.order_by("pk").values_list("allowance", "hours"))


def left(allowance, day=date(2027, 3, 3)):
    period = allowance.get_period(day)
    entered = allowance.entries.filter(period=period).aggregate(hours=Sum("hours"))["hours"]
    return allowance.hours + (entered or 0)


# --- Available allowances ------------------------------------------------------------------------


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
    plan.entries.create(hours=-3, period=date(2027, 3, 1), reason="used", at=NOW)
    april = Span(START + 30 * DAY, START + 30 * DAY + HOUR)
    assert offers(ada, room) == [(plan, 1)]
    assert offers(ada, room, april) == [(plan, 4)]


def test_entries_by_staff_change_hours_never_below_zero(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    plan.entries.create(hours=5, reason="a gift", at=NOW)
    assert offers(ada, room) == [(plan, 7)]
    plan.entries.create(hours=-9, reason="a mistake", at=NOW)
    assert offers(ada, room) == [(plan, 0)]


# --- On a draft ----------------------------------------------------------------------------------


def test_draft_applies_automatic_allowances(ada, room):
    AllowanceFactory(user=ada, is_automatic=False, valid_until=date(2027, 3, 3))
    monthly = MonthlyAllowanceFactory(user=ada, hours=2)
    one_off = AllowanceFactory(user=ada, hours=10)

    reservation = make_draft(ada, room)

    assert used(reservation) == [(monthly.pk, 2), (one_off.pk, 1)]
    assert reservation.total_cost == 0


def test_allowance_hours_are_rounded_down(ada, room):
    AllowanceFactory(user=ada)
    reservation = make_draft(ada, room, hours=2.5)
    assert [hours for _, hours in used(reservation)] == [2]
    assert reservation.total_cost == 12.5


def test_draft_consumes_no_hours(ada, room):
    plan = AllowanceFactory(user=ada)
    make_draft(ada, room)
    assert left(plan) == 10


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


def test_invalid_allowance_cannot_be_selected(ada, room):
    mine, somebody_elses = AllowanceFactory(user=ada), AllowanceFactory()
    past = AllowanceFactory(user=ada, valid_until=date(2027, 3, 2))
    reservation = make_draft(ada, room)
    with pytest.raises(InvalidRequest) as error:
        update_allowances(
            reservation.pk, [somebody_elses.pk, mine.pk, past.pk, 999], user=ada, now=NOW
        )
    reason = "This allowance is not valid for this booking."
    assert error.value.fields == {f"allowance_ids.{index}": reason for index in (0, 2, 3)}
    assert used(reservation) == [(mine.pk, 3)]


def test_allowances_can_be_selected_only_on_own_draft(ada, room):
    with pytest.raises(ReservationNotOpen):
        update_allowances(make_booking(ada, room).pk, [], user=ada, now=NOW)
    with pytest.raises(NotFound):
        update_allowances(make_draft(room=room, start=START + DAY).pk, [], user=ada, now=NOW)


# --- The ledger ----------------------------------------------------------------------------------


def test_hours_are_consumed_by_checkout_and_returned_by_cancellation(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    reservation = make_booking(ada, room)
    assert left(plan) == 0
    assert reservation.payments.get().amount == 25

    cancel(reservation.pk, user=ada, now=NOW)

    assert left(plan) == 2
    assert [(each.hours, each.reservation) for each in plan.entries.order_by("pk")] == [
        (-2, reservation),
        (2, reservation),
    ]


def test_monthly_hours_are_recorded_in_the_month_of_the_meeting(ada, room):
    plan = MonthlyAllowanceFactory(user=ada, hours=4)
    make_booking(ada, room, start=START + 30 * DAY)
    assert plan.entries.get().period == date(2027, 4, 1)
    assert left(plan) == 4
    assert left(plan, date(2027, 4, 2)) == 1


def test_checkout_with_hours_used_elsewhere_is_refused_before_charging(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    first, second = make_draft(ada, room), make_draft(ada, room, start=START + DAY)
    check_out(first.pk, user=ada, payment_method=make_payment_method(), now=NOW)

    with pytest.raises(AllowanceExhausted):
        check_out(second.pk, user=ada, payment_method=make_payment_method(), now=NOW)

    second.refresh_from_db()
    assert second.status == Status.NEW
    assert not second.payments.exists()
    assert left(plan) == 0
    # Repriced without the hours, the draft can be booked.
    update_allowances(second.pk, [], user=ada, now=NOW)
    check_out(second.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    assert second.payments.get().amount == 75


def test_checkout_with_deactivated_allowance_is_refused(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    reservation = make_draft(ada, room)
    plan.is_active = False
    plan.save()
    with pytest.raises(AllowanceExhausted):
        check_out(reservation.pk, user=ada, payment_method=make_payment_method(), now=NOW)


def test_declined_card_returns_the_hours_each_time(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    reservation = make_draft(ada, room)
    for _ in range(2):
        with pytest.raises(CardDeclined):
            check_out(
                reservation.pk,
                user=ada,
                payment_method=make_payment_method(DECLINED_NUMBER),
                now=NOW,
            )
        assert left(plan) == 2
    check_out(reservation.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    assert left(plan) == 0


def test_allowance_with_fewer_hours_than_used_is_invalid(ada, room):
    plan = AllowanceFactory(user=ada, hours=4)
    check_out(make_draft(ada, room).pk, user=ada, payment_method=make_payment_method(), now=NOW)
    plan.hours = 3
    plan.full_clean()

    plan.hours = 2
    with pytest.raises(ValidationError, match="3 hours are used already"):
        plan.full_clean()


def test_hours_returned_twice_are_returned_once(ada, room):
    plan = AllowanceFactory(user=ada, hours=2)
    reservation = make_booking(ada, room)
    for _ in range(2):
        allowances.return_hours(reservation, now=NOW)
        assert left(plan) == 2


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plans=st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=4),
    quarters=st.integers(2, 36),
)
def test_draft_never_applies_more_hours_than_available(ada, room, plans, quarters):
    for plan in ada.allowances.all():
        plan.uses.all().delete()
        plan.delete()
    for hours, monthly, automatic in plans:
        kind = MonthlyAllowanceFactory if monthly else AllowanceFactory
        kind(user=ada, hours=hours, is_automatic=automatic)

    reservation = make_draft(ada, room, start=START - HOUR, hours=quarters / 4)

    uses = list(reservation.allowance_uses.select_related("allowance"))
    assert sum(each.hours for each in uses) <= int(reservation.billable_hours)
    assert all(0 < each.hours <= each.allowance.hours for each in uses)
    assert all(each.allowance.is_automatic for each in uses)
    room_line = reservation.line_items.get(type=LineItemType.ROOM)
    assert sum(each.discount for each in uses) <= room_line.total
    totals = [line.total for line in reservation.line_items.all()]
    assert sum(totals) == reservation.total_cost >= 0
    reservation.line_items.all().delete()
