"""The reports on cancellations and no-shows, on discounts, and on revenue: what adds up to what."""

import datetime as dt
from decimal import Decimal

import pytest

from accounts.act import Act
from centers.models import Center
from payments.ledger.accounts import EventKind
from payments.models import LedgerLine
from reservations.booking import cancellation, price_adjustments
from reservations.booking.amendments import TakenPayment
from reservations.local_days import LocalDays
from reservations.models.status import Status
from reservations.reports import discounts, outcomes, revenue
from reservations.reports.selection import ReportSelection
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    PartnerFactory,
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

MARCH = LocalDays(dt.date(2027, 3, 1), dt.date(2027, 3, 31))
SPRING = LocalDays(dt.date(2027, 3, 1), dt.date(2027, 5, 31))


def read(report, sums):
    """The figures by the names of their columns, without those that are 0."""
    return {each.name: each.read(sums) for each in report.MEASURES if each.read(sums)}


def row(status, **fields):
    booked_at = None if status in {Status.NEW, Status.PROCESSING} else NOW
    return ReservationFactory(
        **{"status": status, "total_cost": Decimal("75.00"), "booked_at": booked_at, **fields}
    )


def became(period=MARCH, **also):
    return outcomes.count_outcomes(ReportSelection(period, **also))


def test_outcomes_count_each_status_but_no_dropped_drafts():
    for status in (Status.CANCELLED, Status.EXPIRED):
        row(status, booked_at=None)
    total = became().total
    assert read(outcomes, total) == {}
    assert outcomes.CANCELLED_SHARE.read(total) is outcomes.NO_SHOW_SHARE.read(total) is None

    for status in (*Status, Status.CANCELLED):
        late = {"cancelled_at": START - 25 * HOUR} if status == Status.CANCELLED else {}
        row(status, **late)
    row(Status.CANCELLED, cancelled_at=START - 23 * HOUR)

    assert read(outcomes, became().total) == {
        "Kept": 3,
        "Cancelled": 3,
        "Cancelled, %": 0.5,
        "Late": 1,
        "Value": Decimal("225.00"),
        "No-shows": 1,
        "No-shows, %": 0.5,
        "Declined": 1,
        "Not answered": 1,
    }


def given(period=MARCH):
    return discounts.measure_discounts(ReportSelection(period))


def build_tables(period=MARCH):
    report = discounts.build_report(ReportSelection(period))
    return {table.key: table for table in report.tables}


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
    checkout.check_out(Act(user, NOW), reservation.pk, payment_method=make_payment_method())

    found = given()

    assert read(discounts, found.total) == {
        "Promo codes": Decimal("12.50"),
        "Allowances": Decimal("50.00"),
        "Adjustments": Decimal("5.00"),
        "Total": Decimal("67.50"),
    }
    tables = build_tables()
    assert [tables[key].total[-1] for key in ("center", "month")] == [Decimal("67.50")] * 2
    assert tables["code"].rows == [["HALF", 1, Decimal("12.50"), Decimal("7.50")]]
    assert tables["allowance"].rows == [["Founder hours", 1, 1, 2, Decimal("50.00")]]
    cancellation.cancel(Act(user, NOW), reservation.pk)
    assert (read(discounts, given().total), build_tables()["allowance"].rows) == ({}, [])


@pytest.mark.parametrize("code", ["", "HALF"])
def test_discounts_keep_the_code_that_was_removed_or_replaced_after_its_month(code):
    """At prices that contain the tax, the bill shows discounts with it, and the ledger without."""
    room, start = make_room(), dt.datetime(2027, 3, 31, 16, tzinfo=dt.UTC)
    Center.objects.update(tax_rate=19, prices_include_tax=True)
    draft = make_draft(room=room, start=start)
    PromoCodeFactory(code="TEN", percent=10)
    PromoCodeFactory(code="HALF", percent=50)
    update_promo_code(draft.pk, "TEN", user=draft.user, now=NOW)
    booking = pay(show_price(draft))
    before, sources = build_tables()["code"].rows, measure_sources()
    assert before == [["TEN", 1, Decimal("6.31"), Decimal("67.50")]]
    assert [str(name) for _, name in sources] == ["TEN"]

    taken = None if code else TakenPayment("cash")
    change = {"values": {"promo_code": code}, "taken": taken}
    reschedule(booking, AdministratorFactory(), start=start, now=start + 23 * HOUR, **change)

    assert build_tables()["code"].rows == before
    assert measure_sources() == sources
    april = LocalDays(dt.date(2027, 4, 1), dt.date(2027, 4, 30))
    [row] = build_tables(april)["code"].rows
    # What another code takes off in addition counts for the first one, too.
    assert row[0::2] == ["TEN", Decimal("25.21") if code else Decimal("-6.31")]


