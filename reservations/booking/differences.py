"""A card pays the difference of a booking that becomes more expensive (B27).

The gateway is never called inside a transaction, so this takes four steps:

1. `_begin`: lock both rooms and the reservation, amend the booking, roll that back, and create a
   Payment with a lease and a BookingChange with what was requested. What costs no more is done.
2. The gateway authorizes the difference. The booking is as it was, and the new slot is not held.
3. `conclude`: amend the booking again if everything is as it was. From this commit on, that is
   acknowledged.
4. The gateway captures the difference, or voids it if the change was abandoned.

If a worker dies in between, the client's retry or `reconcile_payments` resolves the payment once
its lease has expired. docs/checkout.md says what happens after a crash at each step.

Staff can let a payment link pay (B27.7): then a BookingChange without a payment waits for it, and
holds the new slot, until somebody who has the link begins these steps.
"""

import copy
import datetime as dt
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.act import Act
from accounts.limits import CARD_DECLINED, check_declined_cards, get_payer_key
from accounts.models import User
from payments import gateways, lifecycle
from payments.cards import Card
from payments.gateway_results import lock_payment
from payments.gateways.base import GatewayPayment, GatewayUnavailable
from payments.models import Payment, PaymentPurpose, PaymentState, SavedCard
from payments.saved_cards import get_usable_saved_card
from reservations.booking import amendments, payment_recovery
from reservations.booking.amendments import Amendment, ChangeRequest
from reservations.booking.authorization import FUNDED_STATES, record_answer
from reservations.booking.checkout import PaymentMethod
from reservations.booking.claims import LINK_HAS_ENDED, get_own_reservation
from reservations.booking.commands import Left, command
from reservations.booking.locks import lock_for_rescheduling
from reservations.booking.taking_payment import record_consent
from reservations.models import BookingChange, ChangeState, Reservation
from reservations.models.status import Status
from reservations.notifications.confirmation import describe_card
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined, DomainError, InvalidRequest, ReservationNotOpen
from roombook.money import ZERO

CHANGED_MEANWHILE = "The reservation has changed meanwhile. Please look at it again."
CHANGE_UNDER_WAY = "The payment of another change is under way. Please try again in a minute."
LINK_PRICE_HAS_CHANGED = (
    "The price has changed since the link was sent. You were not charged. Please ask the center for"
    " a new link."
)

Source = Card | SavedCard


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change. If it is not applied, its payment is not resolved yet."""

    is_applied: bool
    charge: Decimal = ZERO
    refund: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays the difference by which card: the customer, staff for them, or who has a link."""

    get_source: Callable[[User], Source]
    by: User | None
    is_by_staff: bool = False
    link: BookingChange | None = None

    @property
    def is_present(self) -> bool:
        """Whether somebody can confirm the payment at the bank."""
        return self.link is not None or not self.is_by_staff


def preview_change(
    reservation_id: int, request: ChangeRequest, *, user: User, now: dt.datetime
) -> Amendment:
    """Amend the customer's booking, roll that back and return the result.

    Raises what `change_booking` raises before it charges.
    """
    get_own_reservation(reservation_id, user)
    return _preview(reservation_id, request, by=user, now=now)


@in_transaction
def _preview(
    reservation_id: int,
    request: ChangeRequest,
    *,
    by: User | None,
    link: BookingChange | None = None,
    now: dt.datetime,
) -> Amendment:
    amendment = _open(reservation_id, request, is_by_staff=link is not None, now=now)
    if link is not None:
        _require_waiting(link, amendment.reservation, now=now)
    else:
        _find_unresolved_payment(amendment)
    if not amendment.is_same:
        if link is None:
            _require_customer_may_change(amendment, now=now)
        amendments.evaluate(amendment, now=now).raise_if_unavailable()
        amendment = amendments.apply(amendment, by=by, now=now)
    transaction.set_rollback(True)
    return amendment


def change_booking(
    reservation_id: int,
    request: ChangeRequest,
    *,
    user: User,
    payment_method: PaymentMethod,
    expected_total: Decimal,
    now: dt.datetime,
) -> ChangeOutcome:
    """Change the customer's booking, and charge or refund the difference.

    `expected_total` is the total that the customer has seen. Repeating the same change is safe: if
    the booking is already as it should be, or the payment of the change is not resolved yet,
    nothing is done. Another change is refused while that payment is not resolved.

    Raises:
        CardDeclined, SlotUnavailable, ReservationNotOpen, NoSavedCard, InvalidRequest, NotFound,
        PromoCodeInvalid, AllowanceExhausted, RateNotConfigured, TooManyRequests: nothing was
        changed or charged.
    """

    def get_source(customer: User) -> Source:
        check_declined_cards(payment_method.network_address, now=now)
        return lifecycle.get_payment_source(
            customer,
            use_saved=payment_method.use_saved_card,
            payment_info=payment_method.card,
            now=now,
        )

    get_own_reservation(reservation_id, user)
    payer = Payer(get_source, by=user)
    return _charge(reservation_id, request, payer, expected_total=expected_total, now=now)


