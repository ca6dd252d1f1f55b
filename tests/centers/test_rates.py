from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from centers import rates
from centers.models import PriceList
from centers.rates import Tier
from centers.span import Span
from roombook.errors import RateNotConfigured

DENVER = ZoneInfo("America/Denver")
MONDAY = datetime(2027, 3, 1, 9, tzinfo=DENVER)


@dataclass
class Rate:
    hourly: Decimal | None = None
    half_day: Decimal | None = None
    full_day: Decimal | None = None
    flat_rate: Decimal | None = None
    setup_fee: Decimal | None = None
    is_flat_rate: bool = False
    bill_in_blocks: bool = False
    special_prices: tuple[PriceList, ...] = ()


def rate(hourly=None, half_day=None, full_day=None, **fields) -> Rate:
    money = [None if each is None else Decimal(each) for each in (hourly, half_day, full_day)]
    return Rate(*money, **fields)


def priced(some_rate, hours, start=MONDAY):
    start = start.astimezone(UTC)
    return rates.price_room(some_rate, Span(start, start + timedelta(hours=hours)), DENVER)


FULL = rate(25, 90, 160)


@pytest.mark.parametrize(
    ("some_rate", "hours", "total", "explanation"),
    [
        (FULL, 1, "25.00", "1 hour"),
        (FULL, 3, "75.00", "3 hours"),
        (rate("33.33"), 0.5, "16.67", "0.5 hours"),  # 16.665, half-up
        (FULL, 3.75, "90.00", "3.75 hours: half day"),
        (FULL, 4, "90.00", "4 hours: half day"),
        (FULL, 5, "115.00", "5 hours: half day + 1 hour"),
        (FULL, 6.5, "152.50", "6.5 hours: half day + 2.5 hours"),
        (FULL, 7, "160.00", "7 hours: day"),
        (FULL, 12, "160.00", "12 hours: day"),
        (rate(30, 90), 3.75, "90.00", "3.75 hours: half day"),
        (rate(30, 90), 8, "180.00", "8 hours: 2 half days"),
        (rate(25, 150), 4, "100.00", "4 hours"),
        (rate(half_day=90), 1, "90.00", "1 hour: half day"),
        (rate(half_day=90), 4.25, "180.00", "4.25 hours: 2 half days"),
        (rate(full_day=160), 0.5, "160.00", "0.5 hours: day"),
        (rate(half_day=90, full_day=160), 5, "160.00", "5 hours: day"),
        (rate(half_day=90, full_day=200), 5, "180.00", "5 hours: 2 half days"),
    ],
)
def test_day_is_priced_by_its_cheapest_combination(some_rate, hours, total, explanation):
    room = priced(some_rate, hours)
    assert (str(room.total), room.explanation) == (total, explanation)


def test_hours_are_rounded_up_to_quarters():
    assert priced(rate(20), 1.1).total == Decimal("25.00")
    assert priced(rate(20), 1.1).explanation == "1.1 hours (billed as 1.25)"


def test_each_local_day_is_priced_separately():
    """22:00 to 02:00 is two times two hours, not one half day."""
    room = priced(FULL, 4, MONDAY.replace(hour=22))
    assert [(day.day, day.billable_hours) for day in room.days] == [
        (date(2027, 3, 1), 2),
        (date(2027, 3, 2), 2),
    ]
    assert (room.total, room.explanation) == (Decimal("100.00"), "4 hours over 2 days")
    room = priced(FULL, 26, MONDAY.replace(hour=0))
    assert (room.total, room.explanation) == (
        Decimal("210.00"),
        "26 hours over 2 days: day + 2 hours",
    )


def test_days_with_a_clock_change_are_priced_by_elapsed_time():
    spring, autumn = datetime(2027, 3, 14, tzinfo=DENVER), datetime(2027, 11, 7, tzinfo=DENVER)
    for midnight, hours in ((spring, 23), (autumn, 25)):
        start, end = midnight.astimezone(UTC), (midnight + timedelta(days=1)).astimezone(UTC)
        room = rates.price_room(rate(10), Span(start, end), DENVER)
        assert len(room.days) == 1
        assert (room.billable_hours, room.total) == (hours, hours * 10)


def test_flat_rate_is_charged_once():
    flat = Rate(is_flat_rate=True, flat_rate=Decimal(50), hourly=Decimal(1))
    room = priced(flat, 30)
    assert (room.total, room.billable_hours, room.is_flat) == (Decimal("50.00"), 30, True)
    assert (room.explanation, room.rate_text) == ("30 hours: flat rate", "$50.00 flat")


@pytest.mark.parametrize("unusable", [None, rate(), Rate(is_flat_rate=True, hourly=Decimal(5))])
def test_rate_without_a_price_cannot_be_priced(unusable):
    assert not rates.is_usable(unusable)
    assert rates.format_entry_price(unusable) == ""
    with pytest.raises(RateNotConfigured):
        priced(unusable, 1)


def test_price_of_zero_is_free():
    assert priced(rate(0), 5).total == 0
    assert priced(rate(25, 0), 5).explanation == "5 hours: 2 half days"
    assert rates.is_usable(rate(0))


def test_equal_combinations_prefer_the_longer_tier():
    assert str(rates.list_combinations(Decimal(4), rate(25, 100, 100))[0]) == "day"
    assert str(rates.list_combinations(Decimal(4), rate(25, 100))[0]) == "half day"


def test_explanation_lists_the_more_expensive_combinations():
    (day,) = priced(FULL, 5).days
    assert day.explanation == (
        "half day + 1 hour at $115.00; 5 hours would be $125.00, day would be $160.00,"
        " 2 half days would be $180.00"
    )


@pytest.mark.parametrize(
    ("some_rate", "text"),
    [
        (FULL, "$25.00/hour"),
        (rate(half_day=90, full_day=160), "$90.00/half day"),
        (rate(full_day="1160.5"), "$1,160.50/day"),
        (Rate(is_flat_rate=True, flat_rate=Decimal(50)), "$50.00 flat"),
    ],
)
def test_entry_price_is_that_of_the_shortest_tier(some_rate, text):
    assert rates.format_entry_price(some_rate) == text


def test_lowest_entry_price_compares_only_the_shortest_tier():
    def pick_lowest(*some_rates):
        return rates.pick_lowest_price(map(rates.get_entry_price, some_rates))

    flat = Rate(is_flat_rate=True, flat_rate=Decimal(1))
    lowest = pick_lowest(rate(30), None, rate(half_day=5), rate(25, 90), flat)
    assert lowest == rates.TierPrice(Decimal(25), Tier.HOURLY)
    assert pick_lowest(flat, rate(full_day=9)).tier is Tier.FULL_DAY
    assert pick_lowest(None, rate()) is None


def test_describe_rate_lists_all_prices():
    assert rates.describe_rate(rate(25, 90, 160, setup_fee=Decimal(20))) == (
        "$25.00/hour, $90.00/half day, $160.00/day; set-up $20.00"
    )
    assert rates.describe_rate(Rate(is_flat_rate=True, flat_rate=Decimal(50))) == "$50.00 flat"
    assert rates.describe_rate(rate()) == ""
    assert rates.describe_rate(Rate(is_flat_rate=True)) == ""


def test_prices_follow_locale_and_currency(settings):
    settings.LOCALE, settings.CURRENCY = "de_DE", "EUR"
    assert rates.format_entry_price(FULL) == "25,00\xa0€/hour"
    settings.LOCALE, settings.CURRENCY = "ja_JP", "JPY"
    assert rates.format_entry_price(rate("2500")) == "\uffe52,500/hour"
