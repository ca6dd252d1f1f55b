"""What typical bookings cost under a rate, and why: for those who set its prices.

Pure, and priced by the functions that price bookings.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from centers import rates
from centers.span import Span
from roombook.money import display, rounded, zero

# Two working days without a change of the clock.
FIRST = datetime(2027, 3, 1, 9, tzinfo=UTC)
LENGTHS = (
    ("1 hour", timedelta(hours=1)),
    ("2.5 hours", timedelta(hours=2, minutes=30)),
    ("4 hours", timedelta(hours=4)),
    ("5 hours", timedelta(hours=5)),
    ("8 hours", timedelta(hours=8)),
    ("2 days, 9:00 to 17:00 of the next", timedelta(days=1, hours=8)),
)


@dataclass(frozen=True, slots=True)
class Example:
    """One booking: its time, its price, and what made it that."""

    length: str
    price: rates.PricedRoom
    setup_fee: Decimal

    @property
    def total(self) -> Decimal:
        return self.price.total + self.setup_fee

    @property
    def room(self) -> str:
        return display(self.price.total)

    @property
    def total_text(self) -> str:
        return display(self.total)

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
            f"Day {number}, {rates.hours_text(day.billable_hours)}: {day.reason}"
            for number, day in enumerate(self.price.days, start=1)
        ]


def examples(rate: rates.RateLike) -> list[Example]:
    """The examples of a rate; none for one without a usable price."""
    if not rates.is_usable(rate):
        return []
    setup = rounded(rate.setup_fee or zero)
    return [
        Example(length, rates.room_price(rate, Span(FIRST, FIRST + duration), UTC), setup)
        for length, duration in LENGTHS
    ]


def brief(rate: rates.RateLike) -> str:
    """The prices of three examples on one line."""
    chosen = {"4 hours", "8 hours", LENGTHS[-1][0]}
    return " · ".join(each.total_text for each in examples(rate) if each.length in chosen)
