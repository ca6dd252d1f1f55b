"""What typical bookings cost under a rate, and why. Helps staff to set prices.

This module is pure, and uses the functions that price bookings.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from centers import rates
from centers.span import Span
from roombook.money import ZERO, format_amount, round_amount

# A working day and a time zone without clock changes.
EXAMPLE_START = datetime(2027, 3, 1, 9, tzinfo=UTC)
EXAMPLE_DURATIONS = {
    "1 hour": timedelta(hours=1),
    "2.5 hours": timedelta(hours=2, minutes=30),
    "4 hours": timedelta(hours=4),
    "5 hours": timedelta(hours=5),
    "8 hours": timedelta(hours=8),
    "2 days, 9:00 to 17:00 of the next": timedelta(days=1, hours=8),
}
SUMMARY_DURATIONS = {timedelta(hours=4), timedelta(hours=8), timedelta(days=1, hours=8)}


@dataclass(frozen=True, slots=True)
class RateExample:
    """An example booking: its duration and its price."""

    duration: timedelta
    duration_text: str
    price: rates.RoomPrice
    setup_fee: Decimal

    @property
    def total(self) -> Decimal:
        return self.price.total + self.setup_fee

    @property
    def room_text(self) -> str:
        return format_amount(self.price.total)

    @property
    def total_text(self) -> str:
        return format_amount(self.total)

    @property
    def reasons(self) -> list[str]:
        """Why it costs that, day by day."""
        if self.price.is_flat:
            return ["Charged once, regardless of the duration."]
        if len(self.price.days) == 1:
            return [self.price.days[0].explanation]
        return [
            f"Day {number}, {rates.format_hours(day.billable_hours)}: {day.explanation}"
            for number, day in enumerate(self.price.days, start=1)
        ]


def calculate_examples(rate: rates.RateLike) -> list[RateExample]:
    """The examples for a rate; none if it has no price."""
    if not rates.is_usable(rate):
        return []
    setup_fee = round_amount(rate.setup_fee or ZERO)
    return [
        RateExample(
            duration,
            text,
            rates.price_room(rate, Span(EXAMPLE_START, EXAMPLE_START + duration), UTC),
            setup_fee,
        )
        for text, duration in EXAMPLE_DURATIONS.items()
    ]


def find_price_warnings(rate: rates.RateLike) -> list[str]:
    """Prices of a shorter time that are above the price of a longer one: probably a mistake."""
    if rate.is_flat_rate:
        return []
    prices = [
        ("An hour", "an hour", rate.hourly),
        ("Half a day", "half a day", rate.half_day),
        ("A full day", "a full day", rate.full_day),
    ]
    offered = [(subject, name, price) for subject, name, price in prices if price is not None]
    return [
        f"{subject} ({format_amount(shorter)}) costs more than {name} ({format_amount(longer)})."
        for (subject, _, shorter), (_, name, longer) in pairwise(offered)
        if shorter > longer
    ]


def summarize_examples(rate: rates.RateLike) -> str:
    """The prices of three examples on one line."""
    examples = calculate_examples(rate)
    return " · ".join(each.total_text for each in examples if each.duration in SUMMARY_DURATIONS)
