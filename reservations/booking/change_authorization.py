"""The second transaction of a change that costs more: applies the gateway's answer (B27).

changes.py calls it, and so does payment_recovery if the worker that began the change has died.
"""

import copy
import datetime as dt
from dataclasses import replace

from django.db import transaction

from centers.models import MeetingRoom
from payments.gateway_results import lock_payment
from payments.gateways.base import GatewayPayment
from payments.models import Payment
from reservations.booking import change_steps
from reservations.booking.authorization import FUNDED_STATES, record_answer
from reservations.booking.change_request import read_request, resolve_change
from reservations.booking.locks import lock_for_rescheduling
from reservations.models import BookingChange, ChangeState, Reservation
from reservations.models.status import Status
from reservations.notifications.confirmation import describe_card
from roombook.db.transactions import in_transaction
from roombook.errors import DomainError, InvalidRequest, ReservationNotOpen

CHANGED_MEANWHILE = "The reservation has changed meanwhile. Please look at it again."
NOT_PAID = "The payment was called off."


@in_transaction
def apply_change_authorization(
    payment: Payment, result: GatewayPayment, *, now: dt.datetime
) -> tuple[Reservation, Payment]:
    """Record the gateway's answer, and apply the change of the booking or abandon it.

    Repeated and concurrent calls are safe: only the call that resolves the payment applies the
    change. It is abandoned if it is no longer possible, at the same price, for the booking as it
    was: then the authorization is for nothing, and is voided (`pays_for_nothing`).
    """
    change = BookingChange.objects.get(payment=payment.pk)
    reservation, room = lock_for_rescheduling(payment.reservation_id, change.room_id)
    payment = lock_payment(payment.pk)
    if not record_answer(reservation, payment, result, is_attempt=not change.is_by_staff, now=now):
        return reservation, payment
    is_unchanged = reservation.calendar_sequence == change.calendar_sequence
    if payment.state not in FUNDED_STATES:
        message = payment.message or (NOT_PAID if is_unchanged else CHANGED_MEANWHILE)
        resolve_change(change, ChangeState.ABANDONED, message=message, now=now)
        return reservation, payment
    former = copy.copy(reservation)
    try:
        with transaction.atomic():
            _apply(change, reservation, room, payment, now=now)
    except DomainError as error:
        message = " ".join(error.fields.values()) if isinstance(error, InvalidRequest) else ""
        resolve_change(change, ChangeState.ABANDONED, message=message or error.message, now=now)
        return former, payment
    return reservation, payment


def _apply(
    change: BookingChange,
    reservation: Reservation,
    room: MeetingRoom,
    payment: Payment,
    *,
    now: dt.datetime,
) -> None:
    """Apply the change, or raise DomainError if it is not what the customer agreed to."""
    is_unchanged = reservation.calendar_sequence == change.calendar_sequence
    if reservation.status != Status.CONFIRMED or not is_unchanged:
        raise ReservationNotOpen(CHANGED_MEANWHILE)
    request = read_request(change)
    result = change_steps.begin(reservation, room, request, is_by_staff=change.is_by_staff, now=now)
    change_steps.evaluate(result, now=now).raise_if_unavailable()
    result = change_steps.apply(
        result, request, is_by_staff=change.is_by_staff, by=change.by, now=now
    )
    if (result.old_total, result.new_total) != (change.old_total, change.new_total):
        raise ReservationNotOpen(CHANGED_MEANWHILE)
    resolve_change(change, ChangeState.APPLIED, now=now)
    payment.counts = True
    payment.save(update_fields=["counts"])
    result = replace(result, charge=payment.amount)
    way = describe_card(payment)
    change_steps.record(result, way=way, by=change.by, now=now)
