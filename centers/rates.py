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
from roombook.money import display, rounded, zero

QUARTER = timedelta(minutes=15)
HOUR = timedelta(hours=1)
HALF_DAY_HOURS = 4


class Tier(StrEnum):
    """What a price is for; the values are what people read after the slash."""

    HOURLY = "hour"
    HALF_DAY = "half day"
    FULL_DAY = "day"
    FLAT = "flat"


ORDER = {tier: place for place, tier in enumerate(Tier)}


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
class Price:
    """One tier's price."""

    amount: Decimal
    tier: Tier

    def __str__(self) -> str:
        """For people: `$25.00/hour`, `$90.00/half day`, `$160.00/day`, `$50.00 flat`."""
        separator = " " if self.tier is Tier.FLAT else "/"
        return f"{display(self.amount)}{separator}{self.tier}"


@dataclass(frozen=True, slots=True)
class Cover:
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
            parts.append(hours_text(self.hours))
        return " + ".join(parts)

    def __add__(self, other: "Cover") -> "Cover":
        return Cover(
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
    cover: Cover
    others: tuple[Cover, ...]

    @property
    def reason(self) -> str:
        """Why this cover: `half day + 1 hour at $115.00; 5 hours would be $125.00`."""
        told = f"{self.cover} at {display(self.cover.total)}"
        others = ", ".join(f"{other} would be {display(other.total)}" for other in self.others)
        return f"{told}; {others}" if others else told


@dataclass(frozen=True, slots=True)
class PricedRoom:
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
        quantity = hours_text(self.elapsed_hours)
        if self.is_flat:
            return f"{quantity}: flat rate"
        if self.billable_hours != self.elapsed_hours:
            quantity += f" (billed as {number_text(self.billable_hours)})"
        if len(self.days) > 1:
            quantity += f" over {len(self.days)} days"
        cover = sum_of(day.cover for day in self.days)
        if cover.hours == self.billable_hours:
            return quantity
        return f"{quantity}: {cover}"


def is_usable(rate: RateLike | None) -> bool:
    """Whether the rate has a price at all: a room without one cannot be booked."""
    return entry(rate) is not None


def entry(rate: RateLike | None) -> Price | None:
    """The price that stands for a rate: hourly, else half day, day, flat; None without any."""
    if rate is None:
        return None
    if rate.is_flat_rate:
        return None if rate.flat_rate is None else Price(rate.flat_rate, Tier.FLAT)
    return next(iter(tiers(rate)), None)


def tiers(rate: RateLike) -> Iterator[Price]:
    """The timed tiers that a rate offers, the shortest first."""
    by_tier = {
        Tier.HOURLY: rate.hourly,
        Tier.HALF_DAY: rate.half_day,
        Tier.FULL_DAY: rate.full_day,
    }
    return (Price(amount, tier) for tier, amount in by_tier.items() if amount is not None)


def entry_price(rate: RateLike | None) -> str:
    """The entry price for people, or nothing: `$25.00/hour`."""
    price = entry(rate)
    return "" if price is None else str(price)


def lowest_entry(rates: Iterable[RateLike | None]) -> Price | None:
    """The lowest entry price of many rates.

    An hour's price cannot be compared with a day's: the prices of the first kind that any of the
    rates has (hourly, else half day, day, flat) are compared among themselves.
    """
    return lowest(map(entry, rates))


def lowest(prices: Iterable[Price | None]) -> Price | None:
    """The lowest of some entry prices, of the first kind that is among them."""
    return min(
        filter(None, prices),
        key=lambda price: (ORDER[price.tier], price.amount),
        default=None,
    )


def describe(rate: RateLike) -> str:
    """The whole rate for people: `$25.00/hour, $90.00/half day, $160.00/day; set-up $20.00`."""
    flat = entry(rate) if rate.is_flat_rate else None
    prices = [flat] if flat else [] if rate.is_flat_rate else list(tiers(rate))
    told = ", ".join(map(str, prices))
    if rate.setup_fee:
        told = "; ".join(filter(None, (told, f"set-up {display(rate.setup_fee)}")))
    return told


def room_price(rate: RateLike | None, span: Span, tz: tzinfo) -> PricedRoom:
    """Price a room for a span: a flat rate once, else each local day by itself, the days added."""
    if rate is None or not is_usable(rate):
        raise RateNotConfigured
    pieces = [
        (day, hours_of(piece.duration, in_blocks=rate.bill_in_blocks))
        for day, piece in span.local_days(tz)
    ]
    elapsed = Decimal(span.duration // timedelta(seconds=1)) / 3600
    billable = sum((hours for _, hours in pieces), zero)
    if rate.is_flat_rate:
        assert rate.flat_rate is not None  # is_usable said so
        text = entry_price(rate)
        return PricedRoom(rounded(rate.flat_rate), elapsed, billable, (), text)
    days = tuple(day_price(day, hours, rate) for day, hours in pieces)
    cover = sum_of(day.cover for day in days)
    return PricedRoom(rounded(cover.total), elapsed, billable, days, _tiers_used(rate, cover))


def day_price(day: date, hours: Decimal, rate: RateLike) -> DayPrice:
    """Price the hours of one day."""
    cheapest, *others = covers(hours, rate)
    return DayPrice(day, hours, cheapest, tuple(others))


def covers(hours: Decimal, rate: RateLike) -> list[Cover]:
    """The covers worth telling of one day's hours, cheapest first; at one price the longest tier.

    Between all hours and as many half days as fit, each further half day saves or costs the same:
    one of the two ends is the cheapest, so the mixes between them need no asking.
    """
    found = []
    if rate.full_day is not None:
        found.append(Cover(1, 0, zero, rate.full_day))
    if rate.half_day is not None:
        count = ceil(hours / HALF_DAY_HOURS)
        found.append(Cover(0, count, zero, count * rate.half_day))
    if rate.half_day is not None and rate.hourly is not None:
        fitting, rest = divmod(hours, HALF_DAY_HOURS)
        if fitting and rest:
            total = fitting * rate.half_day + rest * rate.hourly
            found.append(Cover(0, int(fitting), rest, total))
    if rate.hourly is not None:
        found.append(Cover(0, 0, hours, hours * rate.hourly))
    if not found:
        raise RateNotConfigured
    return sorted(found, key=lambda cover: cover.total)


def hours_of(duration: timedelta, *, in_blocks: bool) -> Decimal:
    """The hours that are billed for a time: by the started quarter, in blocks by the hour."""
    step = HOUR if in_blocks else QUARTER
    steps = -(-duration // step)
    return Decimal(steps) if in_blocks else Decimal(steps) / 4


def sum_of(covers_of_days: Iterable[Cover]) -> Cover:
    return sum(covers_of_days, Cover(0, 0, zero, zero))


def number_text(number: Decimal) -> str:
    """A quantity without idle zeros: `5`, `4.5`, `0.25`."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return text or "0"


def hours_text(hours: Decimal) -> str:
    return f"{number_text(hours)} {'hour' if hours == 1 else 'hours'}"


def _tiers_used(rate: RateLike, cover: Cover) -> str:
    used = {
        Tier.FULL_DAY: cover.full_days,
        Tier.HALF_DAY: cover.half_days,
        Tier.HOURLY: cover.hours,
    }
    prices = {price.tier: price for price in tiers(rate)}
    return " + ".join(str(prices[tier]) for tier, count in used.items() if count)