def charge_change(
    reservation_id: int,
    request: ChangeRequest,
    *,
    expected_total: Decimal,
    by: User,
    now: dt.datetime,
) -> ChangeOutcome:
    """Change a booking for its customer, who has agreed to a charge of the saved card.

    The customer is not present, so that the bank cannot ask for a confirmation: it declines.
    Raises the errors of `change_booking`.
    """
    payer = Payer(functools.partial(get_usable_saved_card, now=now), by=by, is_by_staff=True)
    return _charge(reservation_id, request, payer, expected_total=expected_total, now=now)


# --- By a payment link ----------------------------------------------------------------------------


@in_transaction
def hold_for_link(
    reservation_id: int,
    request: ChangeRequest,
    *,
    expected_total: Decimal,
    by: User,
    now: dt.datetime,
) -> BookingChange:
    """Store a change that costs more until a link has paid for it, and hold its slot until then.

    It replaces another one that waits. Raises what `amend` raises, and InvalidRequest if there is
    nothing to pay.
    """
    amendment = _open(reservation_id, request, is_by_staff=True, now=now)
    booking, new = amendment.former, amendment.new
    amendments.require_version(booking, request.expected_version)
    until = get_link_end(booking, new.start, now=now)
    if until <= now:
        raise InvalidRequest({"way": "It is too late for a payment link."})
    if booking.is_paying_for_change:
        raise ReservationNotOpen(CHANGE_UNDER_WAY)
    booking.end_waiting_change(message="Another link was sent.", now=now)
    # First, because what it releases must not be rolled back.
    amendments.evaluate(amendment, now=now).raise_if_unavailable()
    refund = functools.partial(amendments.refund, now=now)
    amendment = amendments.perform(amendment, refund, expected_total=expected_total, by=by, now=now)
    if not amendment.is_unpaid:
        raise InvalidRequest({"way": "There is nothing to pay."})
    change = amendments.store(None, amendment, link_until=until, by=by, now=now)
    Reservation.slots.create(
        holds_for=booking,
        user=booking.user,
        created_by=by,
        created_at=now,
        room=new.room,
        start=new.start,
        end=new.end,
        turnaround_minutes=new.room.turnaround_minutes,
        holds_slot=True,
        hold_until=until,
        currency=booking.currency,
        cancellation_notice_hours=booking.cancellation_notice_hours,
        cancellation_grace_minutes=booking.cancellation_grace_minutes,
    )
    return change


def get_link_end(booking: Reservation, start: dt.datetime, *, now: dt.datetime) -> dt.datetime:
    """Return until when a link can pay for a change of the booking to this start."""
    has_begun = booking.start <= now
    latest = booking.end if has_begun else min(booking.start, start)
    latest = min(latest, now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF))
    return latest.replace(second=0, microsecond=0)


def require_payable(change: BookingChange, *, now: dt.datetime) -> None:
    """Raise DomainError unless the link of the change can pay for it. Changes nothing."""
    request = amendments.read(change)
    amendment = _preview(change.reservation_id, request, by=change.by, link=change, now=now)
    if (amendment.old_total, amendment.new_total) != (change.old_total, change.new_total):
        raise ReservationNotOpen(LINK_PRICE_HAS_CHANGED)


def pay_by_link(change: BookingChange, card: SavedCard, *, now: dt.datetime) -> ChangeOutcome:
    """Pay the difference of a change that waits for its payment link, and apply it (B27.7).

    `card` was entered by somebody who has the link. Raises the errors of `change_booking`.
    """
    payer = Payer(lambda customer: card, by=change.by, is_by_staff=True, link=change)
    request, total = amendments.read(change), change.new_total
    return _charge(change.reservation_id, request, payer, expected_total=total, now=now)


def _require_waiting(link: BookingChange, booking: Reservation, *, now: dt.datetime) -> None:
    """Raise ReservationNotOpen if the change no longer waits for its link to be paid."""
    waiting = booking.changes.filter(pk=link.pk, state=ChangeState.STARTED, link_until__gt=now)
    is_active = User.objects.filter(pk=booking.user_id, is_active=True).exists()
    if not is_active or not waiting.exists():
        raise ReservationNotOpen(LINK_HAS_ENDED)


