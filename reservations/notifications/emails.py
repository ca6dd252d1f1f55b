"""E-mails to customers about their reservations.

Each function adds one message to the outbox, in the transaction that changes the reservation. The
caller holds the reservation's lock and has loaded `reservation.room.center`. If a message cannot be
added, the error is logged, and the change continues without it.

Most messages carry a calendar file with the number `calendar_sequence`. The caller increases it
in the same change, because calendars ignore a file whose number is not higher than the last one.
"""

import datetime as dt
import functools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Concatenate, NamedTuple, ParamSpec, TypedDict, cast

from django.conf import settings

from accounts.emails import render_email
from accounts.models import OutboxMessage
from accounts.models.outbox_message import RECEIPT_KIND, OutboxQuerySet, collapse_whitespace
from accounts.outbox import suppress_mail_errors
from payments.refunds import find_refunded
from reservations.models import LineItem, Reservation
from reservations.notifications import calendar
from reservations.notifications.calendar import MeetingStatus
from reservations.notifications.cancellation_terms import (
    decapitalize,
    describe_cancellation,
)
from reservations.notifications.confirmation import (
    describe_authorization,
    describe_booking,
    describe_charge,
    describe_payments,
    describe_refund,
    describe_release,
)
from reservations.notifications.formatting import format_local_time, format_time_range
from roombook import money
from roombook.db.compiled_queries import RowQuerySet, compiled_query, int_param

P = ParamSpec("P")
REMINDER, MOVED = "reminder", "moved"
# So long staff can undo a move before the customer gets an e-mail about it, and so long at most
# after the first one of several moves.
UNDO_TIME, MAX_UNDO_TIME = dt.timedelta(minutes=1), dt.timedelta(minutes=5)
# Characters that staff can write to a customer.
MAX_MESSAGE_LENGTH = 1_000


class Known(TypedDict):
    """What the customer of a move knows, until the message about it is sent.

    It is stored with the message, and the message that replaces it keeps it. `written_at` is the
    reservation's `calendar_changed_at` before the first move.
    """

    slot: str
    written_at: str | None
    send_by: str


class Text(NamedTuple):
    """The paragraphs of a message, and its terms of cancellation.

    `known` is given if the message can be withdrawn.
    """

    paragraphs: list[str]
    terms: str = ""
    known: Known | None = None


def get_subject_key(reservation_id: int) -> str:
    """Return the key of this reservation's messages in the outbox."""
    return f"reservation {reservation_id}"


def withdraw_reminder(reservation: Reservation) -> None:
    """Delete a reminder of this start that is not sent yet, as it is no longer true."""
    if reservation.reminded_of_start is not None:
        waiting = OutboxMessage.objects.about(get_subject_key(reservation.pk)).waiting()
        if waiting.filter(kind=REMINDER).delete()[0]:
            # If the meeting comes back to this start, it is written again.
            reservation.reminded_of_start = None
            reservation.save(update_fields=["reminded_of_start"])


def get_last_email(reservation_id: int) -> OutboxMessage | None:
    """Return the last message about the current state: every change adds one, a receipt is none."""
    messages = OutboxMessage.objects.about(get_subject_key(reservation_id))
    return messages.exclude(kind=RECEIPT_KIND).last()


def _message(
    kind: str, subject: str, heading: str
) -> Callable[
    [Callable[Concatenate[Reservation, P], Text | None]],
    Callable[Concatenate[Reservation, P], None],
]:
    """Make a function that returns the paragraphs and the terms of a message send it.

    If it returns None, there is nothing to say.
    """

    def decorate(
        write: Callable[Concatenate[Reservation, P], Text | None],
    ) -> Callable[Concatenate[Reservation, P], None]:
        @functools.wraps(write)
        def send(reservation: Reservation, /, *args: P.args, **kwargs: P.kwargs) -> None:
            with suppress_mail_errors(get_subject_key(reservation.pk)):
                text = write(reservation, *args, **kwargs)
                now = cast("dt.datetime", kwargs["now"])
                if reservation.calendar_sequence > 1:
                    # What waits is older, and goes first.
                    _get_waiting_moves(reservation, now=now).update(next_attempt_at=now)
                if text is not None:
                    _enqueue(reservation, kind, subject, heading, text, now=now)

        return send

    return decorate


# --- Checkout ------------------------------------------------------------------------------------


@_message("confirmed", "Booked", "Your room is booked")
def send_booking_confirmed(reservation: Reservation, *, now: dt.datetime) -> Text:
    paragraphs = ["We look forward to seeing you.", _describe_charge(reservation)]
    return Text(paragraphs, describe_cancellation(reservation, now=now))


@_message("request received", "Requested", "Your request is with the center")
def send_request_received(reservation: Reservation, *, now: dt.datetime) -> Text:
    paragraphs = [
        "The center has yet to agree to it. We will write to you as soon as it has"
        f" answered, within {settings.PENDING_HOURS} hours at most.",
        describe_authorization(reservation.paid_payments),
    ]
    return Text(paragraphs, describe_cancellation(reservation, now=now))


# --- Answers to requests -------------------------------------------------------------------------


