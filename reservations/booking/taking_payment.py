"""Staff take the payment of a draft, and book it (B26).

In cash, at a terminal or on account, no gateway is called. So one transaction claims everything,
records the payment and books the reservation: after a crash there is either all of it or nothing.
The saved card is charged by a checkout.
"""

import datetime as dt
from decimal import Decimal

from django.db import IntegrityError

from accounts import roles
from accounts.act import Act
from accounts.models import User
from payments import gateways, saved_cards
from payments.gateways.manual import ACCOUNT
from payments.manual_payments import record_manual_payment, require_credit
from payments.models import PaymentPurpose, SavedCard
from reservations.booking import authorization, checkout, claims
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation, history
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, ReservationNotOpen

ALREADY_BOOKED = "This reservation is booked already. No payment was recorded."
NOT_PERMITTED = "Your role does not allow bookings on account."


def take_manual_payment(
    draft: Reservation,
    *,
    gateway: str,
    reference: str = "",
    shown_total: Decimal | None = None,
    by: User,
    now: dt.datetime,
) -> Reservation:
    """Record that the customer of a draft has paid `shown_total` to staff, and book it.

    A draft that costs nothing is booked without a payment.

    Raises:
        SlotUnavailable, PromoCodeInvalid, AllowanceExhausted, ReservationNotOpen, InvalidRequest:
            nothing was recorded.
    """
    if draft.is_new:
        claims.require_current_price(draft, shown_total=shown_total, by=by, now=now)
    return _book(draft, gateway=gateway, reference=reference, by=by, now=now)


def charge_saved_card(
    draft: Reservation, *, shown_total: Decimal | None, by: User, now: dt.datetime
) -> Reservation:
    """Charge the customer's saved card, to which they have agreed, and book the draft (B26.6).

    The consent is recorded first. The customer is not there to confirm the payment at the bank, so
    the card is declined if the bank asks for that.

    Raises the errors of `check_out`.
    """
    _record_consent_to_booking(draft, by=by, now=now)
    return checkout.check_out(
        draft.pk,
        user=draft.user,
        payment_method=checkout.PaymentMethod(use_saved_card=True, is_customer_present=False),
        shown_total=shown_total,
        by=by,
        now=now,
    )


@in_transaction
def _record_consent_to_booking(draft: Reservation, *, by: User, now: dt.datetime) -> None:
    reservation = lock_reservation(draft.pk, room_id=draft.room_id)
    if not reservation.is_new:
        raise ReservationNotOpen(ALREADY_BOOKED)
    card = saved_cards.get_usable_saved_card(draft.user, now=now)
    record_consent(reservation, card, by=by, now=now)


def record_consent(
    reservation: Reservation, card: SavedCard, *, by: User, now: dt.datetime
) -> None:
    """Record that the customer has agreed that staff charge the saved card (B26.6)."""
    changes = {"saved_card_consent": (None, card.description)}
    history.record_changes(reservation, changes, Act(by, now))


@in_transaction
def _book(
    draft: Reservation, *, gateway: str, reference: str, by: User, now: dt.datetime
) -> Reservation:
    if gateway == ACCOUNT.name:
        require_account_payment(draft, draft.total_cost, by=by)
    reservation = claims.claim(draft, now=now)
    if not reservation.is_new:
        raise ReservationNotOpen(ALREADY_BOOKED)
    if not reservation.total_cost:
        is_live = gateways.get_current_gateway().is_live
        authorization.book(reservation, is_live_payment=is_live, by=by, now=now)
        return reservation
    try:
        payment = record_manual_payment(
            reservation_id=reservation.pk,
            reservation_uid=reservation.uid,
            center_id=reservation.room.center_id,
            time_zone_id=reservation.room.center.time_zone_id,
            gateway=gateway,
            amount=reservation.total_cost,
            currency=reservation.currency,
            reference=reference,
            by=by,
            purpose=PaymentPurpose.BOOKING,
            now=now,
        )
    except IntegrityError as error:
        # The void or refund of an earlier attempt is due. `reconcile_payments` executes it.
        raise ReservationNotOpen(claims.EARLIER_PAYMENT) from error
    authorization.book(
        reservation, payment=payment, is_live_payment=payment.is_live, by=by, now=now
    )
    return reservation


def require_account_payment(reservation: Reservation, amount: Decimal, *, by: User) -> None:
    """Raise InvalidRequest unless staff may charge the amount to the customer's account (B26.4).

    Call it first in the transaction: it locks the customer's account.
    """
    if not roles.has_permission(by, roles.TAKE_ON_ACCOUNT, reservation.room.center_id):
        raise InvalidRequest({"gateway": NOT_PERMITTED})
    require_credit(reservation.user, amount)
