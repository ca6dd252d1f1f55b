"""Terms of cancellation: what comes back when, and which terms a booking has (B15.4)."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.act import Act
from centers.models.terms import parse_steps
from payments.models import Refund
from reservations.booking import attendance, integrity
from reservations.booking.balances import get_unpaid_amounts
from reservations.booking.cancellation import RefundDecision, cancel
from reservations.models import AllowanceEntry, PromoCode, Reservation
from reservations.pricing.terms import (
    RefundTerms,
    Step,
    UnbookedTime,
    get_better_terms,
    get_terms,
    round_hours,
    split_payment,
)
from roombook.errors import ReservationNotOpen
from tests.factories_centers import TermsFactory
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_room,
    pay,
    update_promo_code,
)
from tests.faults.size import LONG
from tests.reservations.rescheduling_helpers import change, reschedule

BOOKED_AT = START - 200 * HOUR
WEEK_AND_TWO_DAYS = (Step(168, 100), Step(48, 50))

# --- What comes back ------------------------------------------------------------------------------


@st.composite
def terms(draw):
    count = draw(st.integers(0, 6))
    hours, percents = (
        sorted(draw(st.sets(numbers, min_size=count, max_size=count)), reverse=True)
        for numbers in (st.integers(0, 40), st.integers(1, 100) | st.sampled_from([50, 100]))
    )
    steps = tuple(map(Step, hours, percents))
    grace = draw(st.sampled_from([0, 15, 90]))
    changes = draw(st.none() | st.integers(0, 40))
    no_show_percent = draw(st.integers(0, 100))
    return RefundTerms("Some", steps, grace, no_show_percent, changes, draw(st.booleans()))


def make_booked(before_start=40 * HOUR):
    booking = type("Booking", (), {})()
    booking.start, booking.booked_at = START, START - before_start
    return booking


def get_percent_by_table(some, booking, at):
    """The percentage, by asking each of the last minutes in turn which rule gives most."""
    if at < min(booking.booked_at + some.grace_minutes * MINUTE, booking.start):
        return 100
    left = Fraction(int((booking.start - at).total_seconds()), 3600)
    return max((percent for hours, percent in some.steps if left > hours), default=0)


@settings(max_examples=10_000 if LONG else 100)
@given(terms(), st.integers(-3600, 45 * 3600), st.data())
def test_refund_is_that_of_a_table_of_decimals(some, seconds, data):
    booking, at = make_booked(), START - dt.timedelta(seconds=seconds)
    total, paid = (Decimal(data.draw(st.integers(0, 99_999))) / 100 for _ in range(2))

    percent = some.get_percent(booking, at)
    refund, fee = split_payment(total, paid, percent)

    assert percent == get_percent_by_table(some, booking, at)
    exact = total * (100 - percent) / 100
    rounded = Decimal(int(exact * 100 + Decimal("0.5"))) / 100
    assert fee == min(rounded, paid)
    assert refund == (paid if percent == 100 else min(total, paid) - fee)
    assert 0 <= refund <= paid
    # Each second before a step ends, and the second at which the next one begins.
    for until, before in some.list_periods(booking)[:-1]:
        assert some.get_percent(booking, until - dt.timedelta(seconds=1)) == before
        assert some.get_percent(booking, until) < before


def test_refund_of_everything_includes_what_a_reduction_left_due():
    assert split_payment(Decimal(55), Decimal(75), 100) == (75, 0)
    assert split_payment(Decimal(55), Decimal(75), 50) == (Decimal("27.5"), Decimal("27.5"))


@settings(max_examples=10_000 if LONG else 100)
@given(terms(), terms(), st.integers(0, 45 * 3600))
def test_better_terms_give_what_the_better_of_both_gives_at_any_time(old, new, seconds):
    booking, at = make_booked(), START - dt.timedelta(seconds=seconds)
    better = get_better_terms(old, new)

    assert better.get_percent(booking, at) == max(
        each.get_percent(booking, at) for each in (old, new)
    )
    assert better.no_show_percent == min(old.no_show_percent, new.no_show_percent)
    assert better.grace_minutes == max(old.grace_minutes, new.grace_minutes)
    assert better.get_latest_change() <= min(each.get_latest_change() for each in (old, new))
    assert better.returns_benefits == (old.returns_benefits or new.returns_benefits)
    assert get_better_terms(better, old) == better


def test_better_terms_of_neither_have_both_names():
    strict, late = (
        RefundTerms("Strict", (Step(48, 100),), 0),
        RefundTerms("Late", (Step(2, 30),), 0),
    )
    better = get_better_terms(strict, late)
    assert (better.name, better.steps) == ("Strict / Late", (Step(48, 100), Step(2, 30)))
    assert get_better_terms(strict, RefundTerms("New", (Step(24, 100),), 0)).name == "New"


def test_hours_before_the_start_are_elapsed_hours_when_the_clock_changes():
    # 9:00 in Denver, where the clock has skipped an hour in the night before.
    start = dt.datetime(2027, 3, 14, 15, tzinfo=dt.UTC)
    [first, _] = RefundTerms("", (Step(24, 100),), 15).list_periods(UnbookedTime(start))
    assert first.until == dt.datetime(2027, 3, 13, 15, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("hours", "share", "returned"), [(3, "0.5", "1.5"), (4, "0.33", "1.5"), (1, "0.01", "0.25")]
)
def test_included_hours_come_back_in_quarters_rounded_up(hours, share, returned):
    assert round_hours(hours * Decimal(share)) == Decimal(returned)


@pytest.mark.parametrize(
    "text",
    [
        *("48: 100; 168: 50", "168: 50; 48: 100", "48: 50; 48: 20", "48: 101", "48: 0"),
        *("48", "x: 5", "-1: 5", "10001: 5", "7:70;6:60;5:50;4:40;3:30;2:20;1:10"),
    ],
)
def test_steps_that_do_not_fall_or_cannot_be_read_are_refused(text):
    with pytest.raises(ValidationError):
        parse_steps(text)


def test_steps_are_read():
    assert parse_steps("168: 100 %;48:50") == WEEK_AND_TWO_DAYS
    assert parse_steps("") == ()


# --- The terms of a booking -----------------------------------------------------------------------

pytestmark = pytest.mark.django_db


@pytest.fixture
def room():
    room = make_room()
    room.center.terms = TermsFactory(center=room.center)
    room.center.save()
    return room


@pytest.fixture
def booking(ada, room):
    return make_booking(ada, room, now=BOOKED_AT)


def preview(booking, at):
    return cancel.preview(Act(booking.user, at), booking.pk).result


@pytest.mark.parametrize(
    ("before_start", "refund", "forecast"),
    [
        (
            169 * HOUR,
            "75.00",
            "$75.00 is refunded to Visa ending 4242. $75.00 until Wed, Feb 24, 2027, 9:00 AM, then"
            " $37.50.",
        ),
        (
            168 * HOUR,
            "37.50",
            "$37.50 is refunded to Visa ending 4242. $37.50 until Mon, Mar 1, 2027, 9:00 AM, then"
            " nothing.",
        ),
        (48 * HOUR, "0", "it is less than 48 hours before its start, so nothing is refunded."),
    ],
)
def test_cancellation_refunds_the_step_and_names_the_next_one(
    booking, before_start, refund, forecast
):
    at = START - before_start
    shown = preview(booking, at)
    outcome = cancel(Act(booking.user, at), booking.pk)

    assert shown.forecast == f"If you cancel now: {forecast}"
    assert (shown.refund, shown.outcome.fee) == (Decimal(refund), 75 - Decimal(refund))
    assert outcome.refund == shown.refund
    again = cancel(Act(booking.user, at + HOUR), booking.pk)
    assert (again.refund, again.message) == (outcome.refund, outcome.message)
    assert [*integrity.find_problems(now=at)] == []


def test_room_has_its_own_terms_before_those_of_its_center(room):
    room.terms = TermsFactory(center=room.center, name="Strict", steps="")
    room.save()
    booking = make_booking(room=room, now=BOOKED_AT)
    assert preview(booking, BOOKED_AT).refund == 0
    assert preview(booking, BOOKED_AT).message.endswith("nothing is refunded.")


def test_grace_gives_all_back_but_not_after_the_start(ada, room):
    room.center.terms.grace_minutes = 120
    room.center.terms.save()
    booking = make_booking(ada, room, now=START - HOUR)
    assert preview(booking, START - MINUTE).refund == 75
    assert get_terms(booking).get_grace_end(booking) == START
    with pytest.raises(ReservationNotOpen):
        preview(booking, START)


@pytest.mark.parametrize(
    ("change_hours", "last"), [(None, 168), (2, 2), (0, 0)], ids=["while free", "2 h", "start"]
)
def test_customer_may_change_the_booking_until_the_terms_end_that(ada, room, change_hours, last):
    room.center.terms.change_hours = change_hours
    room.center.terms.save()
    booking = make_booking(ada, room, now=BOOKED_AT)
    with pytest.raises(ReservationNotOpen):
        change(booking, total=90, hours=4, now=START - last * HOUR)
    change(booking, total=90, hours=4, now=START - last * HOUR - MINUTE)


@pytest.mark.parametrize(("steps", "kept"), [("", "168: 100; 48: 50"), ("24: 100", "24: 100")])
def test_changed_booking_keeps_the_better_terms(booking, room, steps, kept):
    room.center.terms.steps = steps
    room.center.terms.save()
    reschedule(booking, AdministratorFactory(), start=START + HOUR, now=BOOKED_AT)
    booking.refresh_from_db()
    assert get_terms(booking).steps == parse_steps(kept)


def test_hours_that_always_came_back_still_do_after_a_change(ada):
    AllowanceFactory(user=ada, hours=1)
    booking = make_booking(ada, make_room(), now=BOOKED_AT)
    booking.room.center.terms = TermsFactory(center=booking.room.center)
    booking.room.center.save()
    values = {"number_of_attendees": 3}
    reschedule(booking, AdministratorFactory(), values=values, now=BOOKED_AT)
    cancel(Act(ada, START - HOUR), booking.pk)
    assert sum(AllowanceEntry.objects.values_list("hours", flat=True)) == 0
    assert [*integrity.find_problems(now=START - HOUR)] == []


@pytest.fixture
def discounted(ada, room):
    """A booking of 45 with an included hour and a promo code."""
    room.center.terms.no_show_percent = 0
    room.center.terms.save()
    AllowanceFactory(user=ada, hours=1)
    PromoCodeFactory(code="TEN", percent=10)
    draft = make_draft(ada, room, now=BOOKED_AT)
    update_promo_code(draft.pk, "TEN", user=ada, now=BOOKED_AT)
    return pay(draft, now=BOOKED_AT)


def test_hours_come_back_in_proportion_and_the_promo_code_only_with_a_full_refund(ada, discounted):
    booking, at = discounted, START - 100 * HOUR

    outcome = cancel(Act(ada, at), booking.pk)
    assert outcome.refund == Decimal("22.50")  # of 45
    assert outcome.message.endswith(" 0.5 of 1 included hours come back.")
    assert cancel(Act(ada, at), booking.pk).message == outcome.message
    assert PromoCode.objects.get().uses == 1
    assert [*AllowanceEntry.objects.order_by("pk").values_list("hours", flat=True)] == [
        -1,
        Decimal("0.5"),
    ]
    assert [*integrity.find_problems(now=at)] == []


def test_cancellation_succeeds_although_the_counters_of_the_promo_code_are_wrong(ada, discounted):
    PromoCode.objects.update(uses=0, spent=0)
    cancel(Act(ada, BOOKED_AT), discounted.pk)
    assert PromoCode.objects.values_list("uses", "spent").get() == (0, 0)


def test_no_show_that_is_free_returns_the_promo_code_also_if_it_is_undone(discounted):
    act = Act(AdministratorFactory(), START + HOUR, is_staff=True)
    for step in (attendance.mark_no_show, attendance.undo_no_show):
        step(act, discounted.pk)
        assert PromoCode.objects.get().uses == 0
        assert [*integrity.find_problems(now=act.now)] == []


@pytest.mark.parametrize(("amount", "returned"), [(None, "1"), ("20", "0.5")])
def test_decision_of_staff_returns_hours_in_its_own_proportion(ada, room, amount, returned):
    AllowanceFactory(user=ada, hours=1)
    booking = make_booking(ada, room, now=BOOKED_AT)
    act = Act(AdministratorFactory(), START - HOUR, is_staff=True)
    decision = RefundDecision(amount and Decimal(amount), "We cannot host.")
    cancel(act, booking.pk, decision=decision)
    entries = AllowanceEntry.objects.order_by("pk")
    assert [*entries.values_list("hours", flat=True)] == [-1, Decimal(returned)]


def test_no_show_costs_its_percentage_once(ada, room):
    room.center.terms.no_show_percent = 80
    room.center.terms.save()
    AllowanceFactory(user=ada, hours=1)
    booking = make_booking(ada, room, now=BOOKED_AT)
    act = Act(AdministratorFactory(), START + HOUR, is_staff=True)
    for _ in range(2):
        attendance.mark_no_show(act, booking.pk)
        assert Refund.objects.get().amount == Decimal("10.00")  # of 50
        assert [*AllowanceEntry.objects.order_by("pk").values_list("hours", flat=True)] == [
            -1,
            Decimal("0.25"),
        ]
        assert [*integrity.find_problems(now=act.now)] == []
        assert get_unpaid_amounts(Reservation.objects.all()) == {}
        attendance.undo_no_show(act, booking.pk)
