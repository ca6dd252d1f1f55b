"""The second transaction of a checkout: applies the gateway's answer to the reservation (B16).

Checkout calls it, and so does payment_recovery if the worker that began the checkout has died.
"""

import datetime as dt
from typing import Unpack

from django.conf import settings

from accounts.act import Act
from accounts.limits import CARD_DECLINED, get_payer_key
from accounts.models import User
from payments import lifecycle
from payments.gateway_results import apply_gateway_result, lock_payment
from payments.gateways.base import GatewayPayment
from payments.ledger.posting import post_booking
from payments.models import Payment, PaymentState
from reservations.booking.holds import release_holds_for
from reservations.booking.locks import lock_drafts_of_customer, lock_reservation
from reservations.models import Reservation
from reservations.models.reservation import TransitionColumns
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill
from roombook.db.transactions import in_transaction

# A booking can rely on a payment in one of these states.
FUNDED_STATES = frozenset({PaymentState.AUTHORIZED, PaymentState.CAPTURED})


@in_transaction
def apply_authorization(
    payment: Payment,
    result: GatewayPayment,
    *,
    room_id: int | None = None,
    by: User | None = None,
    now: dt.datetime,
) -> tuple[Reservation, Payment]:
    """Record the gateway's answer, and book the reservation or make it a draft again.

    Repeated and concurrent calls are safe: only the call that resolves the payment changes the
    reservation, which can be Processing again for another payment by then. `by` is the customer who
    waits for the answer, or None when a payment is recovered. `room_id` saves a query (see
    `lock_reservation`).
    """
    if result.state not in {"action_required", *FUNDED_STATES}:
        # The reservation becomes a draft again, which holds its room.
        lock_drafts_of_customer(payment.reservation_id, now=now)
    reservation = lock_reservation(payment.reservation_id, room_id=room_id)
    payment = lock_payment(payment.pk)
    # If the meeting began before the outcome was known, the payment is voided and not captured.
    is_bookable = reservation.status == Status.PROCESSING and reservation.start > now
    is_resolved = record_answer(reservation, payment, result, counts=is_bookable, now=now)
    if not is_resolved or reservation.status != Status.PROCESSING:
        return reservation, payment
    if payment.counts:
        book(reservation, payment=payment, is_live_payment=payment.is_live, by=by, now=now)
    else:
        _return_to_draft(reservation, extends_hold=not _is_abandoned(payment, now), by=by, now=now)
    return reservation, payment


def record_answer(
    reservation: Reservation,
    payment: Payment,
    result: GatewayPayment,
    *,
    counts: bool | None = None,
    is_attempt: bool = True,
    now: dt.datetime,
) -> bool:
    """Record the gateway's answer to a payment; return whether that has resolved the payment.

    It has not if the customer still has to act at the bank, or if another call has resolved it
    before. `counts` says whether the payment pays for something if it is authorized, and
    `is_attempt` whether it is an attempt to charge a card (B16.6). The caller holds the locks of
    the reservation and the payment.
    """
    is_waiting, was_waiting = result.state == "action_required", payment.action_until is not None
    was_unresolved = payment.state == PaymentState.STARTED
    if was_unresolved and payment.is_called_off and (is_waiting or result.state == "authorized"):
        # Another process is voiding this payment. It stays unresolved until it is voided.
        return False
    has_failed = False
    if was_unresolved and is_waiting:
        _wait_for_customer(reservation, payment)
    else:
        counts = counts if was_unresolved else None
        apply_gateway_result(payment, result, counts=counts, now=now)
        has_failed = payment.state == PaymentState.DECLINED or _is_abandoned(payment, now)
    if was_unresolved and is_attempt:
        key = get_payer_key(reservation.user_id, reservation.pk if payment.is_by_link else None)
        if not was_waiting and not has_failed:
            # Also once it waits for the bank: such payments would keep good cards from being tried.
            CARD_DECLINED.give_back(key)
        elif was_waiting and has_failed:
            CARD_DECLINED.add_failure(key, now=now)
    return was_unresolved and not is_waiting


def _wait_for_customer(reservation: Reservation, payment: Payment) -> None:
    """Let the payment wait until the customer has confirmed it at the bank (B21.3).

    The time is counted from its beginning, and ends with the start of the meeting; if the payment
    is for its extension, with its end.
    """
    if payment.action_until is None:
        has_begun = reservation.start <= payment.created_at
        latest = reservation.end if has_begun else reservation.start
        payment.action_until = min(lifecycle.get_action_deadline(payment), latest)
        payment.lease_until = payment.action_until
        payment.save(update_fields=["action_until", "lease_until"])


def _return_to_draft(
    reservation: Reservation, *, extends_hold: bool, by: User | None, now: dt.datetime
) -> None:
    """Make the reservation a draft again, and return the promo use and the included hours.

    The hold is extended, so that the customer can try another card, unless a customer who has not
    confirmed the payment in time had the room for long enough. A hold by staff is never shortened.
    """
    bill.return_benefits(reservation, now=now)
    hold_ends = []
    if extends_hold:
        hold_ends.append(now + dt.timedelta(minutes=settings.HOLD_MINUTES_AFTER_DECLINE))
    promised = _get_hold_by_staff(reservation)
    if promised is not None and promised > now:
        hold_ends.append(promised)
    if not hold_ends:
        reservation.transition_to(Status.NEW, Act(by, now))
        return
    hold_until = min(max(hold_ends), reservation.start)
    reservation.transition_to(Status.NEW, Act(by, now), hold_until=hold_until)
    release_holds_for(reservation, now=now)


def _get_hold_by_staff(reservation: Reservation) -> dt.datetime | None:
    """Return the end of the hold before the first attempt if staff promised it, as with a link."""
    until = reservation.price_held_until
    if until is None or reservation.created_by_id is not None:
        return until
    # Only staff hold a customer's draft for longer than this.
    own_hold = dt.timedelta(minutes=settings.HOLD_MINUTES_CUSTOMER)
    return until if until > reservation.created_at + own_hold else None


def _is_abandoned(payment: Payment, now: dt.datetime) -> bool:
    """Return whether the customer has not confirmed the payment in time."""
    is_voided = payment.state == PaymentState.VOIDED
    return is_voided and payment.action_until is not None and payment.action_until <= now


def book(
    reservation: Reservation,
    *,
    payment: Payment | None = None,
    is_live_payment: bool,
    by: User | None,
    now: dt.datetime,
    **columns: Unpack[TransitionColumns],
) -> None:
    """Set the status to Confirmed, or to Pending if the center has to approve requests.

    `columns` are saved together with the status. The caller holds the lock.
    """
    is_instant = reservation.room.is_live_inventory
    columns["booked_at"] = now
    columns["is_live"] = is_instant and is_live_payment
    columns |= reservation.advance_calendar(now)
    if payment is not None:
        reservation.paid_payments = [payment]
    status = Status.CONFIRMED if is_instant else Status.PENDING
    reservation.transition_to(status, Act(by, now), **columns)
    send = emails.send_booking_confirmed if is_instant else emails.send_request_received
    send(reservation, now=now)
    if status == Status.CONFIRMED:
        post_booking(reservation.pk, is_test=not is_live_payment, by=by, now=now)