@_message("approved", "Booked", "Your room is booked")
def send_request_approved(reservation: Reservation, *, now: dt.datetime) -> Text:
    paragraphs = ["The center has agreed to your request.", _describe_charge(reservation)]
    return Text(paragraphs, describe_cancellation(reservation, now=now))


@_message("declined", "Declined", "The center could not take your request")
def send_request_declined(reservation: Reservation, *, message: str = "", now: dt.datetime) -> Text:
    """Send that the center has declined, with a `message` from staff."""
    reason = "We are sorry: the center has declined your request, and the room is not booked."
    return Text([reason, *_split_message(message), describe_release(reservation)])


@_message("request expired", "Not answered", "Your request was not answered")
def send_request_expired(reservation: Reservation, *, now: dt.datetime) -> Text:
    reason = (
        "We are sorry: the center did not answer your request in time. It has ended, and"
        " the room is not booked."
    )
    return Text([reason, describe_release(reservation)])


@_message("request expired", "Ended", "Your request has ended")
def send_authorization_expired(reservation: Reservation, *, now: dt.datetime) -> Text:
    """Tell the customer that the center approved, but the authorization has expired."""
    reason = (
        "We are sorry: your bank no longer reserves the money for your request, so it has"
        " ended, and the room is not booked. Please book again."
    )
    return Text([reason, describe_release(reservation)])


# --- Changes of a booking ------------------------------------------------------------------------


@_message("cancelled", "Cancelled", "Your reservation is cancelled")
def send_cancelled(
    reservation: Reservation,
    *,
    refund: Decimal,
    fee: Decimal,
    refund_text: str,
    message: str = "",
    now: dt.datetime,
) -> Text:
    """Send the cancellation, with a `message` from staff.

    `refund_text` is the sentence of the cancellation terms.
    """
    withdraw_reminder(reservation)
    paragraphs = [*_split_message(message), f"The reservation is cancelled: {refund_text}"]
    if fee:
        paragraphs.append(f"The fee for the cancellation is {money.format_amount(fee)}.")
    if refund:
        paragraphs.append("Your bank may take some days to show it.")
    elif not fee and reservation.paid_payments:
        paragraphs.append(describe_release(reservation))
    return Text(paragraphs)


def _get_waiting_moves(reservation: Reservation, *, now: dt.datetime) -> OutboxQuerySet:
    messages = OutboxMessage.objects.about(get_subject_key(reservation.pk))
    return messages.filter(kind=MOVED, attempts=0, next_attempt_at__gt=now)


def _withdraw_move(reservation: Reservation, *, now: dt.datetime) -> Known | None:
    """Delete the message about a move that still waits. Returns what the customer knows instead."""
    waiting = _get_waiting_moves(reservation, now=now)
    known = waiting.values_list("known", flat=True).first()
    # A process that sends it right now has leased it, and then it is not deleted.
    return cast("Known", known) if known and waiting.delete()[0] else None


@_message(MOVED, "Changed", "Your reservation has changed")
def send_rescheduled(
    reservation: Reservation,
    *,
    former: Reservation,
    refund: Decimal,
    charge: Decimal,
    changed: Sequence[str] = (),
    can_be_undone: bool = False,
    now: dt.datetime,
) -> Text | None:
    """Send the new details, with a calendar file that updates the customer's calendar.

    `former` is the reservation before the change, and `changed` are labels of what has changed,
    apart from the room and the time. `can_be_undone`: it waits for UNDO_TIME. Another move
    meanwhile replaces it, and if it leads back to what the customer knows, nothing is sent, and
    the reservation counts as last written to before those moves.
    """
    withdraw_reminder(reservation)
    leaves_center = former.room.center_id != reservation.room.center_id
    withdrawn = None if leaves_center else _withdraw_move(reservation, now=now)
    written_at = former.calendar_changed_at
    known = withdrawn or Known(
        slot=_describe_slot(former),
        written_at=written_at.isoformat() if written_at else None,
        send_by=(now + MAX_UNDO_TIME).isoformat(),
    )
    # Times are compared as texts: a new time zone can change the local time of the same instant.
    has_moved = leaves_center or known["slot"] != _describe_slot(reservation)
    if withdrawn and not (has_moved or refund or charge or changed):
        at = withdrawn["written_at"]
        reservation.calendar_changed_at = dt.datetime.fromisoformat(at) if at else None
        reservation.save(update_fields=["calendar_changed_at"])
        return None
    price = "Nothing more is to be paid."
    if refund:
        price = _describe_refund(reservation, refund)
    elif charge:
        [latest, *_] = reservation.paid_payments
        price = f"{money.format_amount(charge)} more is {describe_charge(latest)}."
    details = "The new details are below, and in the file for your calendar."
    if has_moved:
        details = f"It was {known['slot']}. {details}"
    news = [f"What has changed: {', '.join(changed)}."] if changed else []
    terms = describe_cancellation(reservation, now=now)
    # What has begun cannot be cancelled.
    terms = terms if reservation.start > now else ""
    paragraphs = [*news, details, price]
    return Text(paragraphs, terms, known if can_be_undone else None)


