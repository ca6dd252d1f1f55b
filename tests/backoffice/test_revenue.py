"""The revenue report adds up the ledger by month, center and source."""

import datetime as dt
from decimal import Decimal

import pytest

from accounts.act import Act
from payments.ledger.accounts import EventKind
from payments.models import LedgerLine
from reservations.booking import cancellation
from reservations.local_days import LocalDays
from reservations.models import LineItem
from reservations.reports import revenue
from reservations.reports.ledger import select_recognized, sum_accounts
from reservations.reports.selection import ReportSelection
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    NOW,
    START,
    PartnerFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)

pytestmark = pytest.mark.django_db

MARCH = LocalDays(dt.date(2027, 3, 1), dt.date(2027, 3, 31))
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
        day=day,
        meeting_day=meeting_day,
        **hundredths,
    )


MEETING_DAY = START.date()


def post_bill(room="-100", tax="-8.81", *, meeting_day=MEETING_DAY, **fields):
    return post_line(room=room, tax_payable=tax, meeting_day=meeting_day, bookings=1, **fields)


def measure(period=MARCH, **chosen):
    return revenue.measure_revenue(ReportSelection(period, **chosen))


def read(sums):
    """The figures by the names of their columns, without those that are 0."""
    return {each.name: each.read(sums) for each in revenue.MEASURES if each.read(sums)}


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

    assert read(measure().total) == {
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

    assert [each.month for (each,), sums in by_month.items() if read(sums)] == [month]
    assert len(by_month) == 12


@pytest.mark.parametrize("fields", [{"currency": "EUR"}, {"is_test": False}])
def test_other_currencies_and_gateways_of_another_kind_are_not_counted(fields):
    post_bill(**fields)
    assert read(measure().total) == {}


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
        (kind, str(name)): read(sums)["Revenue"] for (kind, name), sums in by_source.items()
    } == {
        ("Direct", ""): 1,
        ("Promo code", "SPRING"): 2,
        ("Partner", "Acme"): 12,
    }


def test_revenue_is_limited_to_selection():
    here, there = make_room(), make_room()
    post_bill(-1, 0, reservation=ReservationFactory(room=here))
    post_bill(-2, 0, reservation=ReservationFactory(room=there))

    assert read(measure(centers=frozenset({here.center_id})).total)["Revenue"] == 1
    assert read(measure(room_types=frozenset({there.resource_type_id})).total)["Revenue"] == 2
    assert read(measure(centers=frozenset()).total) == {}


def test_revenue_by_center_month_and_source_adds_up():
    sources = [{}, {"partner": PartnerFactory()}, {"promo_code": PromoCodeFactory()}]
    for number in range(30):
        post_bill(
            f"-{number}.{number + 11}",
            f"-0.{number + 11}",
            day=START.date() + dt.timedelta(days=number % 5),
            meeting_day=START.date() + dt.timedelta(days=9 * number),
            reservation=ReservationFactory(**sources[number % 5 % 3]),
        )

    found = measure(YEAR)

    for keys in (["center"], ["month"], ["kind", "source"]):
        parts = found.by(*keys)
        assert len(parts) > 2
        assert sum(map(revenue.REVENUE.read, parts.values())) == read(found.total)["Revenue"]
    assert read(sum_accounts(select_recognized(ReportSelection(YEAR)))) == read(found.total)


def test_revenue_matches_bookings_made_by_the_domain():
    room, user = make_room(), UserFactory()
    room.center.tax_rate = Decimal("8.81")
    room.center.save()
    day = dt.timedelta(days=1)
    kept = make_booking(user, room)
    cancelled = make_booking(user, room, start=START + day)
    cancellation.cancel(Act(user, NOW), cancelled.pk)
    late = make_booking(user, room, start=START + 2 * day)
    cancellation.cancel(Act(user, START + 2 * day - dt.timedelta(hours=1)), late.pk)
    make_pending_booking(user)
    make_draft(user, room, start=START + 3 * day)

    found = read(measure().total)

    assert found["Bookings"] == 1
    assert found["Revenue"] == kept.total_cost + late.total_cost
    taxes = LineItem.objects.filter(type="Tax", reservation__in=[kept, late])
    assert found["Tax"] == sum(each.total for each in taxes) > 0
    assert found["Cancellation fees"] == late.total_cost - taxes.get(reservation=late).total