# --- The steps ------------------------------------------------------------------------------------


def _charge(
    reservation_id: int,
    request: ChangeRequest,
    payer: Payer,
    *,
    expected_total: Decimal,
    now: dt.datetime,
) -> ChangeOutcome:
    """Begin, and if there is something to charge: authorize, conclude, capture."""
    payment_recovery.resolve_payments(reservation_id, user=None, now=now)
    act = Act(payer.by, now, is_staff=payer.is_by_staff)
    begun = _begin(act, reservation_id, request, payer, expected_total=expected_total)
    if isinstance(begun, ChangeOutcome):
        return begun
    if isinstance(begun, CardDeclined):
        raise begun
    payment, source = begun
    try:
        answer = lifecycle.authorize_payment(
            payment,
            source,
            description=f"Change of reservation {payment.reservation_id}",
            on_session=payer.is_present and lifecycle.is_confirmable(source),
        )
    except GatewayUnavailable:
        return ChangeOutcome(is_applied=False, charge=payment.amount)
    reservation, payment = conclude(payment, answer, now=now)
    if payment.state == PaymentState.DECLINED:
        raise CardDeclined(payment.message)
    payment_recovery.try_fulfil_obligations(payment, reservation.status, now=now)
    change = BookingChange.objects.get(payment=payment.pk)
    if change.state == ChangeState.ABANDONED:
        raise ReservationNotOpen(f"{change.message} You were not charged.")
    return ChangeOutcome(is_applied=change.state == ChangeState.APPLIED, charge=payment.amount)


@command
def _begin(
    act: Act,
    reservation_id: int,
    request: ChangeRequest,
    payer: Payer,
    *,
    expected_total: Decimal,
) -> tuple[ChangeOutcome | CardDeclined | tuple[Payment, Source], Left]:
    """Apply a change that costs no more, or create the payment of its difference.

    Returns CardDeclined if the customer's bank has refused this change, and no request has reported
    that yet: it is not raised, so that this is stored.
    """
    now = act.now
    amendment = _open(reservation_id, request, is_by_staff=payer.is_by_staff, now=now)
    if payer.is_present and (unresolved := _find_unresolved_payment(amendment)):
        return ChangeOutcome(is_applied=False, charge=unresolved.amount), []
    if payer.link is not None:
        _require_waiting(payer.link, amendment.reservation, now=now)
    if amendment.is_same:
        return ChangeOutcome(is_applied=True), []
    amendments.require_version(amendment.reservation, request.expected_version)
    if not payer.is_by_staff:
        _require_customer_may_change(amendment, now=now)
    refund = functools.partial(amendments.refund, now=now)
    amendment = amendments.perform(
        amendment, refund, expected_total=expected_total, by=act.user, now=now
    )
    if not amendment.is_unpaid:
        return ChangeOutcome(is_applied=True, refund=amendment.refund), amendment.left
    booking = amendment.former
    source = payer.get_source(booking.user)
    if payer.is_present and (refusal := _take_refusal(amendment, source, payer)):
        return refusal, []
    payment = _create_payment(amendment, payer, now=now)
    if payer.is_present:
        # Count it only here, so that a double click is one attempt. `conclude` gives it back.
        key = get_payer_key(booking.user_id, booking.pk if payer.link is not None else None)
        CARD_DECLINED.attempt(key, now=now)
    elif isinstance(source, SavedCard) and payer.by is not None:
        record_consent(booking, source, by=payer.by, now=now)
    return (payment, source), []


def _open(
    reservation_id: int, request: ChangeRequest, *, is_by_staff: bool, now: dt.datetime
) -> Amendment:
    """Lock the booking and both rooms, and return what has not changed yet."""
    reservation, room = lock_for_rescheduling(reservation_id, request.room_id)
    if reservation.status != Status.CONFIRMED:
        raise ReservationNotOpen("Only a confirmed booking can be changed.")
    return amendments.begin(reservation, room, request, is_by_staff=is_by_staff, now=now)


def _find_unresolved_payment(amendment: Amendment) -> Payment | None:
    """Return the payment of this change if it is not resolved yet (B27.5).

    Raises ReservationNotOpen if the payment of another change is not resolved.
    """
    rows = amendment.reservation.payments.select_related("change")
    payment = rows.filter(purpose=PaymentPurpose.CHANGE, state=PaymentState.STARTED).first()
    if payment is None:
        return None
    if amendments.read(payment.change) != _resolve_times(amendment):
        raise ReservationNotOpen(CHANGE_UNDER_WAY)
    return payment


