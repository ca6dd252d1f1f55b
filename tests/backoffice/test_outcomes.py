"""The reports on cancellations and no-shows, and on discounts."""

import datetime as dt
from decimal import Decimal

import pytest

from accounts.act import Act
from centers.models import Center
from reservations.booking import cancellation, charging, price_adjustments
from reservations.booking.amendments import TakenPayment
from reservations.models.status import Status
from reservations.reports import discounts, outcomes, selection
from reservations.reports.discounts import DiscountSums
from reservations.reports.outcomes import OutcomeCounts
from reservations.reports.periods import ReportPeriod
from reservations.reports.selection import ReportSelection, ReportTooLarge
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    checkout,
    make_draft,
    make_payment_method,
    make_room,
    pay,
    show_price,
    update_promo_code,
)
from tests.reservations.rescheduling_helpers import reschedule

pytestmark = pytest.mark.django_db

MARCH = ReportPeriod(dt.date(2027, 3, 1), dt.date(2027, 3, 31))
SPRING = ReportPeriod(dt.date(2027, 3, 1), dt.date(2027, 5, 31))
DAY = 24 * HOUR


def row(status, **fields):
    booked_at = None if status in {Status.NEW, Status.PROCESSING} else NOW
    return ReservationFactory(
        **{"status": status, "total_cost": Decimal("75.00"), "booked_at": booked_at, **fields}
    )


# --- Outcomes -----------------------------------------------------------------------------------


def became(period=MARCH, **also):
    return outcomes.count_outcomes(ReportSelection(period, **also))


def test_outcomes_count_each_status():
    for status in (*Status, Status.CANCELLED):
        late = {"cancelled_at": START - 25 * HOUR} if status == Status.CANCELLED else {}
        row(status, **late)
    row(Status.CANCELLED, cancelled_at=START - 23 * HOUR)

    found = became().total

    assert found == OutcomeCounts(
        kept=3,
        over=2,
        no_shows=1,
        cancelled=3,
        late=1,
        declined=1,
        expired=1,
        lost=Decimal("225.00"),
    )
    assert found.cancelled_share == 0.5
    assert found.no_show_share == 0.5


def test_outcomes_dropped_drafts_are_not_counted():
    row(Status.CANCELLED, booked_at=None)
    row(Status.EXPIRED, booked_at=None)

    assert became().total == outcomes.OutcomeCounts()
    assert outcomes.OutcomeCounts().cancelled_share is None
    assert outcomes.OutcomeCounts().no_show_share is None


def test_outcomes_by_center_and_month_add_up():
    rooms = [make_room(), make_room(time_zone_id="Asia/Tokyo")]
    for number, status in enumerate([*Status] * 3):
        row(status, room=rooms[number % 2], start=START + number * 3 * DAY)

    found = became(SPRING)

    assert len(found.by_center) == 2
    assert list(found.by_month) == [dt.date(2027, month, 1) for month in (3, 4, 5)]
    assert found.total.cancelled == 3
    for parts in (found.by_center, found.by_month):
        assert sum(parts.values(), outcomes.OutcomeCounts()) == found.total
    assert became(centers=frozenset()).total == outcomes.OutcomeCounts()


def test_outcomes_too_many_groups_are_refused(monkeypatch):
    row(Status.COMPLETED)
    monkeypatch.setattr(selection, "MAX_GROUPS", 0)
    with pytest.raises(ReportTooLarge):
        became()


# --- Discounts ----------------------------------------------------------------------------------


def given(period=MARCH, **also):
    return discounts.measure_discounts(ReportSelection(period, **also))


def test_discounts_match_the_bill():
    """Three hours at 25: two by allowance, half of the rest by a code, 5 by staff."""
    room, user = make_room(), UserFactory()
    AllowanceFactory(user=user, hours=2, description="Founder hours")
    PromoCodeFactory(code="HALF", percent=Decimal(50))
    reservation = make_draft(user, room)
    update_promo_code(reservation.pk, "HALF", user=user, now=NOW)
    price_adjustments.adjust_price(
        Act(AdministratorFactory(), NOW, is_staff=True),
        reservation.pk,
        amount=Decimal(-5),
        reason="Cold coffee",
    )
    show_price(reservation)
    checkout.check_out(reservation.pk, user=user, payment_method=make_payment_method(), now=NOW)

    found = given()

    assert found.breakdown.total == DiscountSums(
        promotions=Decimal("12.50"), allowances=Decimal("50.00"), adjustments=Decimal("5.00")
    )
    assert found.breakdown.total.total == Decimal("67.50")
    assert found.by_promo_code == {
        "HALF": discounts.PromoCodeSums(uses=1, promotions=Decimal("12.50"), billed=Decimal("7.50"))
    }
    assert found.allowances == [discounts.AllowanceSums("Founder hours", 1, 1, 2, Decimal("50.00"))]


def test_discounts_cancelled_reservation_is_not_counted():
    user = UserFactory()
    AllowanceFactory(user=user)
    reservation = make_draft(user)
    checkout.check_out(reservation.pk, user=user, payment_method=charging.PaymentMethod(), now=NOW)
    assert given().breakdown.total.allowances == Decimal("75.00")

    cancellation.cancel(Act(user, NOW), reservation.pk)

    assert given().breakdown.total == discounts.DiscountSums()
    assert given().allowances == []


def test_discounts_by_center_month_code_and_allowance_add_up():
    codes = [PromoCodeFactory(percent=Decimal("33.33")), PromoCodeFactory(percent=Decimal(7))]
    rooms = [make_room(), make_room(time_zone_id="America/New_York")]
    for number in range(8):
        user = UserFactory()
        if number % 3:
            AllowanceFactory(user=user, hours=1, description=f"Plan {number % 2}")
        room = rooms[number % 2]
        reservation = make_draft(user, room, start=START + number * 7 * DAY)
        code = codes[number % 3 % 2].code
        update_promo_code(reservation.pk, code, user=user, now=NOW)
        checkout.check_out(reservation.pk, user=user, payment_method=make_payment_method(), now=NOW)

    found = given(SPRING)

    assert len(found.breakdown.by_center) == len(found.by_promo_code) == len(found.allowances) == 2
    for parts in (found.breakdown.by_center, found.breakdown.by_month):
        assert sum(parts.values(), discounts.DiscountSums()) == found.breakdown.total
    assert (
        sum(each.promotions for each in found.by_promo_code.values())
        == found.breakdown.total.promotions
        > 0
    )
    assert sum(each.discount for each in found.allowances) == found.breakdown.total.allowances > 0


def test_discounts_of_a_code_that_was_removed_after_its_month_still_add_up():
    """At prices that contain the tax, the bill shows discounts with it, and the ledger without."""
    room, start = make_room(), dt.datetime(2027, 3, 31, 16, tzinfo=dt.UTC)
    Center.objects.update(tax_rate=19, prices_include_tax=True)
    draft = make_draft(room=room, start=start)
    PromoCodeFactory(code="TEN", percent=10)
    update_promo_code(draft.pk, "TEN", user=draft.user, now=NOW)
    booking = pay(show_price(draft))
    assert given().by_promo_code["TEN"].promotions == Decimal("6.31")

    change = {"values": {"promo_code": ""}, "taken": TakenPayment("cash")}
    next_day = start + 23 * HOUR
    reschedule(booking, AdministratorFactory(), start=start, now=next_day, **change)

    found = given()
    assert found.breakdown.total.promotions == Decimal("6.31")
    removed = discounts.PromoCodeSums(promotions=Decimal("6.31"))
    assert found.by_promo_code == {discounts.REMOVED: removed}
