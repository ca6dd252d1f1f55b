"""The revenue report: its amounts, and that they add up by month, center and source."""

import datetime as dt
from decimal import Decimal

import pytest

from accounts.act import Act
from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.admin.reports import revenue, selection
from reservations.admin.reports.periods import ReportPeriod
from reservations.admin.reports.revenue import DIRECT, RevenueSource, RevenueSums
from reservations.admin.reports.selection import ReportSelection, ReportTooLarge
from reservations.booking import cancellation
from reservations.models import LineItem, LineItemType, Reservation
from reservations.models.status import Status
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    NOW,
    START,
    PartnerFactory,
    PaymentFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)

pytestmark = pytest.mark.django_db

MARCH = ReportPeriod(dt.date(2027, 3, 1), dt.date(2027, 3, 31))
YEAR = ReportPeriod(dt.date(2027, 1, 1), dt.date(2027, 12, 31))


def earned(total="108.81", tax="8.81", *, status=Status.COMPLETED, **fields):
    """A reservation with a bill of 100 plus tax."""
    row = ReservationFactory(status=status, total_cost=Decimal(total), booked_at=NOW, **fields)
    for position, (kind, part) in enumerate(
        [(LineItemType.ROOM, Decimal(total) - Decimal(tax)), (LineItemType.TAX, Decimal(tax))]
    ):
        LineItem.objects.create(
            reservation=row, position=position, type=kind, total=part, description=kind, amount=part
        )
    return row


def paid(row, amount=None, *, state=PaymentState.CAPTURED):
    return PaymentFactory(reservation=row, amount=amount or row.total_cost, state=state)


def given_back(payment, amount, state=RefundState.DONE):
    return Refund.objects.create(
        payment=payment, amount=Decimal(amount), state=state, created_at=NOW, done_at=NOW
    )


def of(period=MARCH, **also):
    breakdown, _ = revenue.measure_revenue(ReportSelection(period, **also))
    return breakdown


def of_sources(period=MARCH):
    _, by_source = revenue.measure_revenue(ReportSelection(period))
    return by_source


def takings(**amounts):
    return RevenueSums(
        **{name: value if name == "bookings" else Decimal(value) for name, value in amounts.items()}
    )


def test_revenue_of_booking_is_its_bill():
    earned()

    found = of().total

    assert found == takings(bookings=1, billed="108.81", tax="8.81")
    assert (found.revenue, found.net) == (Decimal("108.81"), Decimal("100.00"))


@pytest.mark.parametrize("status", [Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW])
def test_revenue_statuses_count_as_revenue(status):
    earned(status=status)

    assert of().total.revenue == Decimal("108.81")


@pytest.mark.parametrize(
    "status",
    [*(Status.PROCESSING, Status.PENDING, Status.DECLINED), Status.EXPIRED, Status.CANCELLED],
)
def test_revenue_other_statuses_are_not_counted(status):
    paid(earned(status=status), state=PaymentState.AUTHORIZED)

    assert of().total == RevenueSums()


def test_revenue_month_is_local_month_of_start():
    """31 March 23:30 in Denver is 1 April in UTC and in Auckland."""
    late = dt.datetime(2027, 4, 1, 5, 30, tzinfo=dt.UTC)
    earned("10.00", "0.00", room=make_room(), start=late)
    earned("1.00", "0.00", room=make_room(time_zone_id="Pacific/Auckland"), start=late)

    found = of(ReportPeriod(dt.date(2027, 3, 1), dt.date(2027, 4, 30)))

    by_month = {month.month: each.billed for month, each in found.by_month.items()}
    assert by_month == {3: Decimal("10.00"), 4: Decimal("1.00")}
    assert of(MARCH).total.billed == Decimal("10.00")


def test_revenue_lists_months_without_bookings():
    assert list(of(YEAR).by_month.values()) == [RevenueSums()] * 12


def test_refund_reduces_tax_proportionally():
    row = earned()
    given_back(paid(row), "54.41")

    found = of().total

    # 8.81 * 54.41 / 108.81 = 4.4054...
    assert found == takings(bookings=1, billed="108.81", refunded="54.41", tax="4.40")


