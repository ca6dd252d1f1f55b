"""Checkout: pay for a draft reservation and book it (B16, B26).

A card pays in the four steps of charging.py: `_claim` claims the slot, the promo code and the
included hours, and sets the status to Processing; `Booking` sets it to Confirmed (or Pending, or
back to New if the card is declined).

Staff can take the payment of a draft in cash, at a terminal or on account. No gateway is called
then, so one transaction claims everything, records the payment and books the reservation: after a
crash there is either all of it or nothing.
"""

import datetime as dt
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import ParamSpec, Self, Unpack

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError

from accounts import roles
from accounts.act import Act
from accounts.limits import CARD_DECLINED, PARTNER_CODE
from accounts.models import User
from payments import gateways, lifecycle, saved_cards
from payments.cards import Card
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS
from payments.ledger.posting import post_booking
from payments.manual_payments import record_manual_payment, require_credit
from payments.models import Payment, PaymentPurpose, PaymentState, SavedCard
from reservations import availability
from reservations.booking import charging, drafts
from reservations.booking.charging import (
    Claim,
    PaymentMethod,
    Purchase,
    Source,
)
from reservations.booking.commands import Obstacle, Refused, command_after
from reservations.booking.holds import release_holds_for
from reservations.booking.locks import lock_drafts_of_customer, lock_reservation
from reservations.models import Partner, Reservation, history
from reservations.models.codes import normalize_code
from reservations.models.reservation import TransitionColumns, get_own_reservation
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.notifications import emails
from reservations.pricing import bill
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

SUBMITTED_STATUSES = BOOKED_STATUSES | {Status.PROCESSING}

ALREADY_BOOKED = "This reservation is booked already. No payment was recorded."
EARLIER_PAYMENT = "An earlier payment of this reservation has not been returned yet."
LINK_HAS_ENDED = "This payment link has ended. You were not charged."
NOT_TAKEN = "Choose how the customer pays."
NOT_PERMITTED = "Your role does not allow bookings on account."
OUTCOME_UNKNOWN = (
    "We cannot tell yet whether the booking went through. Please repeat it: that is safe, and the"
    " card is charged at most once."
)
PRICE_HAS_CHANGED = "The price has changed. Please look at it again."
# The outcome of a checkout, in the metrics, that waits until the customer confirms the payment.
ACTION_REQUIRED = "ActionRequired"


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
    act: Act,
    reservation_id: int,
    *,
    payment_method: PaymentMethod,
    partner_code: str = "",
    shown_total: Decimal | None = None,
    link_number: int | None = None,
) -> Reservation:
    """Pay for a draft and book it, by its customer or by staff (B26). Safe to repeat if it fails.

    `shown_total` is the total that a page of this service has just shown, and `link_number` that of
    the payment link, if one is paid.

    Returns the reservation with status Confirmed, Pending or Processing: the payment is not
    resolved yet, or the customer has to confirm it at the bank (`Reservation.waiting_payment`).

    Raises:
        CardDeclined, SlotUnavailable, PromoCodeInvalid, AllowanceExhausted, ReservationNotOpen,
        NoSavedCard, InvalidRequest, NotFound, TooManyRequests: nothing was charged.
        ServiceUnavailable: the database connection was lost; calling again gives the outcome.
    """
    user, now = act.customer or User.objects.get(reservations=reservation_id), act.now
    draft = get_own_reservation(reservation_id, user)
    if draft.status == Status.PROCESSING:
        charging.resolve_payments(reservation_id, user=user, now=now)
        draft = get_own_reservation(reservation_id, user)
    if is_already_submitted(draft):
        return draft
    partner = get_partner(partner_code, user=user, now=now)
    source = payment_method.get_source(user, now=now) if draft.total_cost else None
    declined = payment_method.take_unreported_decline(draft.payments.all(), source)
    if declined is not None:
        raise CardDeclined(declined.message)
    require_current_price(draft, act, shown_total=shown_total)
    claim = _claim(
        draft, act, payment_method, source=source, partner=partner, link_number=link_number
    )
    claim = charging.charge(claim, payment_method, act)
    if claim.reservation.status not in SUBMITTED_STATUSES:
        raise ReservationNotOpen("The payment was called off. You were not charged.")
    is_charged = claim.payment is not None and claim.reservation.status in BOOKED_STATUSES
    if payment_method.save_card and is_charged and isinstance(source, Card):
        saved_cards.save_charged_card(user, source, now=now)
    return claim.reservation


