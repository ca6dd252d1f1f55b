"""The price of a room for a time, from its rate (B12.2): the cheapest tiers of each local day.

This module is pure: it works on unsaved rows and on any object with the attributes of a rate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum
from math import ceil
from typing import Protocol

from centers.span import Span
from roombook.errors import RateNotConfigured
from roombook.money import ZERO, format_amount, round_amount

QUARTER_HOUR = timedelta(minutes=15)
HOUR = timedelta(hours=1)
HALF_DAY_HOURS = 4


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


class RateLike(Protocol):
    """The tiers of a rate. None is a tier that is not offered; 0 is free."""

    @property
    def is_flat_rate(self) -> bool: ...
    @property
    def flat_rate(self) -> Decimal | None: ...
    @property
    def hourly(self) -> Decimal | None: ...
    @property
    def half_day(self) -> Decimal | None: ...
    @property
    def full_day(self) -> Decimal | None: ...
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
class DayPrice:
    """One local day of a booking: its billed hours, its cheapest combination, and the others."""

    day: date
    billable_hours: Decimal
    cheapest: TierCombination
    others: tuple[TierCombination, ...]

    @property
    def explanation(self) -> str:
        """Why it costs that: `half day + 1 hour at $115.00; 5 hours would be $125.00`."""
        text = f"{self.cheapest} at {format_amount(self.cheapest.total)}"
        others = ", ".join(
            f"{other} would be {format_amount(other.total)}" for other in self.others
        )
        return f"{text}; {others}" if others else text


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
        `26 hours over 2 days: day + 2 hours`."""
        text = format_hours(self.elapsed_hours)
        if self.is_flat:
            return f"{text}: flat rate"
        if self.billable_hours != self.elapsed_hours:
            text += f" (billed as {format_quantity(self.billable_hours)})"
        if len(self.days) > 1:
            text += f" over {len(self.days)} days"
        combination = sum_combinations(day.cheapest for day in self.days)
        if combination.hours == self.billable_hours:
            return text
        return f"{text}: {combination}"


# --- The prices of a rate ------------------------------------------------------------------------


def get_tier_prices(rate: RateLike) -> list[TierPrice]:
    """The prices that the rate has, shortest tier first."""
    amounts: dict[str, Decimal | None] = {
        name: getattr(rate, name) for name in PRICE_FIELDS[rate.is_flat_rate]
    }
    return [
        TierPrice(amount, PRICE_FIELDS[rate.is_flat_rate][name])
        for name, amount in amounts.items()
        if amount is not None
    ]


def is_usable(rate: RateLike | None) -> bool:
    """Whether the rate has a price. A room without one cannot be booked."""
    return get_entry_price(rate) is not None


def get_entry_price(rate: RateLike | None) -> TierPrice | None:
    """The price that represents the rate: hourly, else half day, full day, flat."""
    return None if rate is None else next(iter(get_tier_prices(rate)), None)


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
    """All prices for people: `$25.00/hour, $90.00/half day, $160.00/day; set-up $20.00`."""
    text = ", ".join(map(str, get_tier_prices(rate)))
    if rate.setup_fee:
        text = "; ".join(filter(None, (text, f"set-up {format_amount(rate.setup_fee)}")))
    return text


# --- The price of a booking ----------------------------------------------------------------------


def price_room(rate: RateLike | None, span: Span, tz: tzinfo) -> RoomPrice:
    """Price a room for a span: a flat rate once; otherwise each local day, and their sum.

    Raises RateNotConfigured if the rate has no price.
    """
    if rate is None or not is_usable(rate):
        raise RateNotConfigured
    hours_by_day = [
        (day, get_billable_hours(part.duration, in_blocks=rate.bill_in_blocks))
        for day, part in span.split_by_local_day(tz)
    ]
    elapsed = Decimal(span.duration // timedelta(seconds=1)) / 3600
    billable = sum((hours for _, hours in hours_by_day), ZERO)
    if rate.is_flat_rate:
        assert rate.flat_rate is not None  # is_usable checked it
        text = format_entry_price(rate)
        return RoomPrice(round_amount(rate.flat_rate), elapsed, billable, (), text)
    days = tuple(price_day(day, hours, rate) for day, hours in hours_by_day)
    combination = sum_combinations(day.cheapest for day in days)
    rate_text = _describe_tiers(rate, combination)
    return RoomPrice(round_amount(combination.total), elapsed, billable, days, rate_text)


def price_day(day: date, hours: Decimal, rate: RateLike) -> DayPrice:
    """Price the hours of one day."""
    cheapest, *others = list_combinations(hours, rate)
    return DayPrice(day, hours, cheapest, tuple(others))


def list_combinations(hours: Decimal, rate: RateLike) -> list[TierCombination]:
    """The combinations that can be the cheapest for the hours of one day, cheapest first.

    Of two at the same price, the one with the longer tier comes first. Between no half day and as
    many as fit, each further half day changes the price by the same amount. So one of these two
    ends is the cheapest, and what lies between them need not be compared.
    """
    found = []
    if rate.full_day is not None:
        found.append(TierCombination(1, 0, ZERO, rate.full_day))
    if rate.half_day is not None:
        count = ceil(hours / HALF_DAY_HOURS)
        found.append(TierCombination(0, count, ZERO, count * rate.half_day))
    if rate.half_day is not None and rate.hourly is not None:
        fitting, rest = divmod(hours, HALF_DAY_HOURS)
        if fitting and rest:
            total = fitting * rate.half_day + rest * rate.hourly
            found.append(TierCombination(0, int(fitting), rest, total))
    if rate.hourly is not None:
        found.append(TierCombination(0, 0, hours, hours * rate.hourly))
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


# --- Text ----------------------------------------------------------------------------------------


def format_quantity(number: Decimal) -> str:
    """A number without trailing zeros: `5`, `4.5`, `0.25`."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return text or "0"


def format_hours(hours: Decimal) -> str:
    return f"{format_quantity(hours)} {'hour' if hours == 1 else 'hours'}"


def _describe_tiers(rate: RateLike, combination: TierCombination) -> str:
    """The prices that the combination uses: `$90.00/half day + $25.00/hour`."""
    counts = {
        Tier.FULL_DAY: combination.full_days,
        Tier.HALF_DAY: combination.half_days,
        Tier.HOURLY: combination.hours,
    }
    prices = {price.tier: price for price in get_tier_prices(rate)}
    return " + ".join(str(prices[tier]) for tier, count in counts.items() if count)
