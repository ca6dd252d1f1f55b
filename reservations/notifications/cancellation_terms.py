"""Terms of cancellation in words: a sentence for each step, in the local time of the center."""

import datetime as dt
from collections.abc import Callable
from typing import NamedTuple

from centers.models import Center
from reservations.models import Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from reservations.notifications.formatting import format_local_time, format_short_time
from reservations.pricing.allowances import planned_hours
from reservations.pricing.terms import ALL, Cancellable, RefundTerms, get_terms


class Wording(NamedTuple):
    """The sentence of a step that gives all, a part or nothing back, and how times are written."""

    everything: str
    part: str
    nothing: str
    format_time: Callable[[Center, dt.datetime], str]


SHORT = Wording(
    "Cancel free of charge until {until}.",
    "Until {until} you get {part} of the price back.",
    "After that, nothing.",
    format_short_time,
)
IN_EMAIL = Wording(
    "Cancelling is free until {until}.",
    "Until {until}, {part} of the price is refunded.",
    "After that, nothing is refunded.",
    format_local_time,
)


def describe_terms(
    terms: RefundTerms,
    booking: Cancellable,
    center: Center,
    *,
    wording: Wording = SHORT,
    now: dt.datetime,
) -> str:
    """Return a sentence for the step that holds now, and for each one after it."""
    sentences = []
    for period in terms.list_periods_from(booking, now):
        if period.until is None:
            break
        part = "half" if period.percent * 2 == ALL else f"{period.percent}%"
        sentence = wording.everything if period.percent == ALL else wording.part
        until = wording.format_time(center, period.until)
        sentences.append(sentence.format(until=until, part=part))
    if not sentences:
        return "You can cancel until it begins, but nothing is refunded."
    return " ".join([*sentences, wording.nothing])


def describe_cancellation(
    reservation: Reservation, *, wording: Wording = SHORT, now: dt.datetime
) -> str:
    """Describe what cancelling the reservation costs from now on."""
    if not can_be_cancelled(reservation, now):
        return "It can no longer be cancelled."
    sentence = _describe_booked(reservation, wording=wording, now=now)
    if reservation.status == Status.PENDING:
        return (
            "Until the center has answered, cancelling costs nothing."
            f" Once it has agreed, {decapitalize(sentence)}"
        )
    return sentence


def can_be_cancelled(reservation: Reservation, now: dt.datetime) -> bool:
    """Return whether it can still be cancelled, or if it is not booked yet, whether it then can."""
    is_open = reservation.is_new or reservation.status in HOLDING_STATUSES
    return is_open and now < reservation.start


def decapitalize(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _describe_booked(reservation: Reservation, *, wording: Wording, now: dt.datetime) -> str:
    terms, center = get_terms(reservation), reservation.room.center
    if not reservation.total_cost:
        if not any(planned_hours(reservation=reservation.pk)):
            return "You can cancel until it begins; there is nothing to pay."
        if terms.returns_benefits:
            return "You can cancel until it begins, and all included hours come back."
    return describe_terms(terms, reservation, center, wording=wording, now=now)