def dry_run(
    act: Act, reservation_id: int, *, payment_method: PaymentMethod, partner_code: str = ""
) -> Reservation:
    """Check the slot, price, promo code, included hours and card (TestMode). Books nothing.

    A declined card and a wrong partner code count as in a checkout, and an outdated price is
    updated.
    """
    user, now = act.customer or User.objects.get(reservations=reservation_id), act.now
    draft = get_own_reservation(reservation_id, user)
    if is_already_submitted(draft):
        return draft
    get_partner(partner_code, user=user, now=now)
    source = payment_method.get_source(user, now=now) if draft.total_cost else None
    require_current_price(draft, act)
    book_draft.preview(act, draft.pk)
    if source is not None:
        with CARD_DECLINED.count_failure(user.pk, CardDeclined, now=now):
            lifecycle.check_card(source)
    return get_own_reservation(reservation_id, user)


# --- Checks --------------------------------------------------------------------------------------


def is_already_submitted(reservation: Reservation) -> bool:
    """Return whether an earlier checkout has succeeded or is in progress.

    Raises ReservationNotOpen if the reservation is not a draft either.
    """
    if reservation.status in SUBMITTED_STATUSES:
        return True
    if not reservation.is_new:
        raise ReservationNotOpen
    return False


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


def require_current_price(
    draft: Reservation, act: Act, *, shown_total: Decimal | None = None
) -> None:
    """Update an outdated price. Raise ReservationNotOpen if nobody has seen the total.

    So a Checkout whose answer was lost can be repeated: the new total is charged only after another
    response has shown it. `shown_total` is the total that another page has just shown.
    """
    _update_price(draft, act)
    _require_seen_price(draft, shown_total)


def _update_price(draft: Reservation, act: Act) -> None:
    if drafts.has_outdated_price(draft, now=act.now) and _reprice(draft, act):
        raise ReservationNotOpen(PRICE_HAS_CHANGED)


def _require_seen_price(draft: Reservation, shown_total: Decimal | None) -> None:
    is_unseen = draft.has_unseen_price if shown_total is None else draft.total_cost != shown_total
    if is_unseen:
        raise ReservationNotOpen(PRICE_HAS_CHANGED)


@in_transaction
def _reprice(draft: Reservation, act: Act) -> bool:
    reservation = lock_reservation(draft.pk, room_id=draft.room_id)
    if not reservation.is_new or reservation.payable_until <= act.now:
        return False
    return drafts.reprice_if_outdated(reservation, act)


def _require_open_link(reservation: Reservation, number: int) -> None:
    """Raise ReservationNotOpen if the payment link with the number must not be paid (any more).

    It may have been cancelled, or the account disabled, since the payer has opened it. The caller
    holds the lock.
    """
    is_active = User.objects.filter(pk=reservation.user_id, is_active=True).exists()
    if reservation.payment_link_number != number or not is_active:
        raise ReservationNotOpen(LINK_HAS_ENDED)


def _limit_waiting_payments(user: User) -> None:
    """Raise TooManyRequests if the account lets too many rooms wait for its bank already.

    A payment that another checkout has just begun may wait soon, so it counts too.
    """
    begun = Payment.objects.filter(
        state=PaymentState.STARTED, is_called_off=False, is_by_link=False, reservation__user=user
    )
    if begun.count() >= settings.HELD_DRAFTS_MAX:
        raise TooManyRequests(retry_after=60)


# --- The booking of a draft ----------------------------------------------------------------------