def _resolve_times(amendment: Amendment) -> ChangeRequest:
    """Return the request as it is stored, with the times of its slot."""
    return replace(amendment.request, start=amendment.new.start, end=amendment.new.end)


def _take_refusal(amendment: Amendment, source: Source, payer: Payer) -> CardDeclined | None:
    """Return, once, that the customer's bank has refused the payment of the same change (B27.5)."""
    is_by_link = payer.link is not None
    payments = amendment.former.payments.filter(
        purpose=PaymentPurpose.CHANGE, is_by_link=is_by_link
    )
    payment = payments.order_by("pk").last()
    if payment is None or not lifecycle.is_confirmable(source):
        return None
    # The attendees of a change that is resolved are not stored.
    request = replace(_resolve_times(amendment), attendees=None)
    if amendments.read(payment.change) != request:
        return None
    message = lifecycle.take_unreported_decline(payments.filter(pk=payment.pk), source)
    return None if message is None else CardDeclined(message)


def _require_customer_may_change(amendment: Amendment, *, now: dt.datetime) -> None:
    """Raise ReservationNotOpen if the center's rules leave the change to staff (B27.2)."""
    if now > amendment.reservation.free_cancellation_until:
        raise ReservationNotOpen(
            "Cancelling would no longer be free, so only the center can change the booking. Please"
            " ask the center."
        )
    if amendment.old != amendment.new and not amendment.new.room.is_live_inventory:
        raise ReservationNotOpen(
            "The center has to approve bookings of this room. Please ask the center."
        )


def _create_payment(amendment: Amendment, payer: Payer, *, now: dt.datetime) -> Payment:
    """Create the payment of the difference, and store what was requested."""
    booking = amendment.former
    try:
        payment = lifecycle.create_payment(
            reservation_id=booking.pk,
            reservation_uid=booking.uid,
            center_id=amendment.new.room.center_id,
            amount=amendment.difference,
            currency=booking.currency,
            gateway=gateways.get_current_gateway(),
            now=now,
            purpose=PaymentPurpose.CHANGE,
            is_by_link=payer.link is not None,
        )
    except IntegrityError as error:
        raise ReservationNotOpen(CHANGE_UNDER_WAY) from error
    amendments.store(payment, amendment, by=payer.by, now=now)
    if payer.link is not None:
        # The payer may have to confirm the payment at the bank when the link has ended already.
        deadline = lifecycle.get_action_deadline(payment)
        held = Reservation.slots.filter(holds_for=booking.pk, hold_until__lt=deadline)
        held.update(hold_until=deadline)
    return payment


@in_transaction
def conclude(
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
    is_attempt = payment.is_by_link or not change.is_by_staff
    if not record_answer(reservation, payment, result, is_attempt=is_attempt, now=now):
        return reservation, payment
    is_confirmed = reservation.status == Status.CONFIRMED
    is_unchanged = is_confirmed and reservation.version == change.version
    if payment.state not in FUNDED_STATES:
        not_paid = "The payment was called off." if is_unchanged else CHANGED_MEANWHILE
        change.resolve(ChangeState.ABANDONED, message=payment.message or not_paid, now=now)
        return reservation, payment
    former = copy.copy(reservation)

    def settle(amendment: Amendment) -> Amendment:
        if (amendment.old_total, amendment.new_total) != (change.old_total, change.new_total):
            raise ReservationNotOpen(CHANGED_MEANWHILE)
        change.resolve(ChangeState.APPLIED, now=now)
        payment.counts = True
        payment.save(update_fields=["counts"])
        if payment.is_by_link:
            # The link that was paid was for this change: there is never another one.
            reservation.end_waiting_change(ChangeState.APPLIED, now=now)
        return replace(amendment, charge=payment.amount, way=describe_card(payment))

    try:
        with transaction.atomic():
            if not is_unchanged:
                raise ReservationNotOpen(CHANGED_MEANWHILE)
            request, is_by_staff = amendments.read(change), change.is_by_staff
            amendment = amendments.begin(
                reservation, room, request, is_by_staff=is_by_staff, now=now
            )
            amendments.perform(amendment, settle, by=change.by, now=now)
    except DomainError as error:
        message = " ".join(error.fields.values()) if isinstance(error, InvalidRequest) else ""
        change.resolve(ChangeState.ABANDONED, message=message or error.message, now=now)
        return former, payment
    return reservation, payment


payment_recovery.CONCLUDE[PaymentPurpose.CHANGE] = conclude
