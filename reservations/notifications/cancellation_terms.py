"""Terms of cancellation in words: a sentence for each step, in the local time of the center."""

import datetime as dt

from centers.models import Center
from reservations.models import Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from reservations.notifications.formatting import format_short_time
from reservations.pricing.allowances import planned_hours
from reservations.pricing.terms import ALL, Cancellable, RefundTerms, get_terms


def describe_terms(
    terms: RefundTerms, booking: Cancellable, center: Center, *, now: dt.datetime
) -> str:
    """Return a sentence for the step that holds now, and for each one after it."""
    sentences = []
    for period in terms.list_periods_from(booking, now):
        if period.until is None:
            break
        until = format_short_time(center, period.until)
        part = "half" if period.percent * 2 == ALL else f"{period.percent}%"
        sentences.append(
            f"Cancel free of charge until {until}."
            if period.percent == ALL
            else f"Until {until} you get {part} of the price back."
        )
    if not sentences:
        return "You can cancel until it begins, but nothing is refunded."
    return " ".join([*sentences, "After that, nothing."])


def describe_cancellation(reservation: Reservation, *, now: dt.datetime) -> str:
    """Describe what cancelling the reservation costs from now on."""
    if not can_be_cancelled(reservation, now):
        return "It can no longer be cancelled."
    sentence = _describe_booked(reservation, now=now)
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


def _describe_booked(reservation: Reservation, *, now: dt.datetime) -> str:
    terms, center = get_terms(reservation), reservation.room.center
    if not reservation.total_cost:
        if not any(planned_hours(reservation=reservation.pk)):
            return "You can cancel until it begins; there is nothing to pay."
        if terms.returns_benefits:
            return "You can cancel until it begins, and all included hours come back."
    return describe_terms(terms, reservation, center, now=now)
