"""What customers are told by mail about their reservations.

Each function writes one mail into the outbox, in the transaction that moves the reservation; the
caller holds its lock, and its room comes with its center.
"""

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from babel.dates import get_timezone_name
from django.conf import settings

from accounts.emails import render_email
from accounts.models import OutboxMessage, OutboxState
from accounts.models.outbox_message import collapse_whitespace
from accounts.outbox import suppress_mail_errors
from payments.models import Payment
from reservations.booking import history
from reservations.booking.locks import lock_reservation
from reservations.models import LineItem, Reservation
from reservations.models.status import Status
from reservations.notifications import calendar
from reservations.notifications.calendar import MeetingStatus
from reservations.notifications.confirmation import (
    describe_booking,
    describe_card,
    describe_payment,
    format_day,
    format_hour,
    get_last_payment,
)
from roombook import money
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User
    from centers.models import Center
    from reservations.booking.cancellation import CancellationTerms
    from reservations.booking.rescheduling import RoomSlot


def get_subject_key(reservation: Reservation) -> str:
    """What the outbox knows the mails of this reservation by."""
    return f"reservation {reservation.pk}"


# --- The mails -----------------------------------------------------------------------------------


def send_checkout_completed(reservation: Reservation, *, now: dt.datetime) -> None:
    """A checkout went through: booked at once, or asked for where the center must agree."""
    if reservation.status == Status.CONFIRMED:
        send_booking_confirmed(reservation, now=now)
    else:
        send_request_received(reservation, now=now)


def send_booking_confirmed(reservation: Reservation, *, now: dt.datetime) -> None:
    with suppress_mail_errors(get_subject_key(reservation)):
        _write(
            reservation,
            "confirmed",
            heading="Your room is booked",
            subject="Booked",
            paragraphs=["We look forward to seeing you.", _charged(reservation)],
            with_bill=True,
            terms=_terms(reservation, now),
            meeting=MeetingStatus.CONFIRMED,
            now=now,
        )


def send_request_received(reservation: Reservation, *, now: dt.datetime) -> None:
    with suppress_mail_errors(get_subject_key(reservation)):
        payment = get_last_payment(reservation)
        reserved = (
            f"{_amount(payment)} is reserved on {describe_card(payment)} and charged only"
            " when the center agrees."
            if payment
            else "There is nothing to pay."
        )
        _write(
            reservation,
            "request received",
            heading="Your request is with the center",
            subject="Requested",
            paragraphs=[
                "The center has yet to agree to it. We will write to you as soon as it has"
                f" answered, within {settings.PENDING_HOURS} hours at most.",
                reserved,
            ],
            with_bill=True,
            terms="Until the center has answered, cancelling costs nothing. Once it has agreed, "
            + _within(_terms(reservation, now)),
            meeting=MeetingStatus.TENTATIVE,
            now=now,
        )


def send_request_answered(reservation: Reservation, *, now: dt.datetime) -> None:
    """The center agreed or declined, or nobody answered in time."""
    tell = {
        Status.CONFIRMED: send_request_approved,
        Status.DECLINED: send_request_declined,
        Status.EXPIRED: send_request_expired,
    }
    tell[Status(reservation.status)](reservation, now=now)


def send_request_approved(reservation: Reservation, *, now: dt.datetime) -> None:
    with suppress_mail_errors(get_subject_key(reservation)):
        _write(
            reservation,
            "approved",
            heading="Your room is booked",
            subject="Booked",
            paragraphs=["The center has agreed to your request.", _charged(reservation)],
            with_bill=True,
            terms=_terms(reservation, now),
            meeting=MeetingStatus.CONFIRMED,
            now=now,
        )


def send_request_declined(reservation: Reservation, *, now: dt.datetime) -> None:
    with suppress_mail_errors(get_subject_key(reservation)):
        _write(
            reservation,
            "declined",
            heading="The center could not take your request",
            subject="Declined",
            paragraphs=[
                "We are sorry: the center has declined your request, and the room is not booked.",
                _let_go(reservation),
            ],
            meeting=MeetingStatus.CANCELLED,
            now=now,
        )


def send_request_expired(reservation: Reservation, *, now: dt.datetime) -> None:
    with suppress_mail_errors(get_subject_key(reservation)):
        _write(
            reservation,
            "request expired",
            heading="Your request was not answered",
            subject="Not answered",
            paragraphs=[
                "We are sorry: the center did not answer your request in time. It has ended, and"
                " the room is not booked.",
                _let_go(reservation),
            ],
            meeting=MeetingStatus.CANCELLED,
            now=now,
        )


