"""Checkout: pay for a draft reservation and book it (B16).

The payment gateway is never called inside a database transaction. Checkout therefore runs in two
transactions, each followed by a gateway call:

1. `_claim`: lock the room and the reservation, check availability again, consume the promo code
   and the included hours, set the status to Processing and create a Payment with a lease.
2. The gateway authorizes the amount.
3. `authorization.apply_authorization`: set the status to Confirmed (or Pending, or back to New if
   the card is declined). From this commit on, the booking is acknowledged.
4. The gateway captures the amount. If that fails, the capture stays due.

If a worker dies in between, the client's retry or the command `reconcile_payments` resolves the
payment once its lease has expired (payment_recovery.py). docs/checkout.md says what happens after a
crash at each step.
"""

import datetime as dt
import functools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import ParamSpec

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError, transaction

from accounts.act import Act
from accounts.limits import (
    CARD_DECLINED,
    PARTNER_CODE,
    check_declined_cards,
    get_payer_key,
)
from accounts.models import User
from payments import gateways, lifecycle, saved_cards
from payments.cards import Card, CardFields
from payments.gateways.base import GatewayUnavailable
from payments.models import Payment, PaymentState, SavedCard
from reservations.booking import authorization, claims, payment_recovery
from reservations.booking.locks import lock_reservation
from reservations.models import Partner, Reservation
from reservations.models.codes import normalize_code
from reservations.models.status import BOOKED_STATUSES, Status
from roombook.db.transactions import in_transaction
from roombook.errors import (
    CardDeclined,
    DomainError,
    InvalidRequest,
    ReservationNotOpen,
    ServiceUnavailable,
    TooManyRequests,
)
from roombook.metrics.counters import CHECKOUTS

P = ParamSpec("P")

OUTCOME_UNKNOWN = (
    "We cannot tell yet whether the booking went through. Please repeat it: that is safe, and the"
    " card is charged at most once."
)
# The outcome of a checkout, in the metrics, that waits until the customer confirms the payment.
ACTION_REQUIRED = "ActionRequired"


@dataclass(frozen=True, slots=True)
class PaymentMethod:
    """How the customer wants to pay. It is validated only if there is something to pay.

    `one_time_card` is a card that the gateway stores, and that is not the account's saved card. It
    was entered by a payment link with the number `link_number`.
    Without `is_customer_present`, nobody can confirm the payment at the bank.
    """

    use_saved_card: bool = False
    card: CardFields | None = None
    save_card: bool = False
    one_time_card: SavedCard | None = None
    link_number: int | None = None
    is_customer_present: bool = True
    # Of the payer, for the limit of declined cards; empty if a member of staff pays.
    network_address: str = ""