@in_transaction
def _claim(
    draft: Reservation,
    act: Act,
    payment_method: PaymentMethod,
    *,
    source: Source | None,
    partner: Partner | None,
    link_number: int | None,
) -> Claim:
    """Claim everything that the booking needs, and create its payment if it costs something.

    If another request has submitted the reservation meanwhile, it is returned unchanged. Raises
    ReservationNotOpen if another request has changed the total: the customer has not seen that; or
    if an earlier payment is still open.
    """
    reservation = _lock_and_consume(draft, now=act.now)
    if not reservation.is_new:
        return Claim(reservation)
    if link_number is not None:
        _require_open_link(reservation, link_number)
    if not reservation.total_cost:
        book(reservation, act, partner=partner)
        return Claim(reservation)
    payment_method.count_attempt(reservation, now=act.now)
    if isinstance(source, SavedCard) and not payment_method.is_customer_present:
        record_consent(reservation, source, act)
    if payment_method.may_wait(source) and not payment_method.is_by_link:
        # Only here, because the attempt's row makes other checkouts of the account wait.
        _limit_waiting_payments(draft.user)
    reservation.transition_to(
        Status.PROCESSING,
        act,
        # Also if it is None: a declined attempt may have stored a partner.
        partner=partner,
        price_held_until=reservation.price_held_until or reservation.hold_until,
    )
    payment = charging.create_payment(
        reservation,
        amount=reservation.total_cost,
        center_id=reservation.room.center_id,
        is_by_link=payment_method.is_by_link,
        # Its void or refund is due. `reconcile_payments` executes it.
        refusal=EARLIER_PAYMENT,
        now=act.now,
    )
    return Claim(reservation, payment, source)


def _lock_and_consume(draft: Reservation, *, now: dt.datetime) -> Reservation:
    """Lock the reservation, and claim all that the booking needs.

    If another request has submitted it meanwhile, return it unchanged: it is no draft any more.
    Raises ReservationNotOpen if another request has changed the total, or the errors of `_consume`.
    """
    reservation = lock_reservation(draft.pk, room_id=draft.room_id)
    if is_already_submitted(reservation):
        return reservation
    if reservation.total_cost != draft.total_cost:
        raise ReservationNotOpen(PRICE_HAS_CHANGED)
    _consume(reservation, now=now)
    return reservation


def _consume(reservation: Reservation, *, now: dt.datetime) -> None:
    """Claim the slot, the promo code and the included hours, or raise.

    The caller holds the lock.
    """
    if not reservation.is_new:
        raise ReservationNotOpen
    if reservation.payable_until <= now:
        raise ReservationNotOpen("This reservation's time has passed.")
    user = reservation.user
    release_holds_for(reservation, now=now)
    availability.evaluate_reservation(reservation, now=now, for_user=user).raise_if_unavailable()
    bill.consume_benefits(reservation, now=now)


class Booking(Purchase):
    """A draft that is being booked: its status is Processing."""

    purpose = PaymentPurpose.BOOKING
    description = "Reservation"

    @classmethod
    def lock(
        cls, payment: Payment, *, may_be_paid: bool, room_id: int | None, now: dt.datetime
    ) -> Self:
        if not may_be_paid:
            # The reservation becomes a draft again, which holds its room.
            lock_drafts_of_customer(payment.reservation_id, now=now)
        return cls(lock_reservation(payment.reservation_id, room_id=room_id))

    def pays(self, now: dt.datetime) -> bool:
        """Return False if the outcome came too late (`payable_until`)."""
        reservation = self.reservation
        return reservation.status == Status.PROCESSING and reservation.payable_until > now

    def conclude(self, payment: Payment, act: Act) -> None:
        """Book it, or make it a draft again; then the payment is voided."""
        if payment.counts:
            book(self.reservation, act, payment)
        else:
            self.abandon(payment, act)

    def abandon(self, payment: Payment, act: Act) -> None:
        """Make it a draft again, and return the promo use and the included hours.

        The hold is extended, so that the customer can try another card, unless a customer who has
        not confirmed the payment in time had the room for long enough. A hold by staff is never
        shortened.
        """
        reservation, now = self.reservation, act.now
        if reservation.status != Status.PROCESSING:
            return
        bill.return_benefits(reservation, now=now)
        hold_ends = []
        if not charging.was_not_confirmed(payment, now):
            hold_ends.append(now + dt.timedelta(minutes=settings.HOLD_MINUTES_AFTER_DECLINE))
        promised = _get_hold_by_staff(reservation)
        if promised is not None and promised > now:
            hold_ends.append(promised)
        if not hold_ends:
            reservation.transition_to(Status.NEW, act)
            return
        hold_until = min(max(hold_ends), reservation.payable_until)
        reservation.transition_to(Status.NEW, act, hold_until=hold_until)
        release_holds_for(reservation, now=now)