@pytest.mark.parametrize(
    ("state", "refunded"),
    [
        (RefundState.DONE, "20.00"),
        (RefundState.OUTSIDE, "20.00"),
        (RefundState.STARTED, "20.00"),
        (RefundState.REFUSED, "0.00"),
    ],
)
def test_refund_refused_by_gateway_is_not_counted(state, refunded):
    given_back(paid(earned()), "20.00", state)

    assert of().total.refunded == Decimal(refunded)


def test_refund_of_price_reduction_is_counted():
    """150 was paid, 41.19 was refunded for a cheaper room, and 10 more later."""
    payment = paid(earned(reduced_by=Decimal("41.19")), Decimal("150.00"))
    given_back(payment, "41.19")
    found = of().total
    assert found == takings(bookings=1, billed="150.00", refunded="41.19", tax="8.81")
    assert found.revenue == Decimal("108.81")

    given_back(payment, "10.00")
    assert of().total.refunded == Decimal("51.19")
    assert of().total.revenue == Decimal("98.81")


def test_refund_of_cancelled_reservation_is_counted():
    payment = paid(earned("13.60", "0.00", status=Status.CANCELLED))
    given_back(payment, "13.60")
    Payment.objects.update(state=PaymentState.REFUNDED)

    found = of().total

    assert found == takings(billed="13.60", refunded="13.60")
    assert found.revenue == 0


def test_price_reduction_refused_by_gateway_is_counted_as_owed():
    payment = paid(earned(reduced_by=Decimal("41.19")), Decimal("150.00"))
    given_back(payment, "41.19", RefundState.REFUSED)

    assert of().total.revenue == Decimal("108.81")


def test_fee_is_limited_to_reduced_price():
    row = earned(status=Status.CANCELLED, reduced_by=Decimal("41.19"), refund_promised=Decimal(0))
    given_back(paid(row, Decimal("150.00")), "41.19", RefundState.REFUSED)

    assert of().total == takings(billed="150.00", refunded="41.19", fees="108.81", tax="8.81")


def test_fee_is_captured_amount_less_refunds():
    paid(earned(status=Status.CANCELLED))
    half = earned(status=Status.CANCELLED)
    given_back(paid(half), "54.41")
    whole = earned(status=Status.CANCELLED)
    given_back(paid(whole), "108.81")

    found = of().total

    # Taxes: all of it, 8.81 * 54.40 / 108.81, and none.
    assert found == takings(billed="326.43", refunded="163.22", fees="163.21", tax="13.21")
    assert found.revenue == found.fees


def test_fee_excludes_promised_refund():
    row = earned(status=Status.CANCELLED, refund_promised=Decimal("108.81"))
    given_back(paid(row), "108.81", RefundState.REFUSED)

    assert of().total == takings(billed="108.81", refunded="108.81")


def test_revenue_other_currency_is_not_counted():
    earned(currency="EUR")

    assert of().total == RevenueSums()


def test_revenue_source_is_partner_before_promo_code():
    acme, spring = PartnerFactory(name="Acme"), PromoCodeFactory(code="SPRING")
    earned("1.00", "0.00")
    earned("2.00", "0.00", promo_code=spring)
    earned("4.00", "0.00", partner=acme)
    earned("8.00", "0.00", partner=acme, promo_code=spring)

    found = of_sources()

    assert {source: each.billed for source, each in found.items()} == {
        DIRECT: Decimal("1.00"),
        RevenueSource("Promo code", "SPRING", spring.pk): Decimal("2.00"),
        RevenueSource("Partner", "Acme", acme.pk): Decimal("12.00"),
    }


def test_revenue_is_limited_to_selection():
    here, there = make_room(), make_room()
    earned("1.00", "0.00", room=here)
    earned("2.00", "0.00", room=there)

    assert of(centers=frozenset({here.center_id})).total.billed == 1
    assert of(room_types=frozenset({there.resource_type_id})).total.billed == 2
    assert of(centers=frozenset()).total == RevenueSums()


