"""The price of a room for a time, from its rate (B12.2): the cheapest tiers of each local day.

This module is pure: it works on unsaved rows and on any object with the attributes of a rate.
"""

import calendar
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum
from math import ceil
from typing import NamedTuple, Protocol

from centers import price_lists
from centers.price_lists import PriceListLike
from centers.span import Span, get_local_midnight
from roombook.errors import RateNotConfigured
from roombook.money import ZERO, format_amount, round_amount

QUARTER_HOUR = timedelta(minutes=15)
HOUR = timedelta(hours=1)
HALF_DAY_HOURS = 4
# English writes them with a capital letter also within a line.
DAYS_AND_MONTHS = (*calendar.day_name, *calendar.month_name[1:])


class Tier(StrEnum):
    """What a price is for. The values are what people read after the slash."""

    HOURLY = "hour"
    HALF_DAY = "half day"
    FULL_DAY = "day"
    FLAT = "flat"


TIER_ORDER = {tier: position for position, tier in enumerate(Tier)}

# The columns that give a rate its price, by `is_flat_rate`. A rate whose columns are all empty
# cannot be booked.
PRICE_FIELDS = {
    False: {"hourly": Tier.HOURLY, "half_day": Tier.HALF_DAY, "full_day": Tier.FULL_DAY},
    True: {"flat_rate": Tier.FLAT},
}


class TimedPrices(Protocol):
    """Tiers by time, of a rate or of a special price list. None is a tier that is not offered."""

    @property
    def hourly(self) -> Decimal | None: ...
    @property
    def half_day(self) -> Decimal | None: ...
    @property
    def full_day(self) -> Decimal | None: ...


