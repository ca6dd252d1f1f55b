"""What typical bookings cost under a rate, and why: for those who set its prices.

Pure, and priced by the functions that price bookings.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from centers import rates
from centers.span import Span
from roombook.money import ZERO, format_amount, round_amount

# Two working days without a change of the clock.
EXAMPLE_START = datetime(2027, 3, 1, 9, tzinfo=UTC)
EXAMPLE_DURATIONS = (
    ("1 hour", timedelta(hours=1)),
    ("2.5 hours", timedelta(hours=2, minutes=30)),
    ("4 hours", timedelta(hours=4)),
    ("5 hours", timedelta(hours=5)),
    ("8 hours", timedelta(hours=8)),
    ("2 days, 9:00 to 17:00 of the next", timedelta(days=1, hours=8)),
)


@dataclass(frozen=True, slots=True)
class RateExample:
    """One booking: its time, its price, and what made it that."""

    length: str
    price: rates.RoomPrice
    setup_fee: Decimal

    @property
    def total(self) -> Decimal:
        return self.price.total + self.setup_fee

    @property
    def room(self) -> str:
        return format_amount(self.price.total)

    @property
    def total_text(self) -> str:
        return format_amount(self.total)

    @property
    def billed(self) -> str:
        """What the line on the bill says: `5 hours: half day + 1 hour`."""
        return self.price.explanation

    @property
    def reasons(self) -> list[str]:
        """Why it was that, day by day."""
        if self.price.is_flat:
            return ["Once, however long the booking is."]
        if len(self.price.days) == 1:
            return [self.price.days[0].reason]
        return [
            f"Day {number}, {rates.format_hours(day.billable_hours)}: {day.reason}"
            for number, day in enumerate(self.price.days, start=1)
        ]


def calculate_examples(rate: rates.RateLike) -> list[RateExample]:
    """The examples of a rate; none for one without a usable price."""
    if not rates.is_usable(rate):
        return []
    setup = round_amount(rate.setup_fee or ZERO)
    return [
        RateExample(
            length,
            rates.price_room(rate, Span(EXAMPLE_START, EXAMPLE_START + duration), UTC),
            setup,
        )
        for length, duration in EXAMPLE_DURATIONS
    ]


def summarize_examples(rate: rates.RateLike) -> str:
    """The prices of three examples on one line."""
    chosen = {"4 hours", "8 hours", EXAMPLE_DURATIONS[-1][0]}
    return " · ".join(each.total_text for each in calculate_examples(rate) if each.length in chosen)