def _describe_slot(reservation: Reservation) -> str:
    room = reservation.room
    time = format_time_range(room.center, reservation.start, reservation.end)
    return f"{collapse_whitespace(f'{room.name} at {room.center.name}')}, {time}"


@_message("not changed", "Not changed", "Your reservation was not changed")
def send_not_changed(reservation: Reservation, *, reason: str, now: dt.datetime) -> Text:
    """Tell that a change was not made after its payment, which nobody has waited for (B27.4)."""
    text = f"{collapse_whitespace(reason)} You were not charged."
    return Text([text], describe_cancellation(reservation, now=now))


@_message("price changed", "Price changed", "Your reservation costs less")
def send_price_reduced(
    reservation: Reservation, *, refund: Decimal, reason: str, now: dt.datetime
) -> Text:
    text = f"The reason: {collapse_whitespace(reason)}."
    return Text([text, _describe_refund(reservation, refund)])


@_message("hold expiring", "Not booked yet", "We still hold this room for you")
def send_hold_expiring(
    reservation: Reservation, *, hold_until: dt.datetime, now: dt.datetime
) -> Text:
    """Remind the customer that the hold of a draft created by staff is about to expire."""
    until = format_local_time(reservation.room.center, hold_until)
    paragraphs = [
        f"It is yours until {until}: please check out before then.",
        "After that somebody else may book it; as long as nobody has, you still can.",
    ]
    terms = decapitalize(describe_cancellation(reservation, now=now))
    return Text(paragraphs, f"Once you have booked it, {terms}")


@_message(REMINDER, "Reminder", "Your meeting begins soon")
def send_meeting_reminder(reservation: Reservation, *, now: dt.datetime) -> Text:
    start = format_local_time(reservation.room.center, reservation.start)
    paragraphs = [f"It begins on {start}.", "We look forward to seeing you."]
    return Text(paragraphs, describe_cancellation(reservation, now=now))


# --- Parts of a message --------------------------------------------------------------------------


def _enqueue(
    reservation: Reservation,
    kind: str,
    subject: str,
    heading: str,
    text: Text,
    *,
    now: dt.datetime,
) -> None:
    """Add a message with the calendar file of the meeting, and with the bill unless it has ended.

    Every message that can be the last one has the file, because staff can send it again.
    """
    known = text.known
    send_at = min(now + UNDO_TIME, dt.datetime.fromisoformat(known["send_by"])) if known else now
    meeting = calendar.get_meeting_status(reservation)
    has_ended = meeting == MeetingStatus.CANCELLED
    context = {
        "heading": heading,
        "paragraphs": text.paragraphs,
        "facts": _get_facts(reservation),
        "lines": [] if has_ended else _get_lines(reservation),
        "total": money.format_amount(reservation.total_cost),
        "terms": text.terms,
    }
    OutboxMessage.enqueue(
        user_id=reservation.user.pk,
        to=reservation.user.email,
        kind=kind,
        about=get_subject_key(reservation.pk),
        subject=f"{subject}: {describe_booking(reservation)}",
        calendar=calendar.render_invitation(reservation, meeting, now=now) if meeting else "",
        calendar_method=calendar.get_method(meeting) if meeting else "",
        expires_at=reservation.start if kind == REMINDER else None,
        known=known,
        send_at=send_at,
        now=now,
        **render_email("reservation", context),
    )


def _split_message(message: str) -> list[str]:
    """Return the paragraphs of what staff write to the customer: plain text, line by line."""
    lines = [collapse_whitespace(line) for line in message[:MAX_MESSAGE_LENGTH].splitlines()]
    paragraphs = [line for line in lines if line]
    return ["The center writes:", *paragraphs] if paragraphs else []


def _get_lines(reservation: Reservation) -> list[dict[str, str]]:
    return [
        {"description": collapse_whitespace(description), "rate": rate, "amount": amount}
        for description, rate, amount in bill_lines(reservation=reservation.pk)
    ]


@compiled_query(keep_plan=False)
def bill_lines() -> RowQuerySet:
    lines = LineItem.objects.filter(reservation=int_param("reservation")).order_by("position")
    return lines.values_list("description", "rate", "amount")


def _get_facts(reservation: Reservation) -> list[tuple[str, str]]:
    room, attendees = reservation.room, reservation.number_of_attendees
    center = room.center
    room_name = collapse_whitespace(room.name)
    return [
        ("Room", f"{room_name}, for {attendees} people" if attendees > 1 else room_name),
        (
            "Where",
            f"{collapse_whitespace(center.name)}, {calendar.format_postal_address(center)}",
        ),
        ("When", format_time_range(center, reservation.start, reservation.end)),
        ("Reservation number", str(reservation.pk)),
    ]


def _describe_charge(reservation: Reservation) -> str:
    return describe_payments(reservation, verb="is")


def _describe_refund(reservation: Reservation, refund: Decimal) -> str:
    if not reservation.paid_payments or not refund:
        return "What you paid has already been refunded."
    payments = find_refunded(reservation.paid_payments, refund)
    text = describe_refund(payments, refund)
    if all(each.is_manual for each in payments):
        return text
    return f"{text} Your bank may take some days to show it."