class RateLike(TimedPrices, Protocol):
    """The standard prices of a rate, and its special price lists, which a flat rate has not."""

    @property
    def is_flat_rate(self) -> bool: ...
    @property
    def flat_rate(self) -> Decimal | None: ...
    @property
    def special_prices(self) -> Sequence[PriceListLike]: ...
    @property
    def setup_fee(self) -> Decimal | None: ...
    @property
    def bill_in_blocks(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class TierPrice:
    """The price of one tier."""

    amount: Decimal
    tier: Tier

    def __str__(self) -> str:
        """For people: `$25.00/hour`, `$90.00/half day`, `$160.00/day`, `$50.00 flat`."""
        separator = " " if self.tier is Tier.FLAT else "/"
        return f"{format_amount(self.amount)}{separator}{self.tier}"


@dataclass(frozen=True, slots=True)
class TierCombination:
    """Full days, half days and hours that together cover a time, and their exact price."""

    full_days: int
    half_days: int
    hours: Decimal
    total: Decimal

    def __str__(self) -> str:
        """For people: `half day + 1 hour`."""
        parts = []
        if self.full_days:
            parts.append("day" if self.full_days == 1 else f"{self.full_days} days")
        if self.half_days:
            parts.append("half day" if self.half_days == 1 else f"{self.half_days} half days")
        if self.hours:
            parts.append(format_hours(self.hours))
        return " + ".join(parts)

    def __add__(self, other: "TierCombination") -> "TierCombination":
        return TierCombination(
            self.full_days + other.full_days,
            self.half_days + other.half_days,
            self.hours + other.hours,
            self.total + other.total,
        )


@dataclass(frozen=True, slots=True)
class PartPrice:
    """The hours of a local day under one price list: the cheapest combination, and the others.

    The name of the list is empty for the standard prices of the rate.
    """

    name: str
    prices: TimedPrices
    billable_hours: Decimal
    cheapest: TierCombination
    others: tuple[TierCombination, ...]

    @property
    def explanation(self) -> str:
        """Why it costs that: `Evening: half day + 1 hour at $115.00; 5 hours would be $125.00`."""
        name = f"{self.name}: " if self.name else ""
        text = f"{name}{self.cheapest} at {format_amount(self.cheapest.total)}"
        others = ", ".join(
            f"{other} would be {format_amount(other.total)}" for other in self.others
        )
        return f"{text}; {others}" if others else text


@dataclass(frozen=True, slots=True)
class DayPrice:
    """One local day of a booking, by price lists."""

    day: date
    parts: tuple[PartPrice, ...]

    @property
    def billable_hours(self) -> Decimal:
        return sum((part.billable_hours for part in self.parts), ZERO)

    @property
    def explanation(self) -> str:
        return ". ".join(part.explanation for part in self.parts)


@dataclass(frozen=True, slots=True)
class RoomPrice:
    """What a room costs for a span, before set-up fee, discounts and tax, and why."""

    total: Decimal
    elapsed_hours: Decimal
    billable_hours: Decimal
    days: tuple[DayPrice, ...]
    rate_text: str

    @property
    def is_flat(self) -> bool:
        return not self.days

    @property
    def explanation(self) -> str:
        """Hours and tiers: `5 hours: half day + 1 hour`, `3 hours`,
        `26 hours over 2 days: day + 2 hours`, `5 hours: 3 hours + evening 2 hours`."""
        text = format_hours(self.elapsed_hours)
        if self.is_flat:
            return f"{text}: flat rate"
        if self.billable_hours != self.elapsed_hours:
            text += f" (billed as {format_quantity(self.billable_hours)})"
        if len(self.days) > 1:
            text += f" over {len(self.days)} days"
        parts = sum_by_list(self.days)
        if not any(parts) and parts[""].hours == self.billable_hours:
            return text
        return f"{text}: {' + '.join(_describe_part(*part) for part in parts.items())}"


# --- The prices of a rate ------------------------------------------------------------------------


def get_tier_prices(rate: RateLike) -> list[TierPrice]:
    """The standard prices that the rate has, shortest tier first."""
    if not rate.is_flat_rate:
        return get_timed_prices(rate)
    return [] if rate.flat_rate is None else [TierPrice(rate.flat_rate, Tier.FLAT)]


def get_timed_prices(prices: TimedPrices) -> list[TierPrice]:
    """The prices by time, shortest tier first."""
    amounts = [(getattr(prices, name), tier) for name, tier in PRICE_FIELDS[False].items()]
    return [TierPrice(amount, tier) for amount, tier in amounts if amount is not None]


def is_usable(rate: RateLike | None) -> bool:
    """Whether the rate has a standard price. A room without one cannot be booked."""
    return rate is not None and bool(get_tier_prices(rate))


def get_entry_price(rate: RateLike | None) -> TierPrice | None:
    """The price that represents the rate: hourly, else half day, full day, flat.

    It is the lowest of the standard prices and the special price lists.
    """
    if rate is None or not is_usable(rate):
        return None
    lists = [get_tier_prices(rate), *map(get_timed_prices, rate.special_prices)]
    return pick_lowest_price(prices[0] for prices in lists)


def format_entry_price(rate: RateLike | None) -> str:
    """The entry price for people (`$25.00/hour`), or an empty text."""
    price = get_entry_price(rate)
    return "" if price is None else str(price)


def pick_lowest_price(prices: Iterable[TierPrice | None]) -> TierPrice | None:
    """The lowest of some entry prices.

    The price of an hour cannot be compared with that of a day. So only prices of the shortest tier
    among them are compared.
    """
    return min(
        filter(None, prices),
        key=lambda price: (TIER_ORDER[price.tier], price.amount),
        default=None,
    )


def describe_rate(rate: RateLike) -> str:
    """The standard prices: `$25.00/hour, $90.00/half day, $160.00/day; set-up $20.00`."""
    text = ", ".join(map(str, get_tier_prices(rate)))
    if rate.setup_fee:
        text = "; ".join(filter(None, (text, f"set-up {format_amount(rate.setup_fee)}")))
    return text


def describe_for_customers(rate: RateLike) -> str:
    """All prices, or with special price lists the lowest one: `from $25.00/hour`."""
    return f"from {format_entry_price(rate)}" if rate.special_prices else describe_rate(rate)


# --- The price of a booking ----------------------------------------------------------------------


def price_room(rate: RateLike | None, span: Span, tz: tzinfo) -> RoomPrice:
    """Price a room for a span: a flat rate once; otherwise each local day, and their sum.

    Raises RateNotConfigured if the rate has no price.
    """
    if rate is None or not is_usable(rate):
        raise RateNotConfigured
    elapsed = Decimal(span.duration // timedelta(seconds=1)) / 3600
    if rate.is_flat_rate:
        assert rate.flat_rate is not None  # is_usable checked it
        parts = [part.duration for _, part in span.split_by_local_day(tz)]
        billable = sum(
            (get_billable_hours(each, in_blocks=rate.bill_in_blocks) for each in parts), ZERO
        )
        text = format_entry_price(rate)
        return RoomPrice(round_amount(rate.flat_rate), elapsed, billable, (), text)
    days = tuple(price_day(rate, day, part, tz) for day, part in span.split_by_local_day(tz))
    billable = sum((day.billable_hours for day in days), ZERO)
    total = sum_combinations(part.cheapest for day in days for part in day.parts).total
    return RoomPrice(round_amount(total), elapsed, billable, days, _describe_tiers(days))


def price_day(rate: RateLike, day: date, part: Span, tz: tzinfo) -> DayPrice:
    """Price a part of a local day: the time under each special list, and the rest.

    The hours of a list on a day are rounded and priced together, whether or not they follow one
    another. Raises RateNotConfigured.
    """
    durations: dict[str, timedelta] = {"": timedelta()}
    prices: dict[str, TimedPrices] = {"": rate}
    for span, special in price_lists.split(rate.special_prices, day, part, tz):
        name = special.name if special else ""
        prices.setdefault(name, special or rate)
        durations[name] = durations.get(name, timedelta()) + span.duration
    parts = []
    for name, duration in durations.items():
        if duration:
            hours = get_billable_hours(duration, in_blocks=rate.bill_in_blocks)
            cheapest, *others = list_combinations(hours, prices[name])
            parts.append(PartPrice(name, prices[name], hours, cheapest, tuple(others)))
    return DayPrice(day, tuple(parts))


class ListedPrice(NamedTuple):
    """The prices that hold from one local time to another. None is a price that is not offered."""

    name: str
    start: datetime
    end: datetime
    hourly: Decimal | None = None
    half_day: Decimal | None = None
    full_day: Decimal | None = None
    flat_rate: Decimal | None = None


class ListedDay(NamedTuple):
    date: str
    prices: list[ListedPrice]


def list_prices(rate: RateLike | None, period: Span, tz: tzinfo) -> Iterator[ListedDay]:
    """Yield the prices of each local day that the period touches, from midnight to midnight.

    Raises RateNotConfigured if the rate has no price.
    """
    if rate is None or not is_usable(rate):
        raise RateNotConfigured
    for day, _ in period.split_by_local_day(tz):
        midnights = (get_local_midnight(at, tz) for at in (day, day + timedelta(days=1)))
        parts = [
            _list_part(rate, special, part.start.astimezone(tz), part.end.astimezone(tz))
            for part, special in price_lists.split(rate.special_prices, day, Span(*midnights), tz)
        ]
        yield ListedDay(day.isoformat(), parts)


def _list_part(
    rate: RateLike, special: PriceListLike | None, start: datetime, end: datetime
) -> ListedPrice:
    if rate.is_flat_rate:
        return ListedPrice("", start, end, flat_rate=rate.flat_rate)
    name, prices = (special.name, special) if special else ("", rate)
    return ListedPrice(name, start, end, prices.hourly, prices.half_day, prices.full_day)


def list_combinations(hours: Decimal, prices: TimedPrices) -> list[TierCombination]:
    """The combinations that can be the cheapest for the hours of one day, cheapest first.

    Of two at the same price, the one with the longer tier comes first. Between no half day and as
    many as fit, each further half day changes the price by the same amount. So one of these two
    ends is the cheapest, and what lies between them need not be compared.
    """
    found = []
    if prices.full_day is not None:
        found.append(TierCombination(1, 0, ZERO, prices.full_day))
    if prices.half_day is not None:
        count = ceil(hours / HALF_DAY_HOURS)
        found.append(TierCombination(0, count, ZERO, count * prices.half_day))
    if prices.half_day is not None and prices.hourly is not None:
        fitting, rest = divmod(hours, HALF_DAY_HOURS)
        if fitting and rest:
            total = fitting * prices.half_day + rest * prices.hourly
            found.append(TierCombination(0, int(fitting), rest, total))
    if prices.hourly is not None:
        found.append(TierCombination(0, 0, hours, hours * prices.hourly))
    if not found:
        raise RateNotConfigured
    return sorted(found, key=lambda combination: combination.total)


def get_billable_hours(duration: timedelta, *, in_blocks: bool) -> Decimal:
    """The hours that are billed: each started quarter hour, or in blocks each started hour."""
    step = HOUR if in_blocks else QUARTER_HOUR
    steps = -(-duration // step)
    return Decimal(steps) if in_blocks else Decimal(steps) / 4


def sum_combinations(combinations: Iterable[TierCombination]) -> TierCombination:
    return sum(combinations, TierCombination(0, 0, ZERO, ZERO))


def sum_by_list(days: Iterable[DayPrice]) -> dict[str, TierCombination]:
    """The combinations of several days by the name of their list, the standard prices first."""
    sums: dict[str, TierCombination] = {}
    for part in sorted(
        (part for day in days for part in day.parts), key=lambda part: part.name != ""
    ):
        sums[part.name] = sum_combinations(filter(None, [sums.get(part.name), part.cheapest]))
    return sums


# --- Text ----------------------------------------------------------------------------------------


def format_quantity(number: Decimal) -> str:
    """A number without trailing zeros: `5`, `4.5`, `0.25`."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return text or "0"


def format_hours(hours: Decimal) -> str:
    return f"{format_quantity(hours)} {'hour' if hours == 1 else 'hours'}"


def _name_list(name: str) -> str:
    """The name of a list before its prices or hours: `evening `; empty for standard prices."""
    if not name:
        return ""
    is_plain_word = name[1:].islower() and not name.startswith(DAYS_AND_MONTHS)
    return f"{name[0].lower() if is_plain_word else name[0]}{name[1:]} "


def _describe_part(name: str, combination: TierCombination) -> str:
    """The hours under a list: `evening 2 hours`, `evening (half day + 1 hour)`."""
    has_several = name and " + " in (text := str(combination))
    return f"{_name_list(name)}({text})" if has_several else f"{_name_list(name)}{combination}"


def _describe_tiers(days: Iterable[DayPrice]) -> str:
    """The prices that the days use: `$90.00/half day + $25.00/hour + evening $30.00/hour`."""
    days = list(days)
    prices = {part.name: part.prices for day in days for part in day.parts}
    texts = []
    for name, combination in sum_by_list(days).items():
        counts = {
            Tier.FULL_DAY: combination.full_days,
            Tier.HALF_DAY: combination.half_days,
            Tier.HOURLY: combination.hours,
        }
        by_tier = {price.tier: price for price in get_timed_prices(prices[name])}
        texts += [f"{_name_list(name)}{by_tier[tier]}" for tier, count in counts.items() if count]
    return " + ".join(texts)