def _get_hold_by_staff(reservation: Reservation) -> dt.datetime | None:
    """Return the end of the hold before the first attempt if staff promised it, as with a link."""
    until = reservation.price_held_until
    if until is None or reservation.created_by_id is not None:
        return until
    # Only staff hold a customer's draft for longer than this.
    own_hold = dt.timedelta(minutes=settings.HOLD_MINUTES_CUSTOMER)
    return until if until > reservation.created_at + own_hold else None


def book(
    reservation: Reservation,
    act: Act,
    payment: Payment | None = None,
    **columns: Unpack[TransitionColumns],
) -> None:
    """Set the status to Confirmed, or to Pending if the center has to approve requests.

    `columns` are saved together with the status. The caller holds the lock.
    """
    is_instant = reservation.room.is_live_inventory
    is_live_payment = (payment or gateways.get_current_gateway()).is_live
    columns["booked_at"] = act.now
    columns["is_live"] = is_instant and is_live_payment
    columns |= reservation.advance_calendar(act.now)
    status = Status.CONFIRMED if is_instant else Status.PENDING
    reservation.transition_to(status, act, payment=payment, **columns)
    send = emails.send_booking_confirmed if is_instant else emails.send_request_received
    send(reservation, now=act.now)
    if is_instant:
        post_booking(reservation.pk, is_test=not is_live_payment, by=act.user, now=act.now)


# --- Payments that staff take ---------------------------------------------------------------------


def _update_price_first(act: Act, draft_id: int) -> None:
    draft = Reservation.objects.get(pk=draft_id)
    if draft.is_new:
        _update_price(draft, act)


@command_after(_update_price_first)
def book_draft(
    act: Act,
    draft_id: int,
    *,
    gateway: str = "",
    reference: str = "",
    shown_total: Decimal | None = None,
) -> tuple[Reservation, Obstacle]:
    """Book a draft whose customer has paid `shown_total` to staff in this way (B26).

    A draft that costs nothing is booked without a payment. Other ways are refused, but the preview
    shows what would be booked.

    Raises:
        SlotUnavailable, PromoCodeInvalid, AllowanceExhausted, ReservationNotOpen, InvalidRequest:
            nothing was recorded.
    """
    draft = Reservation.objects.select_related("room", "user").get(pk=draft_id)
    if gateway == ACCOUNT.name:
        require_account_payment(act, draft, draft.total_cost)
    reservation = _lock_and_consume(draft, now=act.now)
    if not reservation.is_new:
        raise ReservationNotOpen(ALREADY_BOOKED)
    _require_seen_price(reservation, shown_total)
    payment = None
    if gateway in MANUAL_GATEWAYS and reservation.total_cost:
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
                by=act.staff,
                purpose=PaymentPurpose.BOOKING,
                now=act.now,
            )
        except IntegrityError as error:
            # The void or refund of an earlier attempt is due. `reconcile_payments` executes it.
            raise ReservationNotOpen(EARLIER_PAYMENT) from error
    book(reservation, act, payment)
    is_unpaid = bool(reservation.total_cost) and payment is None
    return reservation, Refused(NOT_TAKEN) if is_unpaid else None


def require_account_payment(act: Act, reservation: Reservation, amount: Decimal) -> None:
    """Raise InvalidRequest unless staff may charge the amount to the customer's account (B26.4).

    Call it first in the transaction: it locks the customer's account.
    """
    if not roles.has_permission(act.staff, roles.TAKE_ON_ACCOUNT, reservation.room.center_id):
        raise InvalidRequest({"gateway": NOT_PERMITTED})
    require_credit(reservation.user, amount)


def record_consent(reservation: Reservation, card: SavedCard, act: Act) -> None:
    """Record that the customer has agreed that staff charge the saved card (B26.6)."""
    changes = {"consent_to_charge": (None, card.description)}
    history.record_changes(reservation, changes, act)
