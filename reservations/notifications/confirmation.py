"""The sentence that answers a checkout: made of what is stored, so that a repeat reads alike."""

import datetime as dt
import functools
from typing import TYPE_CHECKING

from babel.dates import format_date, format_time
from django.conf import settings

from payments.models import Payment, PaymentState
from reservations.models import Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from roombook import money
from roombook.db.compiled_queries import compiled_query, int_param

if TYPE_CHECKING:
    from django.db.models import QuerySet

PAID_STATES = {PaymentState.AUTHORIZED, PaymentState.CAPTURED, PaymentState.REFUNDED}


def get_message(reservation: Reservation) -> str:
    """What the customer reads after a checkout, a repeated one, or a rehearsal."""
    if reservation.status == Status.PROCESSING:
        return "Your payment is being confirmed. Please do not pay again."
    if reservation.status not in BOOKED_STATUSES:
        return (
            f"This was a test: {describe_booking(reservation)} can be booked for"
            f" {money.format_amount(reservation.total_cost)}. Nothing was booked or charged."
        )
    payment = get_last_payment(reservation)
    if reservation.status == Status.PENDING:
        return (
            f"Your request for {describe_booking(reservation)} is with the center (reservation"
            f" {reservation.pk}). {_reserved(payment)}"
        )
    booked = f"You have booked {describe_booking(reservation)} (reservation {reservation.pk})."
    return f"{booked} {describe_payment(reservation, payment)}"


def get_last_payment(reservation: Reservation) -> Payment | None:
    """The last payment that reserved or took money for it; it may have given that back since."""
    return paid_payments.first(reservation=reservation.pk)


@compiled_query(keep_plan=False)
def paid_payments() -> "QuerySet[Payment]":
    rows = Payment.objects.filter(
        reservation=int_param("reservation"), state__in=sorted(PAID_STATES)
    )
    return rows.order_by("-pk")[:1]


def describe_booking(reservation: Reservation) -> str:
    """Room, center and time: `Boardroom at Union Station, Mon, Mar 1, 2027, 9:00 AM - 5:00 PM`."""
    center = reservation.room.center
    start = reservation.start.astimezone(center.zone)
    end = reservation.end.astimezone(center.zone)
    until = format_hour(end) if end.date() == start.date() else f"{_date(end)}, {format_hour(end)}"
    return (
        f"{reservation.room.name} at {center.name}, {_date(start)}, {format_hour(start)} - {until}"
    )


def describe_payment(reservation: Reservation, payment: Payment | None, *, was: str = "was") -> str:
    """What the card was (or is) charged, and what of it went back as the booking got cheaper."""
    if payment is None:
        return f"There {was} nothing to pay."
    text = f"{money.format_amount(payment.amount)} {was} charged to {describe_card(payment)}"
    if reservation.reduced_by:
        text += f", and {money.format_amount(reservation.reduced_by)} of it given back"
    return f"{text}."


def _reserved(payment: Payment | None) -> str:
    if payment is None:
        return "There is nothing to pay."
    return (
        f"{money.format_amount(payment.amount)} is reserved on {describe_card(payment)} and charged"
        " only when the center agrees."
    )


def describe_card(payment: Payment) -> str:
    """What a receipt shows of a card."""
    return f"{payment.card_brand} ending {payment.card_last4}".strip()


def _date(moment: dt.datetime) -> str:
    return format_day(moment.date(), "EEE, MMM d, y", settings.LOCALE)


def format_hour(moment: dt.datetime) -> str:
    """The time of day as people write it."""
    return _format_time(moment.time(), settings.LOCALE)


# Written once each: the days and the times of day that are booked are few.


@functools.lru_cache(1024)
def format_day(date: dt.date, pattern: str, locale: str) -> str:
    return str(format_date(date, pattern, locale=locale))


@functools.lru_cache(1024)
def _format_time(time: dt.time, locale: str) -> str:
    # CLDR parts hour and AM/PM by a narrow no-break space, which few phones' fonts have.
    return str(format_time(time, "short", locale=locale)).replace("\u202f", " ")