def test_revenue_by_center_month_and_source_adds_up():
    """Also with many odd amounts, to the cent."""
    rooms = [
        make_room(),
        make_room(time_zone_id="Asia/Tokyo"),
        make_room(time_zone_id="Europe/London"),
    ]
    sources = [{}, {"partner": PartnerFactory()}, {"promo_code": PromoCodeFactory()}]
    for number in range(30):
        row = earned(
            f"{number}.{number + 11}",
            f"0.{number + 11}",
            room=rooms[number % 3],
            start=START + dt.timedelta(days=9 * number, hours=number),
            status=[Status.CONFIRMED, Status.COMPLETED, Status.CANCELLED][number % 7 % 3],
            **sources[number % 5 % 3],
        )
        payment = paid(row)
        if number % 4 == 0:
            given_back(payment, row.total_cost / 3)

    found = of(YEAR)

    assert found.total.refunded
    assert found.total.fees
    for parts in (found.by_center, found.by_month, of_sources(YEAR)):
        assert len(parts) > 2
        assert sum(parts.values(), RevenueSums()) == found.total
    assert found.total.net + found.total.tax == found.total.revenue
    assert revenue.sum_revenue(ReportSelection(YEAR)) == found.total
    months = [ReportPeriod.from_month(month) for month in YEAR.months()]
    assert (
        sum((revenue.sum_revenue(ReportSelection(month)) for month in months), RevenueSums())
        == found.total
    )


def test_revenue_matches_real_payments():
    """With reservations made by the domain: bookings, a request, cancellations, a draft."""
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

    found = of().total

    assert found.bookings == 1
    assert found.revenue == kept.total_cost + late.total_cost
    assert found.fees == late.total_cost
    taxes = LineItem.objects.filter(type="Tax", reservation__in=[kept, late])
    assert found.tax == sum(each.total for each in taxes) > 0


def test_revenue_too_many_groups_are_refused(monkeypatch):
    earned()
    monkeypatch.setattr(selection, "MAX_GROUPS", 0)

    with pytest.raises(ReportTooLarge, match="Choose fewer days"):
        of()


@pytest.mark.parametrize("state", [PaymentState.AUTHORIZED, PaymentState.CAPTURED])
def test_refund_of_earlier_payment_does_not_reduce_the_booking(state):
    """The first payment was captured and refunded at the gateway, and the second one booked."""
    row = earned()
    given_back(paid(row, state=PaymentState.REFUNDED), row.total_cost)
    payment = paid(row, state=state)
    assert of().total == takings(bookings=1, billed="108.81", tax="8.81")

    given_back(payment, "8.81")
    assert of().total.revenue == 100


def test_fee_after_refund_of_earlier_payment_is_that_of_the_last_payment():
    row = earned(status=Status.CANCELLED, refund_promised=Decimal("8.81"))
    given_back(paid(row, state=PaymentState.REFUNDED), row.total_cost)
    given_back(paid(row), "8.81", RefundState.REFUSED)

    assert of().total == takings(billed="108.81", refunded="8.81", fees="100.00", tax="8.10")


@pytest.mark.parametrize("status", [Status.CONFIRMED, Status.CANCELLED])
def test_refunds_in_cash_and_in_the_dashboard_count_in_full(status):
    """Staff returned 8.81 in cash and all of it in the dashboard, so 8.81 is lost."""
    payment = paid(earned(status=status))
    given_back(payment, "8.81", RefundState.OUTSIDE)
    given_back(payment, "108.81")

    found = of().total

    assert (found.revenue, found.refunded, found.tax) == (Decimal("-8.81"), Decimal("117.62"), 0)


@pytest.mark.parametrize("status", [Status.CONFIRMED, Status.CANCELLED])
def test_due_refund_that_the_gateway_cannot_make_counts_up_to_the_bill(status):
    """It was due when all of the payment was refunded in the dashboard: it will be refused."""
    payment = paid(earned(status=status))
    given_back(payment, "8.81", RefundState.STARTED)
    given_back(payment, "108.81")

    assert of().total.revenue == 0


def test_money_of_a_cancelled_draft_is_no_fee():
    """The bank returned the refund of an attempt to pay for it, and the customer is owed it."""
    row = earned(status=Status.CANCELLED)
    Reservation.objects.update(booked_at=None)
    given_back(paid(row, state=PaymentState.REFUNDED), row.total_cost, RefundState.REFUSED)

    assert of().total == RevenueSums()
