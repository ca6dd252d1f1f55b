"""Invariants of prices, for generated bookings."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from centers.span import Span
from reservations.models import PriceAdjustment
from reservations.pricing import quote as pricing
from reservations.pricing.quote import ServiceSelection
from tests.reservations.pricing_helpers import (
    ALLOWANCE,
    NINE,
    PROMOTION,
    ROOM,
    amount_off,
    flat,
    offer,
    percent,
    rate,
    room,
    service,
)

amounts = st.decimals(0, 500, places=2)
maybe = st.none() | amounts
spans = st.builds(
    lambda start, quarters: Span(
        NINE + timedelta(minutes=15 * start), NINE + timedelta(minutes=15 * (start + quarters))
    ),
    st.integers(-200, 200),
    st.integers(1, 400),
)
rates_ = st.builds(rate, amounts, maybe, maybe, maybe, blocks=st.booleans()) | st.builds(
    flat, amounts, maybe
)
extras = st.lists(
    st.builds(
        ServiceSelection,
        st.builds(
            service,
            st.builds(flat, amounts, maybe) | st.builds(rate, amounts),
            needs_duration=st.booleans(),
            needs_quantity=st.booleans(),
            bill_at_center=st.booleans(),
            minimum_booking=st.integers(0, 5),
        ),
        st.none() | st.decimals(0, 48, places=2),
        st.none() | st.integers(1, 50),
    ),
    max_size=3,
)
offers = st.lists(st.builds(offer, st.integers(0, 30)), max_size=4)
promos = (
    st.none()
    | st.builds(percent, st.decimals("0.01", 100, places=2))
    | st.builds(amount_off, st.decimals("0.01", 500, places=2))
)
adjustments = st.lists(
    st.builds(PriceAdjustment, amount=st.decimals(-500, 500, places=2), reason=st.just("so")),
    max_size=3,
)
taxes = st.decimals(0, 100, places=3)


@given(rates_, spans, extras, offers, promos, adjustments, taxes)
def test_lines_add_up_in_cents_and_are_never_below_zero(
    some_rate, span, wanted, some_offers, promo, changes, tax
):
    quote = pricing.calculate_quote(
        room(some_rate, tax),
        span,
        services=wanted,
        allowances=some_offers,
        promo_code=promo,
        adjustments=changes,
    )

    assert quote.total == sum(line.total for line in quote.lines)
    running = Decimal(0)
    for line in quote.lines:
        assert line.total == round(line.total, 2)
        running += line.total
        assert running >= 0
    assert quote.lines[0].type == ROOM
    discounts = {ALLOWANCE, PROMOTION}
    assert all(line.total < 0 for line in quote.lines if line.type in discounts)


@given(rates_, spans, offers)
def test_allowances_never_exceed_the_room_line_or_its_hours(some_rate, span, some_offers):
    quote = pricing.calculate_quote(room(some_rate), span, allowances=some_offers)

    used = quote.applied_allowances
    assert sum(each.hours for each in used) <= int(quote.room.billable_hours)
    assert sum(each.discount for each in used) <= quote.room.total
    assert all(
        0 <= each.hours <= given_.hours_left and each.discount >= 0
        for each, given_ in zip(used, some_offers, strict=True)
    )
    taken_off = -sum(line.total for line in quote.lines if line.type == ALLOWANCE)
    assert taken_off == sum(each.discount for each in used)


@given(rates_, st.integers(0, 95), st.integers(1, 95), taxes)
def test_longer_booking_within_a_day_never_costs_less(some_rate, start, quarters, tax):
    midnight = datetime(2027, 3, 3, 7, tzinfo=UTC)
    start = midnight + timedelta(minutes=15 * start)
    end = min(start + timedelta(minutes=15 * quarters), midnight + timedelta(hours=24))
    shorter = Span(start, max(end - timedelta(minutes=15), start + timedelta(minutes=5)))

    total = pricing.calculate_quote(room(some_rate, tax), Span(start, end)).total
    assert pricing.calculate_quote(room(some_rate, tax), shorter).total <= total


@given(rates_, spans, extras, taxes, promos)
def test_larger_discount_never_costs_more(some_rate, span, wanted, tax, promo):
    def total(**discounts):
        return pricing.calculate_quote(
            room(some_rate, tax), span, services=wanted, **discounts
        ).total

    assert total(promo_code=promo) <= total()
    assert total(allowances=[offer(3)]) <= total()


def test_bill_without_minor_units_has_whole_amounts(settings):
    """A gateway refuses to charge half a yen. Rates and codes can have two decimal places."""
    settings.CURRENCY = "JPY"
    bill = pricing.calculate_quote(
        room(rate(25, setup_fee="10.50"), tax=10),
        Span(NINE, NINE + timedelta(hours=1)),
        services=[ServiceSelection(service(flat(20, setup_fee="5.40")))],
        promo_code=amount_off("7.70"),
    )

    assert [line.total for line in bill.lines] == [25, 11, 20, 5, -8, 5]
