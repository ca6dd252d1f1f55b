"""Approves and declines requests, and lets them expire (B15)."""

import datetime as dt

from accounts.act import Act
from payments import lifecycle
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import Payment
from reservations import availability
from reservations.booking.charging import lock_booked_payments, release
from reservations.booking.commands import Obstacle, command
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill
from roombook.errors import ReservationNotOpen


def approve(act: Act, reservation_id: int) -> Reservation:
    """Approve a request: check availability again, confirm it, and capture the authorized money.

    Raises:
        SlotUnavailable, ReservationNotOpen: also if the authorization has expired; then the request
            expires, too.
        ServiceUnavailable: the gateway does not answer.
    """
    _refresh_authorization(reservation_id, now=act.now)
    reservation = confirm_or_expire(act, reservation_id)
    if reservation.status == Status.EXPIRED:
        raise ReservationNotOpen(
            "The money for this request is no longer reserved, so the request has expired."
            " The customer has to book again."
        )
    return reservation


@command
def decline(act: Act, reservation_id: int, *, message: str = "") -> tuple[Reservation, Obstacle]:
    """Decline a request, return its promo use and hours, and void its authorization.

    The `message` of staff is added to the e-mail.
    """
    reservation = _lock_request(reservation_id)
    _end_request(reservation, Status.DECLINED, act)
    emails.send_request_declined(reservation, message=message, now=act.now)
    return reservation, None


def _refresh_authorization(reservation_id: int, *, now: dt.datetime) -> None:
    """Check that the payment is still authorized at the gateway, before the room is confirmed."""
    payment = (
        Payment.objects.authorized()
        .filter(reservation=reservation_id, reservation__status=Status.PENDING)
        .first()
    )
    if payment is not None:
        result = lifecycle.fetch_gateway_status(payment, now=now)
        lifecycle.store_gateway_status(payment, result, now=now)


@command
def confirm_or_expire(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Confirm a request, or let it expire if its authorization has."""
    now = act.now
    reservation = _lock_request(reservation_id)
    is_paid = bool(lock_booked_payments(reservation))
    if reservation.total_cost and not is_paid:
        # The authorization has expired, so the booking could no longer be charged.
        _end_request(reservation, Status.EXPIRED, act)
        emails.send_authorization_expired(reservation, now=now)
        return reservation, None
    availability.evaluate_reservation(reservation, now=now).raise_if_unavailable()
    reservation.transition_to(Status.CONFIRMED, act, **reservation.advance_calendar(now))
    emails.send_request_approved(reservation, now=now)
    post(reservation.pk, EventKind.BOOKED, by=act.user, now=now)
    return reservation, None


@command
def expire(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Let a request expire, return its promo use and hours, and void its authorization."""
    reservation = _lock_request(reservation_id)
    _end_request(reservation, Status.EXPIRED, act)
    emails.send_request_expired(reservation, now=act.now)
    return reservation, None


def _end_request(reservation: Reservation, status: Status, act: Act) -> None:
    # The e-mail tells what is released.
    payments = reservation.paid_payments = lock_booked_payments(reservation)
    reservation.transition_to(status, act, **reservation.advance_calendar(act.now))
    bill.return_benefits(reservation, now=act.now)
    release(payments)
    post(reservation.pk, EventKind.ENDED, by=act.user, now=act.now)


def _lock_request(reservation_id: int) -> Reservation:
    reservation = lock_reservation(reservation_id)
    if reservation.status != Status.PENDING:
        raise ReservationNotOpen("Only a pending request can be answered.")
    return reservation
