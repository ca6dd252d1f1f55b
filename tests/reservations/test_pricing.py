"""Price calculation, on model instances that are not saved."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centers.models import Center, MeetingRoom, Rate, Service
from centers.span import Span
from reservations.models import Allowance, LineItemType, PriceAdjustment, PromoCode
from reservations.pricing import quote as pricing
from reservations.pricing.allowances import AvailableAllowance
from reservations.pricing.quote import ServiceSelection
from roombook.errors import RateNotConfigured

# 9 in the morning in Denver.
NINE = datetime(2027, 3, 3, 16, tzinfo=UTC)
ROOM, FEE, SERVICE = LineItemType.ROOM, LineItemType.SETUP_FEE, LineItemType.SERVICE
ALLOWANCE, PROMOTION = LineItemType.ALLOWANCE, LineItemType.PROMOTION


def money(value):
    return None if value is None else Decimal(value)


def rate(hourly=None, half_day=None, full_day=None, setup_fee=None, *, blocks=False):
    return Rate(
        hourly=money(hourly),
        half_day=money(half_day),
        full_day=money(full_day),
        setup_fee=money(setup_fee),
        bill_in_blocks=blocks,
    )


def flat(price, setup_fee=None):
    return Rate(is_flat_rate=True, flat_rate=money(price), setup_fee=money(setup_fee))


FULL = rate(25, 90, 160)


def room(some_rate=FULL, tax=0, includes_tax=False):
    center = Center(name="Glenarm", time_zone_id="America/Denver", tax_rate=Decimal(tax))
    center.prices_include_tax = includes_tax
    return MeetingRoom(name="Boardroom", center=center, rate=some_rate)


def service(some_rate, **fields):
    return Service(pk=7, name="Coffee", rate=some_rate, **fields)


def offer(hours_left, pk=1):
    return AvailableAllowance(
        Allowance(pk=pk, description=f"Plan {pk}", hours=hours_left), None, hours_left
    )


def percent(number):
    return PromoCode(code="TEN", percent=Decimal(number))


def amount_off(number):
    return PromoCode(code="OFF", amount=Decimal(number))


ADJUSTMENT, TAX = LineItemType.ADJUSTMENT, LineItemType.TAX
EXTRA = LineItemType.EXTRA


def hours(number, start=NINE):
    return Span(start, start + timedelta(hours=number))


def lines(quote):
    return [(line.type, str(line.total)) for line in quote.lines]


def only_service(some_service, span=None, **selection):
    """Return the line of a service in a quote of a free room."""
    extra = ServiceSelection(some_service, **selection)
    quote = pricing.calculate_quote(room(flat(0)), span or hours(3), services=[extra])
    return quote.lines[1]


# --- Room -----------------------------------------------------------------------------------------


def test_room_without_extras_is_one_line_with_its_rate():
    (line,) = pricing.calculate_quote(room(), hours(5)).lines

    assert line == pricing.QuoteLine(
        type=ROOM,
        description="Boardroom, 5 hours: half day + 1 hour",
        total=Decimal("115.00"),
        rate="$90.00/half day + $25.00/hour",
    )
    assert line.amount == "$115.00"


def test_setup_fee_is_a_separate_line_charged_once():
    two_days = hours(26, start=NINE)
    quote = pricing.calculate_quote(room(rate(25, 90, 160, 20)), two_days)

    assert [line.type for line in quote.lines] == [ROOM, FEE]
    assert quote.lines[1].total == 20
    assert quote.lines[1].description == "Boardroom, set-up"


# --- Services -------------------------------------------------------------------------------------


def by_hour(minimum=None, *, blocks=False, **fields):
    """Ten dollars an hour, for as long as the customer chooses."""
    some_rate = rate(10, blocks=blocks)
    return service(some_rate, needs_duration=True, minimum_booking=minimum, **fields)


def by_piece(minimum=None):
    return service(flat(4), needs_quantity=True, minimum_booking=minimum)


@pytest.mark.parametrize(
    ("some_service", "hours_chosen", "quantity", "total", "units"),
    [
        (service(flat(15)), None, None, "15.00", ""),
        # The duration defaults to that of the booking.
        (by_hour(), None, None, "30.00", "3 hours"),
        (by_hour(), "1.5", None, "15.00", "1.5 hours"),
        (by_piece(), None, 3, "12.00", "3 pieces"),
        (by_piece(), None, 1, "4.00", "1 piece"),
        (by_hour(needs_quantity=True), "2", 3, "60.00", "2 hours, 3 pieces"),
        (by_piece(minimum=10), None, 3, "40.00", "10 pieces (the minimum; 3 selected)"),
        (by_piece(minimum=10), None, 11, "44.00", "11 pieces"),
        (by_hour(minimum=4), "1.5", None, "40.00", "4 hours (the minimum; 1.5 hours selected)"),
        # The minimum is one of hours if the customer chooses them, and then not of pieces.
        (
            by_hour(minimum=4, needs_quantity=True),
            *("2", 3, "120.00", "4 hours, 3 pieces (the minimum; 2 hours selected)"),
        ),
        # The minimum of hours also applies to the duration of the booking.
        (
            service(rate(10), minimum_booking=4),
            *(None, None, "40.00", "4 hours (the minimum; 3 hours selected)"),
        ),
        # Each started quarter of an hour is billed, at least one.
        (by_hour(), "0.01", None, "2.50", "0.25 hours (for 0.01 hours selected)"),
        (
            by_hour(needs_quantity=True),
            *("1.26", 2, "30.00", "1.5 hours, 2 pieces (for 1.26 hours selected)"),
        ),
        (by_hour(blocks=True), "1.25", None, "20.00", "2 hours (for 1.25 hours selected)"),
        (by_hour(minimum=2), "0.3", None, "20.00", "2 hours (the minimum; 0.3 hours selected)"),
        # A booking that was made shorter later does not pay for more than its own length.
        (by_hour(), "4", None, "30.00", "3 hours"),
        # Half a cent is rounded up, once per line.
        (service(rate("3.33"), needs_duration=True), "0.5", None, "1.67", "0.5 hours"),
    ],
)
def test_service_price_is_multiplied_by_its_units(
    some_service, hours_chosen, quantity, total, units
):
    line = only_service(some_service, duration_hours=money(hours_chosen), quantity=quantity)

    assert (line.type, str(line.total), line.service_id) == (SERVICE, total, 7)
    assert line.description == ", ".join(filter(None, ["Coffee", units]))


def test_service_without_a_duration_is_billed_by_started_quarters_of_the_booking():
    ten_past = Span(NINE, NINE + timedelta(minutes=70))

    for some_service in (service(rate(10)), service(rate(10), needs_duration=True)):
        line = only_service(some_service, ten_past)
        expected = "Coffee, 1.25 hours (for 1.17 hours selected)"
        assert (str(line.total), line.description) == ("12.50", expected)


def test_service_paid_at_the_center_adds_nothing_and_says_so():
    coffee = service(flat(20, setup_fee=5), bill_at_center=True)
    quote = pricing.calculate_quote(room(), hours(1), services=[ServiceSelection(coffee)])

    assert quote.total == 25
    assert quote.lines[1].total == 0
    assert quote.lines[1].amount == "$25.00 at the center"


def test_service_with_price_set_on_site_adds_nothing():
    line = only_service(service(None, bill_at_center=True))
    assert (line.total, line.amount) == (0, "At the center")


@pytest.mark.parametrize("some_rate", [None, rate(), flat(None), rate(half_day=90)])
def test_service_without_a_price_cannot_be_billed(some_rate):
    with pytest.raises(RateNotConfigured, match="Coffee has no price"):
        only_service(service(some_rate))


# --- Allowances -----------------------------------------------------------------------------------


def test_allowance_reduces_room_line_in_proportion_to_hours():
    # 5 hours cost 115: 2 of them are 46, not 2 x 25.
    quote = pricing.calculate_quote(room(), hours(5), allowances=[offer(2)])

    assert lines(quote) == [(ROOM, "115.00"), (ALLOWANCE, "-46.00")]
    line = quote.lines[1]
    assert (line.amount, line.description, line.allowance_id) == ("-$46.00", "Plan 1, 2 hours", 1)
    assert quote.applied_allowances == (pricing.AppliedAllowance(1, 2, Decimal("46.00")),)


def test_allowances_are_used_in_order_up_to_the_booking():
    quote = pricing.calculate_quote(
        room(), hours(5), allowances=[offer(2, 1), offer(10, 2), offer(3, 3)]
    )

    assert [(used.allowance_id, used.hours) for used in quote.applied_allowances] == [
        (1, 2),
        (2, 3),
        (3, 0),
    ]
    assert quote.total == 0
    assert [line.type for line in quote.lines] == [ROOM, ALLOWANCE, ALLOWANCE]


@pytest.mark.parametrize(("length", "used"), [(0.5, 0), (1.75, 1), (2, 2), (2.99, 3)])
def test_allowances_cover_only_whole_billable_hours(length, used):
    quote = pricing.calculate_quote(room(rate(20)), hours(length), allowances=[offer(10)])
    assert quote.applied_allowances[0].hours == used


# --- Promotion, adjustment, tax -------------------------------------------------------------------


def test_promotion_applies_after_allowances_and_before_tax():
    quote = pricing.calculate_quote(
        room(rate(25, 90, 160, 20), tax=10),
        hours(5),
        services=[ServiceSelection(service(flat(15), needs_quantity=True), quantity=3)],
        allowances=[offer(2)],
        promo_code=percent(10),
    )

    assert lines(quote) == [
        (ROOM, "115.00"),
        (FEE, "20.00"),
        (SERVICE, "45.00"),
        (ALLOWANCE, "-46.00"),
        (PROMOTION, "-13.40"),
        (TAX, "12.06"),
    ]
    assert quote.total == Decimal("132.66")
    assert quote.promotion_base == 134
    assert quote.promotion_discount == Decimal("13.40")


@pytest.mark.parametrize(("percent", "shown"), [("8.625", "8.625"), ("100.000", "100")])
def test_tax_line_shows_the_rate_charged(percent, shown):
    quote = pricing.calculate_quote(room(tax=Decimal(percent)), hours(1))
    assert quote.lines[-1].description == f"Tax, {shown}%"


@pytest.mark.parametrize("promo", [percent(100), amount_off("25.00"), amount_off(1000)])
def test_promotion_never_reduces_total_below_zero(promo):
    quote = pricing.calculate_quote(room(tax=10), hours(1), promo_code=promo)
    assert lines(quote) == [(ROOM, "25.00"), (PROMOTION, "-25.00")]
    assert quote.total == 0
    free = pricing.calculate_quote(room(flat(0)), hours(1), promo_code=promo)
    assert lines(free) == [(ROOM, "0.00")]


def test_adjustment_line_shows_reason_and_is_taxed():
    late = PriceAdjustment(amount=Decimal("-5.00"), reason="late key")
    quote = pricing.calculate_quote(room(tax=10), hours(1), adjustments=[late])

    assert lines(quote) == [(ROOM, "25.00"), (ADJUSTMENT, "-5.00"), (TAX, "2.00")]
    assert quote.lines[1].description == "Adjustment: late key"


def test_adjustment_never_reduces_total_below_zero():
    gift = PriceAdjustment(amount=Decimal(-1000), reason="gift")
    more = PriceAdjustment(amount=Decimal(7), reason="key lost")
    assert pricing.calculate_quote(room(), hours(1), adjustments=[gift]).total == 0
    assert pricing.calculate_quote(room(), hours(1), adjustments=[gift, more]).total == 7


@pytest.mark.parametrize(("tax", "total"), [("0", None), ("8.81", "2.20"), ("10", "2.50")])
def test_tax_is_rounded_half_up_and_omitted_without_a_rate(tax, total):
    quote = pricing.calculate_quote(room(tax=tax), hours(1))
    assert lines(quote)[1:] == ([(TAX, total)] if total else [])


def test_prices_that_include_tax_add_none_and_say_what_they_contain():
    quote = pricing.calculate_quote(
        room(rate(100, setup_fee="19.99"), tax=19, includes_tax=True),
        hours(1),
        allowances=[offer(1)],
        adjustments=[PriceAdjustment(amount=Decimal("80.00"), reason="Cleaning")],
    )

    assert lines(quote)[2:] == [(ALLOWANCE, "-100.00"), (EXTRA, "80.00"), (TAX, "0")]
    # 99.99 * 19 / 119 = 15.9648
    line = quote.lines[-1]
    assert (quote.total, line.description, line.amount) == (
        *(Decimal("99.99"), "Includes 19% tax", "$15.96"),
    )
    assert [each.contained_tax for each in quote.lines] == [
        *map(Decimal, ("15.97", "3.19", "-15.97", "12.77", "0")),
    ]
    untaxed = pricing.calculate_quote(room(rate(100), includes_tax=True), hours(1))
    assert lines(untaxed) == [(ROOM, "100.00")]


# --- Invariants of prices, for generated bookings -------------------------------------------------


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


@given(rates_, spans, extras, taxes, promos)
def test_contained_tax_is_rounded_once_and_shared_to_the_cent(some_rate, span, wanted, tax, promo):
    net, gross = (
        pricing.calculate_quote(
            room(some_rate, tax, includes_tax), span, services=wanted, promo_code=promo
        )
        for includes_tax in (False, True)
    )

    assert gross.total == sum(line.total for line in net.lines if line.type != TAX)
    part = Fraction(tax) / (100 + Fraction(tax))
    contained = Fraction(sum(line.contained_tax for line in gross.lines))
    assert abs(contained - Fraction(gross.total) * part) <= Fraction(1, 200)
    for line in gross.lines:
        share = Fraction(line.total) * part
        assert abs(Fraction(line.contained_tax) - share) <= Fraction(1, 100)


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
