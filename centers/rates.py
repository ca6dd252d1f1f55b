"""From a rate and a time to money: the cheapest cover of each local day, and why it was that (B12).

Pure: works on unsaved rows and on anything else with the same attributes.
"""

from collections.abc import Iterable, Iterator
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
    """What a price is for; the values are what people read after the slash."""

    HOURLY = "hour"
    HALF_DAY = "half day"
    FULL_DAY = "day"
    FLAT = "flat"


TIER_ORDER = {tier: place for place, tier in enumerate(Tier)}


class RateLike(Protocol):
    """The tiers of a rate; None is a tier that is not offered, 0 is free."""

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
    """One tier's price."""

    amount: Decimal
    tier: Tier

    def __str__(self) -> str:
        """For people: `$25.00/hour`, `$90.00/half day`, `$160.00/day`, `$50.00 flat`."""
        separator = " " if self.tier is Tier.FLAT else "/"
        return f"{format_amount(self.amount)}{separator}{self.tier}"


@dataclass(frozen=True, slots=True)
class TierCombination:
    """Full days, half days and hours that together cover some time, and their exact price."""

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
    """One local day of a booking: its hours as billed, the cover taken and the dearer ones."""

    day: date
    billable_hours: Decimal
    cover: TierCombination
    others: tuple[TierCombination, ...]

    @property
    def reason(self) -> str:
        """Why this cover: `half day + 1 hour at $115.00; 5 hours would be $125.00`."""
        told = f"{self.cover} at {format_amount(self.cover.total)}"
        others = ", ".join(
            f"{other} would be {format_amount(other.total)}" for other in self.others
        )
        return f"{told}; {others}" if others else told


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
        """Quantity and tiers: `5 hours: half day + 1 hour`, `3 hours`,
        `26 hours over 2 days: day + 2 hours`."""
        quantity = format_hours(self.elapsed_hours)
        if self.is_flat:
            return f"{quantity}: flat rate"
        if self.billable_hours != self.elapsed_hours:
            quantity += f" (billed as {format_quantity(self.billable_hours)})"
        if len(self.days) > 1:
            quantity += f" over {len(self.days)} days"
        cover = sum_combinations(day.cover for day in self.days)
        if cover.hours == self.billable_hours:
            return quantity
        return f"{quantity}: {cover}"


def is_usable(rate: RateLike | None) -> bool:
    """Whether the rate has a price at all: a room without one cannot be booked."""
    return get_entry_price(rate) is not None


def get_entry_price(rate: RateLike | None) -> TierPrice | None:
    """The price that stands for a rate: hourly, else half day, day, flat; None without any."""
    if rate is None:
        return None
    if rate.is_flat_rate:
        return None if rate.flat_rate is None else TierPrice(rate.flat_rate, Tier.FLAT)
    return next(iter(get_tier_prices(rate)), None)


def get_tier_prices(rate: RateLike) -> Iterator[TierPrice]:
    """The timed tiers that a rate offers, the shortest first."""
    by_tier = {
        Tier.HOURLY: rate.hourly,
        Tier.HALF_DAY: rate.half_day,
        Tier.FULL_DAY: rate.full_day,
    }
    return (TierPrice(amount, tier) for tier, amount in by_tier.items() if amount is not None)


def format_entry_price(rate: RateLike | None) -> str:
    """The entry price for people, or nothing: `$25.00/hour`."""
    price = get_entry_price(rate)
    return "" if price is None else str(price)


def get_lowest_entry_price(rates: Iterable[RateLike | None]) -> TierPrice | None:
    """The lowest entry price of many rates.

    An hour's price cannot be compared with a day's: the prices of the first kind that any of the
    rates has (hourly, else half day, day, flat) are compared among themselves.
    """
    return pick_lowest_price(map(get_entry_price, rates))


def pick_lowest_price(prices: Iterable[TierPrice | None]) -> TierPrice | None:
    """The lowest of some entry prices, of the first kind that is among them."""
    return min(
        filter(None, prices),
        key=lambda price: (TIER_ORDER[price.tier], price.amount),
        default=None,
    )


def describe_rate(rate: RateLike) -> str:
    """The whole rate for people: `$25.00/hour, $90.00/half day, $160.00/day; set-up $20.00`."""
    flat = get_entry_price(rate) if rate.is_flat_rate else None
    prices = [flat] if flat else [] if rate.is_flat_rate else list(get_tier_prices(rate))
    told = ", ".join(map(str, prices))
    if rate.setup_fee:
        told = "; ".join(filter(None, (told, f"set-up {format_amount(rate.setup_fee)}")))
    return told


def price_room(rate: RateLike | None, span: Span, tz: tzinfo) -> RoomPrice:
    """Price a room for a span: a flat rate once, else each local day by itself, the days added."""
    if rate is None or not is_usable(rate):
        raise RateNotConfigured
    pieces = [
        (day, get_billable_hours(piece.duration, in_blocks=rate.bill_in_blocks))
        for day, piece in span.split_by_local_day(tz)
    ]
    elapsed = Decimal(span.duration // timedelta(seconds=1)) / 3600
    billable = sum((hours for _, hours in pieces), ZERO)
    if rate.is_flat_rate:
        assert rate.flat_rate is not None  # is_usable said so
        text = format_entry_price(rate)
        return RoomPrice(round_amount(rate.flat_rate), elapsed, billable, (), text)
    days = tuple(price_day(day, hours, rate) for day, hours in pieces)
    cover = sum_combinations(day.cover for day in days)
    return RoomPrice(
        round_amount(cover.total), elapsed, billable, days, _describe_tiers(rate, cover)
    )


def price_day(day: date, hours: Decimal, rate: RateLike) -> DayPrice:
    """Price the hours of one day."""
    cheapest, *others = list_combinations(hours, rate)
    return DayPrice(day, hours, cheapest, tuple(others))


def list_combinations(hours: Decimal, rate: RateLike) -> list[TierCombination]:
    """The covers worth telling of one day's hours, cheapest first; at one price the longest tier.

    Between all hours and as many half days as fit, each further half day saves or costs the same:
    one of the two ends is the cheapest, so the mixes between them need no asking.
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
    return sorted(found, key=lambda cover: cover.total)


def get_billable_hours(duration: timedelta, *, in_blocks: bool) -> Decimal:
    """The hours that are billed for a time: by the started quarter, in blocks by the hour."""
    step = HOUR if in_blocks else QUARTER_HOUR
    steps = -(-duration // step)
    return Decimal(steps) if in_blocks else Decimal(steps) / 4


def sum_combinations(covers_of_days: Iterable[TierCombination]) -> TierCombination:
    return sum(covers_of_days, TierCombination(0, 0, ZERO, ZERO))


def format_quantity(number: Decimal) -> str:
    """A quantity without idle zeros: `5`, `4.5`, `0.25`."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return text or "0"


def format_hours(hours: Decimal) -> str:
    return f"{format_quantity(hours)} {'hour' if hours == 1 else 'hours'}"


def _describe_tiers(rate: RateLike, cover: TierCombination) -> str:
    used = {
        Tier.FULL_DAY: cover.full_days,
        Tier.HALF_DAY: cover.half_days,
        Tier.HOURLY: cover.hours,
    }
    prices = {price.tier: price for price in get_tier_prices(rate)}
    return " + ".join(str(prices[tier]) for tier, count in used.items() if count)