def _reports_outcome(function: Callable[P, Reservation]) -> Callable[P, Reservation]:
    """Count each call by its status or the code of its error, and report a lost connection."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Reservation:
        outcome = DomainError.code
        try:
            reservation = function(*args, **kwargs)
            outcome = ACTION_REQUIRED if reservation.waiting_payment else reservation.status
        except DomainError as error:
            outcome = error.code
            raise
        except (OperationalError, InterfaceError) as error:
            outcome = ServiceUnavailable.code
            raise ServiceUnavailable(OUTCOME_UNKNOWN) from error
        finally:
            CHECKOUTS.labels(outcome).inc()
        return reservation

    return wrapper


@_reports_outcome
def check_out(
    reservation_id: int,
    *,
    user: User,
    payment_method: PaymentMethod,
    partner_code: str = "",
    shown_total: Decimal | None = None,
    by: User | None = None,
    now: dt.datetime,
) -> Reservation:
    """Pay for a draft and book it. Safe to call again after any failure.

    `by` is the member of staff who does it for the customer `user` (B26), and `shown_total` the
    total that a page of this service has just shown.

    Returns the reservation with status Confirmed, Pending or Processing: the payment is not
    resolved yet, or the customer has to confirm it at the bank (`Reservation.waiting_payment`).

    Raises:
        CardDeclined, SlotUnavailable, PromoCodeInvalid, AllowanceExhausted, ReservationNotOpen,
        NoSavedCard, InvalidRequest, NotFound, TooManyRequests: nothing was charged.
        ServiceUnavailable: the database connection was lost; calling again gives the outcome.
    """
    draft = claims.get_own_reservation(reservation_id, user)
    if draft.status == Status.PROCESSING and payment_recovery.resolve_payments(
        reservation_id, user=user, now=now
    ):
        draft = claims.get_own_reservation(reservation_id, user)
    if claims.is_already_submitted(draft):
        return draft
    partner = get_partner(partner_code, user=user, now=now)
    source = _get_payment_source(draft, payment_method, now)
    is_by_link = payment_method.link_number is not None
    may_wait = False
    if payment_method.is_customer_present and lifecycle.is_confirmable(source):
        may_wait = True
        payments = draft.payments.filter(is_by_link=is_by_link)
        message = lifecycle.take_unreported_decline(payments, source)
        if message is not None:
            raise CardDeclined(message)
    actor = by or user
    claims.require_current_price(draft, shown_total=shown_total, by=actor, now=now)
    reservation, payment = _claim(
        draft,
        partner=partner,
        may_wait=may_wait,
        link_number=payment_method.link_number,
        by=actor,
        now=now,
    )
    if payment is None or source is None:
        return reservation
    reservation = _pay(reservation, payment, source, may_wait=may_wait, by=actor, now=now)
    if (
        payment_method.save_card
        and isinstance(source, Card)
        and reservation.status in BOOKED_STATUSES
    ):
        saved_cards.save_charged_card(user, source, now=now)
    return reservation


def dry_run(
    reservation_id: int,
    *,
    user: User,
    payment_method: PaymentMethod,
    partner_code: str = "",
    now: dt.datetime,
) -> Reservation:
    """Check the slot, price, promo code, included hours and card (TestMode). Books nothing.

    A declined card and a wrong partner code count as in a checkout, and an outdated price is
    updated.
    """
    draft = claims.get_own_reservation(reservation_id, user)
    if claims.is_already_submitted(draft):
        return draft
    get_partner(partner_code, user=user, now=now)
    source = _get_payment_source(draft, payment_method, now)
    claims.require_current_price(draft, by=user, now=now)
    _consume_and_roll_back(draft, now=now)
    if source is not None:
        with CARD_DECLINED.count_failure(user.pk, CardDeclined, now=now):
            lifecycle.check_card(source)
    return claims.get_own_reservation(reservation_id, user)


def get_partner(code: str, *, user: User, now: dt.datetime) -> Partner | None:
    """Return the active partner with the code (in any case), or None for an empty code.

    A wrong code counts towards the limit against guessing.
    """
    code = normalize_code(code)
    if not code:
        return None
    partner = Partner.objects.filter(code=code, is_active=True).first()
    if partner is None:
        PARTNER_CODE.attempt(user.pk, now=now)
        raise InvalidRequest({"partner_code": "There is no such partner."})
    # After the look-up: if parallel attempts have filled the window, the right code came too late.
    PARTNER_CODE.check(user.pk, now=now)
    return partner


def _get_payment_source(
    reservation: Reservation, payment_method: PaymentMethod, now: dt.datetime
) -> Card | SavedCard | None:
    """Return the card to charge, or None if there is nothing to pay.

    Raises TooManyRequests after too many declined cards from the same network.
    """
    if not reservation.total_cost:
        return None
    is_by_link = payment_method.link_number is not None
    check_declined_cards(payment_method.network_address, is_by_link=is_by_link, now=now)
    if payment_method.one_time_card:
        return payment_method.one_time_card
    return lifecycle.get_payment_source(
        reservation.user,
        use_saved=payment_method.use_saved_card,
        payment_info=payment_method.card,
        now=now,
    )


def _limit_waiting_payments(user: User) -> None:
    """Raise TooManyRequests if the account lets too many rooms wait for its bank already.

    A payment that another checkout has just begun may wait soon, so it counts too.
    """
    begun = Payment.objects.filter(
        state=PaymentState.STARTED, is_called_off=False, is_by_link=False, reservation__user=user
    )
    if begun.count() >= settings.HELD_DRAFTS_MAX:
        raise TooManyRequests(retry_after=60)


# --- The steps -----------------------------------------------------------------------------------


@in_transaction
def _claim(
    draft: Reservation,
    *,
    partner: Partner | None,
    may_wait: bool,
    link_number: int | None,
    by: User,
    now: dt.datetime,
) -> tuple[Reservation, Payment | None]:
    """Claim everything that the booking needs, and create its payment if it costs something.

    `may_wait` says whether the customer may have to confirm the payment at the bank. `link_number`
    is that of the payment link, if one is paid.

    If another request has submitted the reservation meanwhile, return it unchanged. Raises
    ReservationNotOpen if another request has changed the total: the customer has not seen that; or
    if an earlier payment is still open.
    """
    user = draft.user
    reservation = claims.claim(draft, now=now)
    if not reservation.is_new:
        return reservation, None
    if link_number is not None:
        claims.require_open_link(reservation, link_number)
    gateway = gateways.get_current_gateway()
    if not reservation.total_cost:
        authorization.book(
            reservation, is_live_payment=gateway.is_live, by=by, partner=partner, now=now
        )
        return reservation, None
    # Count it only here, so that a double click is one attempt. `record_answer` gives it back.
    is_by_link = link_number is not None
    CARD_DECLINED.attempt(get_payer_key(user.pk, reservation.pk if is_by_link else None), now=now)
    if may_wait and not is_by_link:
        # Only here, because the attempt's row makes other checkouts of the account wait.
        _limit_waiting_payments(user)
    reservation.transition_to(
        Status.PROCESSING,
        Act(by, now),
        # Also if it is None: a declined attempt may have stored a partner.
        partner=partner,
        price_held_until=reservation.price_held_until or reservation.hold_until,
    )
    try:
        payment = lifecycle.create_payment(
            reservation_id=reservation.pk,
            reservation_uid=reservation.uid,
            center_id=reservation.room.center_id,
            amount=reservation.total_cost,
            currency=reservation.currency,
            gateway=gateway,
            now=now,
            is_by_link=is_by_link,
        )
    except IntegrityError as error:
        # The void or refund of an earlier attempt is due. `reconcile_payments` executes it.
        raise ReservationNotOpen(claims.EARLIER_PAYMENT) from error
    return reservation, payment


@in_transaction
def _consume_and_roll_back(draft: Reservation, *, now: dt.datetime) -> None:
    """Run every check of `_claim` without changing a row."""
    claims.consume(lock_reservation(draft.pk, room_id=draft.room_id), now=now)
    transaction.set_rollback(True)


def _pay(
    reservation: Reservation,
    payment: Payment,
    source: Card | SavedCard,
    *,
    may_wait: bool,
    by: User,
    now: dt.datetime,
) -> Reservation:
    """Authorize, apply the authorization, capture."""
    try:
        result = lifecycle.authorize_payment(
            payment,
            source,
            description=f"Reservation {payment.reservation_id}",
            on_session=may_wait,
        )
    except GatewayUnavailable:
        # The outcome is unknown, so the slot stays held until the payment is resolved.
        rows = Reservation.objects.select_related("room__center")
        return _require_submitted(rows.get(pk=payment.reservation_id))
    reservation, payment = authorization.apply_authorization(
        payment, result, room_id=reservation.room_id, by=by, now=now
    )
    if payment.state == PaymentState.DECLINED:
        raise CardDeclined(payment.message)
    payment_recovery.try_fulfil_obligations(payment, reservation.status, now=now)
    return _require_submitted(reservation)


def _require_submitted(reservation: Reservation) -> Reservation:
    """Return the reservation, or raise if another process has called off the payment meanwhile."""
    if reservation.status in BOOKED_STATUSES or reservation.status == Status.PROCESSING:
        return reservation
    raise ReservationNotOpen("The payment was called off. You were not charged.")
