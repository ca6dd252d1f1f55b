"""Terms of cancellation: which part of a price comes back, until when (B15.4).

A booking has a copy of the terms that were shown when it was made, as JSON. `RefundTerms` is that
copy; everything here is calculated from it, and reads no database.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple, Protocol

from django.conf import settings

from centers.models import MeetingRoom
from centers.models.terms import parse_steps
from reservations.models import Reservation
from roombook import money

ALL = 100
QUARTERS = 4


class Step(NamedTuple):
    """Until so many hours before the start, this percentage of the price comes back."""

    hours: int
    percent: int


class Period(NamedTuple):
    """A time during which the same percentage comes back. `until` is not part of it."""

    until: dt.datetime | None
    percent: int


class Cancellable(Protocol):
    """A reservation, or a time that is not booked yet."""

    @property
    def start(self) -> dt.datetime: ...
    @property
    def booked_at(self) -> dt.datetime | None: ...


class UnbookedTime(NamedTuple):
    start: dt.datetime
    booked_at: None = None


@dataclass(frozen=True, slots=True)
class RefundTerms:
    """The terms of a booking. Without a name, they are those of the deployment.

    The hours and the percentages of the steps fall. `change_hours` is None if the customer may
    change the booking for as long as cancelling is free. With `returns_benefits`, cancelling gives
    back all included hours and the promo code, whatever part of the price comes back.
    """

    name: str
    steps: tuple[Step, ...]
    grace_minutes: int
    no_show_percent: int = ALL
    change_hours: int | None = None
    returns_benefits: bool = False

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "RefundTerms":
        """Return the terms of a column that has `to_json`."""
        steps = tuple(Step(*each) for each in stored["steps"])
        return cls(**{**stored, "steps": steps})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        steps = ", ".join(f"{each.percent}% until {each.hours} h before" for each in self.steps)
        return f"{self.name or 'Default'}: {steps or 'nothing comes back'}"

    def list_periods(self, booking: Cancellable) -> list[Period]:
        """Return when which percentage comes back, in order of time. The last period never ends."""
        ends = [(get_time_before(booking, hours), percent) for hours, percent in self.steps]
        grace_until = self.get_grace_end(booking)
        if grace_until is not None:
            ends = [(until, percent) for until, percent in ends if until > grace_until]
            if not ends or ends[0][1] < ALL:
                ends.insert(0, (grace_until, ALL))
        return [*(Period(*each) for each in ends), Period(None, 0)]

    def get_grace_end(self, booking: Cancellable) -> dt.datetime | None:
        """Return until when a booking can be cancelled for free because it was just made."""
        if booking.booked_at is None:
            return None
        return min(booking.booked_at + dt.timedelta(minutes=self.grace_minutes), booking.start)

    def get_percent(self, booking: Cancellable, at: dt.datetime) -> int:
        """Return the percentage that comes back if it is cancelled then."""
        return self.list_periods_from(booking, at)[0].percent

    def list_periods_from(self, booking: Cancellable, at: dt.datetime) -> list[Period]:
        """Return the period that holds at a time, and those after it."""
        return [each for each in self.list_periods(booking) if not each.until or at < each.until]

    def get_free_end(self, booking: Cancellable) -> dt.datetime | None:
        """Return until when cancelling is free; None if it never was."""
        first = self.list_periods(booking)[0]
        return first.until if first.percent == ALL else None

    def get_change_end(self, booking: Cancellable) -> dt.datetime | None:
        """Return until when the customer may change the booking; None if never."""
        if self.change_hours is None:
            return self.get_free_end(booking)
        return get_time_before(booking, self.change_hours)

    def get_step_percent(self, hours: int) -> int:
        """Return the percentage that comes back just before so many hours before the start."""
        return max((each.percent for each in self.steps if each.hours <= hours), default=0)

    def get_latest_change(self) -> float:
        """Return the hours before the start until which the customer may change it."""
        free = (each.hours for each in self.steps if each.percent == ALL)
        return next(free, float("inf")) if self.change_hours is None else self.change_hours


def get_terms(reservation: Reservation) -> RefundTerms:
    """Return the terms that were shown when the reservation was made (B15.4)."""
    return RefundTerms.read(reservation.cancellation_terms)


def get_present_terms(room: MeetingRoom) -> RefundTerms:
    """Return the terms of the room, or else those of its center, or else of the deployment."""
    terms = room.terms or room.center.terms
    if terms is None:
        step = Step(settings.CANCELLATION_NOTICE_HOURS, ALL)
        grace_minutes = settings.CANCELLATION_GRACE_MINUTES
        return RefundTerms("", (step,), grace_minutes, returns_benefits=True)
    return RefundTerms(
        terms.name,
        tuple(Step(*each) for each in parse_steps(terms.steps)),
        terms.grace_minutes,
        terms.no_show_percent,
        terms.change_hours,
    )


def get_better_terms(old: RefundTerms, new: RefundTerms) -> RefundTerms:
    """Return the better of both for the customer, at each time before the start.

    If neither is better at all times, these are terms of their own, with both names.
    """
    steps: list[Step] = []
    for hours in sorted({each.hours for terms in (old, new) for each in terms.steps}):
        percent = max(terms.get_step_percent(hours) for terms in (old, new))
        if not steps or percent > steps[0].percent:
            steps.insert(0, Step(hours, percent))
    better = RefundTerms(
        old.name,
        tuple(steps),
        max(old.grace_minutes, new.grace_minutes),
        min(old.no_show_percent, new.no_show_percent),
        min(old, new, key=RefundTerms.get_latest_change).change_hours,
        old.returns_benefits or new.returns_benefits,
    )
    if better == old:
        return old
    if replace(better, name=new.name) == new:
        return new
    return replace(better, name=" / ".join(dict.fromkeys(filter(None, (old.name, new.name)))))


def get_changed_terms(reservation: Reservation, room: MeetingRoom) -> RefundTerms:
    """Return the terms of a booking after a change, which leaves it in this room."""
    return get_better_terms(get_terms(reservation), get_present_terms(room))


def get_time_before(booking: Cancellable, hours: int) -> dt.datetime:
    """Return the time that is so many elapsed hours before the start."""
    return booking.start.astimezone(dt.UTC) - dt.timedelta(hours=hours)


class Split(NamedTuple):
    """What the customer gets of what was paid, and what the center keeps of it as a fee."""

    refund: Decimal
    fee: Decimal


def split_payment(total: Decimal, paid: Decimal, percent: int) -> Split:
    """Divide what is left of the payments, if this percentage of a bill comes back.

    The fee is the rest of the bill's total, with its tax, rounded half-up. A refund that is due
    after a price reduction stays due: it is part of neither, unless everything comes back.
    """
    if percent == ALL:
        return Split(paid, money.ZERO)
    fee = min(paid, money.round_amount(total * (ALL - percent) / ALL))
    return Split(min(paid, total) - fee or money.ZERO, fee)


def round_hours(hours: Decimal) -> Decimal:
    """Round included hours that come back, in favor of the customer, to quarters of an hour."""
    return (hours * QUARTERS).to_integral_value(ROUND_CEILING) / QUARTERS