def measure_sources():
    return revenue.measure_revenue(ReportSelection(MARCH)).by("kind", "source")


YEAR = LocalDays(dt.date(2027, 1, 1), dt.date(2027, 12, 31))


def post_line(
    *,
    day=dt.date(2027, 3, 2),
    meeting_day=None,
    reservation=None,
    center=None,
    kind=EventKind.BOOKED,
    currency="USD",
    is_test=True,
    bookings=0,
    cause="",
    **amounts,
):
    """A line of the ledger; amounts are decimals, and receivables make it add up."""
    reservation = reservation or ReservationFactory()
    hundredths = {name: int(Decimal(amount) * 100) for name, amount in amounts.items()}
    hundredths["receivables"] = hundredths.get("receivables", 0) - sum(hundredths.values())
    return LedgerLine.objects.create(
        at=NOW,
        kind=kind,
        reservation=reservation,
        center=center or reservation.room.center,
        currency=currency,
        is_test=is_test,
        bookings=bookings,
        cause=cause,
        day=day,
        meeting_day=meeting_day,
        **hundredths,
    )


MEETING_DAY = START.date()


def post_bill(room="-100", tax="-8.81", *, meeting_day=MEETING_DAY, **fields):
    return post_line(room=room, tax_payable=tax, meeting_day=meeting_day, bookings=1, **fields)


def measure(period=MARCH, **chosen):
    return revenue.measure_revenue(ReportSelection(period, **chosen))


def test_revenue_is_income_less_reductions_and_with_tax():
    post_bill()
    post_line(
        meeting_day=START.date(),
        services=-20,
        setup=-5,
        promotions=1,
        included_hours=2,
        adjustments=3,
        waived=4,
        goodwill=5,
        tax_payable=1,
    )
    post_line(meeting_day=START.date(), cancellation=-7)

    assert read(revenue, measure().total) == {
        "Bookings": 1,
        "Rooms": 100,
        "Services": 20,
        "Set-up": 5,
        "Reductions": 15,
        "Cancellation fees": 7,
        "Net of tax": 117,
        "Tax": Decimal("7.81"),
        "Revenue": Decimal("124.81"),
    }


@pytest.mark.parametrize(
    ("day", "meeting_day", "month"),
    [
        (dt.date(2027, 2, 10), dt.date(2027, 3, 10), 3),
        (dt.date(2027, 3, 31), dt.date(2027, 3, 31), 3),
        # What happens after the meeting counts on its own day.
        (dt.date(2027, 4, 1), dt.date(2027, 3, 31), 4),
    ],
)
def test_income_counts_on_the_later_of_meeting_and_event(day, meeting_day, month):
    post_bill(day=day, meeting_day=meeting_day)

    by_month = measure(YEAR).by("month")

    assert [each.month for (each,), sums in by_month.items() if read(revenue, sums)] == [month]
    assert len(by_month) == 12


@pytest.mark.parametrize("fields", [{"currency": "EUR"}, {"is_test": False}])
def test_other_currencies_and_gateways_of_another_kind_are_not_counted(fields):
    post_bill(**fields)
    assert read(revenue, measure().total) == {}


def test_source_is_partner_before_promo_code():
    acme, spring = PartnerFactory(name="Acme"), PromoCodeFactory(code="SPRING")
    for amount, fields in (
        (-1, {}),
        (-2, {"promo_code": spring}),
        (-4, {"partner": acme}),
        (-8, {"partner": acme, "promo_code": spring}),
    ):
        post_bill(amount, 0, reservation=ReservationFactory(**fields))

    by_source = measure().by("kind", "source")

    assert {
        (kind, str(name)): read(revenue, sums)["Revenue"]
        for (kind, name), sums in by_source.items()
    } == {
        ("Direct", ""): 1,
        ("Promo code", "SPRING"): 2,
        ("Partner", "Acme"): 12,
    }
