"""Builds the message of a checkout from stored data, so that a retry gets the same message."""

from collections.abc import Sequence
from decimal import Decimal

from payments.gateways.manual import MANUAL_GATEWAYS
from payments.models import Payment
from payments.refunds import find_refunded
from reservations.models import Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.notifications.formatting import format_hour, format_local_time, format_short_day
from roombook import money


def get_message(reservation: Reservation) -> str:
    """Return the message for the customer after a checkout, a repeated checkout or a dry run."""
    waiting = reservation.waiting_payment
    if waiting is not None and (until := waiting.action_until):
        deadline = format_local_time(reservation.room.center, until)
        return (
            "Your bank asks you to confirm this payment. Please do so by"
            f" {deadline}: the room is held for you until then."
        )
    if reservation.status == Status.PROCESSING:
        return "Your payment is being confirmed. Please do not pay again."
    if reservation.status not in BOOKED_STATUSES:
        return (
            f"This was a test: {describe_booking(reservation)} can be booked for"
            f" {money.format_amount(reservation.total_cost)}. Nothing was booked or charged."
        )
    payments = reservation.paid_payments
    if reservation.status == Status.PENDING:
        return f"{describe_outcome(reservation)} {describe_authorization(payments)}"
    return f"{describe_outcome(reservation)} {describe_payments(reservation)}"


def describe_outcome(reservation: Reservation) -> str:
    """Return the message about a booking or a request without its payments."""
    booking = describe_booking(reservation)
    if reservation.status == Status.PENDING:
        return f"Your request for {booking} is with the center (reservation {reservation.pk})."
    return f"You have booked {booking} (reservation {reservation.pk})."


def get_change_message(
    reservation: Reservation, *, is_applied: bool, charge: Decimal, refund: Decimal
) -> str:
    """Return the message for the customer after a change of a booking (B27)."""
    if not is_applied:
        amount = money.format_amount(charge)
        return (
            f"Your payment of {amount} is being confirmed. Your booking changes as soon as it is;"
            " until then it is as it was. Please do not pay again."
        )
    text = describe_outcome(reservation)
    payments = reservation.paid_payments
    if charge:
        return f"{text} {money.format_amount(charge)} more was {describe_charge(payments[0])}."
    if refund:
        return f"{text} {describe_refund(find_refunded(payments, refund), refund)}"
    return f"{text} Nothing more is to be paid."


def describe_booking(reservation: Reservation) -> str:
    """Describe room, center and time.

    For example: `Boardroom at Union Station, Mon, Mar 1, 2027, 9:00 AM - 5:00 PM`.
    """
    center = reservation.room.center
    start = reservation.start.astimezone(center.zone)
    end = reservation.end.astimezone(center.zone)
    until = format_hour(end)
    if end.date() != start.date():
        until = f"{format_short_day(end)}, {until}"
    time = f"{format_short_day(start)}, {format_hour(start)} - {until}"
    return f"{reservation.room.name} at {center.name}, {time}"


def describe_payments(reservation: Reservation, *, verb: str = "was") -> str:
    """Describe the amounts that were charged, and the refund after a price reduction."""
    if not reservation.paid_payments:
        return f"There {verb} nothing to pay."
    amounts = (
        f"{money.format_amount(each.amount)} {verb} {describe_charge(each)}"
        for each in reversed(reservation.paid_payments)
    )
    text = ", and ".join(amounts)
    given_back = sum(each.amount for each in reservation.paid_payments) - reservation.total_cost
    if given_back > 0:
        text += f", and {money.format_amount(given_back)} of it given back"
    return f"{text}."


def describe_authorization(payments: Sequence[Payment]) -> str:
    """Describe the payment of a request, which is the only one."""
    if not payments:
        return "There is nothing to pay."
    [payment] = payments
    if payment.is_manual:
        charged = MANUAL_GATEWAYS[payment.gateway].charged
        return (
            f"{money.format_amount(payment.amount)} is {charged}, and returned if it is declined."
        )
    return (
        f"{money.format_amount(payment.amount)} is reserved on {describe_card(payment)} and charged"
        " only when the center agrees."
    )


def describe_charge(payment: Payment) -> str:
    """Describe how a payment was made: `charged to Visa ending 4242`."""
    manual = MANUAL_GATEWAYS.get(payment.gateway)
    return manual.charged if manual else f"charged to {describe_card(payment)}"


def describe_refund_target(payments: Sequence[Payment]) -> str:
    """Describe where a refund of the payments goes: `refunded to Visa ending 4242`."""
    targets = []
    for payment in payments:
        manual = MANUAL_GATEWAYS.get(payment.gateway)
        targets.append(manual.refunded if manual else f"refunded to {describe_card(payment)}")
    return " and ".join(dict.fromkeys(targets))


def describe_refund(payments: Sequence[Payment], amount: Decimal) -> str:
    """Describe a refund of the payments: `$50.00 is refunded to Visa ending 4242.`"""
    return f"{money.format_amount(amount)} is {describe_refund_target(payments)}."


def describe_release(reservation: Reservation) -> str:
    """Describe that authorized amounts are released instead of captured."""
    payments = reservation.paid_payments
    if not payments:
        return "Nothing was charged."
    amount = sum((each.amount for each in payments), money.ZERO)
    if payments[0].is_manual:
        return describe_refund(payments, amount)
    cards = " and ".join(dict.fromkeys(map(describe_card, payments)))
    hold = f"The hold of {money.format_amount(amount)} on {cards}"
    return f"Nothing was charged. {hold} is released."


def describe_card(payment: Payment) -> str:
    """Describe the card as on a receipt: `Visa ending 4242`."""
    return f"{payment.card_brand} ending {payment.card_last4}".strip()