def send_authorization_expired(reservation: Reservation, *, now: dt.datetime) -> None:
    """The center would have agreed, but the customer's bank keeps no money for it any more."""
    with suppress_mail_errors(get_subject_key(reservation)):
        _write(
            reservation,
            "request expired",
            heading="Your request has ended",
            subject="Ended",
            paragraphs=[
                "We are sorry: your bank no longer reserves the money for your request, so it has"
                " ended, and the room is not booked. Please book again.",
                _let_go(reservation),
            ],
            meeting=MeetingStatus.CANCELLED,
            now=now,
        )


def send_cancelled(
    reservation: Reservation, terms: "CancellationTerms", *, now: dt.datetime
) -> None:
    """A booking or a request was called off; a draft that never was one gets no mail."""
    if reservation.booked_at is None:
        return
    with suppress_mail_errors(get_subject_key(reservation)):
        money_matters = [f"The reservation is cancelled: {terms.sentence}"]
        if terms.fee:
            money_matters.append(
                f"The fee for cancelling so late is {money.format_amount(terms.fee)}."
            )
        elif terms.refund:
            money_matters.append("Your bank may take some days to show it.")
        elif get_last_payment(reservation):
            money_matters.append(_let_go(reservation))
        _write(
            reservation,
            "cancelled",
            heading="Your reservation is cancelled",
            subject="Cancelled",
            paragraphs=money_matters,
            meeting=MeetingStatus.CANCELLED,
            now=now,
        )


def send_rescheduled(
    reservation: Reservation, old: "RoomSlot", *, refund: Decimal, now: dt.datetime
) -> None:
    """Staff moved what is booked or asked for; the file moves the meeting in the calendar."""
    with suppress_mail_errors(get_subject_key(reservation)):
        before = format_time_range(old.room.center, old.start, old.end)
        is_pending = reservation.status == Status.PENDING
        _write(
            reservation,
            "moved",
            heading="Your reservation has moved",
            subject="Moved",
            paragraphs=[
                f"It was {collapse_whitespace(old.room.name)} at"
                f" {collapse_whitespace(old.room.center.name)}, {before}."
                " What it is now you find below, and in the file for your calendar.",
                _goes_back(reservation, refund) if refund else "Nothing more is to be paid.",
            ],
            with_bill=True,
            terms=_terms(reservation, now),
            meeting=MeetingStatus.TENTATIVE if is_pending else MeetingStatus.CONFIRMED,
            now=now,
        )


def send_price_reduced(
    reservation: Reservation, *, refund: Decimal, reason: str, now: dt.datetime
) -> None:
    """Staff took something off the price of what is paid."""
    with suppress_mail_errors(get_subject_key(reservation)):
        _write(
            reservation,
            "price changed",
            heading="Your reservation costs less",
            subject="Price changed",
            paragraphs=[
                f"The reason: {collapse_whitespace(reason)}.",
                _goes_back(reservation, refund),
            ],
            with_bill=True,
            # So that the last mail tells all, whoever asks for it once more.
            meeting=(MeetingStatus.CONFIRMED if reservation.status == Status.CONFIRMED else None),
            now=now,
        )


def send_hold_expiring(reservation: Reservation, *, now: dt.datetime) -> None:
    """A draft that staff made for a customer is about to lose its room."""
    assert reservation.hold_until is not None
    with suppress_mail_errors(get_subject_key(reservation)):
        until = format_local_time(reservation, reservation.hold_until)
        _write(
            reservation,
            "hold lapses",
            heading="We still hold this room for you",
            subject="Not booked yet",
            paragraphs=[
                f"It is yours until {until}: please check out before then.",
                "After that somebody else may book it; as long as nobody has, you still can.",
            ],
            with_bill=True,
            terms=f"Once you have booked it, {_within(_terms(reservation, now))}",
            now=now,
        )


# --- Once more -----------------------------------------------------------------------------------


def get_last_email(reservation: Reservation) -> OutboxMessage | None:
    """The mail that tells how things stand; each change of them wrote one."""
    return OutboxMessage.objects.about(get_subject_key(reservation)).last()


@in_transaction
def resend_last_email(reservation_id: int, *, by: "User", now: dt.datetime) -> OutboxMessage:
    """Let the last mail about it go out once more, to the address that its customer has now.

    Raises ReservationNotOpen where it is waiting to be sent anyway, or there is none. Its calendar
    file is the very same: calendars that have it already change nothing.
    """
    reservation = lock_reservation(reservation_id)
    message = get_last_email(reservation)
    if message is None:
        raise ReservationNotOpen("No mail was written about it yet.")
    message.to = reservation.user.email
    if message.state == OutboxState.FAILED:
        message.save(update_fields=["to"])
    if not message.send_again(now=now):
        raise ReservationNotOpen("It is waiting to be sent anyway.")
    history.record_changes(
        reservation, {"mail": (None, f"{message.kind}, sent again")}, by=by, now=now
    )
    return message


# --- Their parts ---------------------------------------------------------------------------------


def _write(
    reservation: Reservation,
    kind: str,
    *,
    heading: str,
    subject: str,
    paragraphs: list[str],
    with_bill: bool = False,
    terms: str = "",
    meeting: MeetingStatus | None = None,
    now: dt.datetime,
) -> None:
    lines = bill_lines(reservation=reservation.pk) if with_bill else []
    context = {
        "heading": heading,
        "paragraphs": paragraphs,
        "facts": _facts(reservation),
        "lines": [
            {"description": collapse_whitespace(description), "rate": rate, "amount": amount}
            for description, rate, amount in lines
        ],
        "total": money.format_amount(reservation.total_cost),
        "terms": terms,
    }
    OutboxMessage.enqueue(
        user_id=reservation.user.pk,
        to=reservation.user.email,
        kind=kind,
        about=get_subject_key(reservation),
        subject=f"{subject}: {describe_booking(reservation)}",
        now=now,
        **render_email("reservation", context),
        **(_invitation(reservation, meeting, now) if meeting else {}),
    )


@compiled_query(keep_plan=False)
def bill_lines() -> "QuerySet[Any, Any]":
    lines = LineItem.objects.filter(reservation=int_param("reservation")).order_by("position")
    return lines.values_list("description", "rate", "amount")


def _invitation(
    reservation: Reservation, meeting: MeetingStatus, now: dt.datetime
) -> dict[str, Any]:
    reservation.calendar_sequence += 1
    reservation.save(update_fields=["calendar_sequence"])
    return {
        "calendar": calendar.render_invitation(reservation, meeting, now=now),
        "calendar_method": calendar.get_method(meeting),
    }


def _facts(reservation: Reservation) -> list[tuple[str, str]]:
    room, people = reservation.room, reservation.number_of_attendees
    return [
        ("Room", collapse_whitespace(room.name) + (f", for {people} people" if people > 1 else "")),
        (
            "Where",
            f"{collapse_whitespace(room.center.name)},"
            f" {calendar.format_postal_address(room.center)}",
        ),
        ("When", format_reservation_time(reservation)),
        ("Reservation number", str(reservation.pk)),
    ]


def format_reservation_time(reservation: Reservation) -> str:
    """The time on the center's clock; both its zones where the clock changes in between."""
    return format_time_range(reservation.room.center, reservation.start, reservation.end)


def format_time_range(center: "Center", start: dt.datetime, end: dt.datetime) -> str:
    start, end = start.astimezone(center.zone), end.astimezone(center.zone)
    begins, ends = _zone_name(start), _zone_name(end)
    first = f"{_day(start)}, {format_hour(start)}"
    last = format_hour(end) if end.date() == start.date() else f"{_day(end)}, {format_hour(end)}"
    return (
        f"{first} - {last} ({begins})"
        if begins == ends
        else (f"{first} ({begins}) - {last} ({ends})")
    )


def format_local_time(reservation: Reservation, time: dt.datetime) -> str:
    """A moment on the center's clock."""
    local = time.astimezone(reservation.room.center.zone)
    return f"{_day(local)}, {format_hour(local)} ({_zone_name(local)})"


def _day(local: dt.datetime) -> str:
    return format_day(local.date(), "full", settings.LOCALE)


def _zone_name(local: dt.datetime) -> str:
    return str(get_timezone_name(local, locale=settings.LOCALE))


def _terms(reservation: Reservation, now: dt.datetime) -> str:
    """The cancellation policy, as what it means for this reservation."""
    if not reservation.total_cost:
        return "You can cancel until it begins; there is nothing to pay."
    if reservation.free_cancellation_until <= now:
        return "You can cancel until it begins, but nothing is refunded."
    until = format_local_time(reservation, reservation.free_cancellation_until)
    return f"Cancelling is free until {until}. After that, nothing is refunded."


def _within(sentence: str) -> str:
    """A sentence as the end of another."""
    return sentence[0].lower() + sentence[1:]


def _amount(payment: Payment) -> str:
    return money.format_amount(payment.amount)


def _charged(reservation: Reservation) -> str:
    return describe_payment(reservation, get_last_payment(reservation), was="is")


def _goes_back(reservation: Reservation, refund: Decimal) -> str:
    payment = get_last_payment(reservation)
    if payment is None or not refund:
        return "What you had paid is back with you already."
    return (
        f"{money.format_amount(refund)} is refunded to {describe_card(payment)}. Your bank may take"
        " some days to show it."
    )


def _let_go(reservation: Reservation) -> str:
    payment = get_last_payment(reservation)
    if payment is None:
        return "Nothing was charged."
    amount = f"{_amount(payment)} was reserved on {describe_card(payment)}"
    return f"Nothing was charged. {amount}; it is let go."
