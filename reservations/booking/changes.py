"""Changes of confirmed bookings: time, room, services and attendees, as one operation (B27).

If the booking becomes cheaper, or costs the same, one transaction changes it (rescheduling.py). If
it becomes more expensive, a card pays the difference, and the gateway is never called inside a
transaction:

1. `_begin`: lock both rooms and the reservation, check and price the change, roll that back, and
   create a Payment with a lease and a BookingChange with what was requested.
2. The gateway authorizes the difference. The booking is as it was, and the new slot is not held.
3. `apply_change_authorization`: check again, and apply the change if everything is as it was.
   From this commit on, the change is acknowledged.
4. The gateway captures the difference, or voids it if the change was abandoned.

If a worker dies in between, the client's retry or `reconcile_payments` resolves the payment once
its lease has expired. docs/checkout.md says what happens after a crash at each step.
"""

import datetime as dt
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from django.db import IntegrityError, transaction

from accounts.limits import CARD_DECLINED, check_declined_cards
from accounts.models import User
from payments import gateways, lifecycle
from payments.cards import Card
from payments.gateways.base import GatewayUnavailable
from payments.models import Payment, PaymentPurpose, PaymentState, SavedCard
from payments.saved_cards import get_usable_saved_card
from reservations.booking import (
    change_authorization,
    change_steps,
    payment_recovery,
    rescheduling,
)
from reservations.booking.change_request import (
    ChangeRequest,
    ChangeResult,
    RoomSlot,
    read_request,
    store_change,
)
from reservations.booking.checkout import PaymentMethod
from reservations.booking.claims import get_own_reservation
from reservations.booking.locks import lock_for_rescheduling
from reservations.booking.payment_recovery import fulfils_obligations
from reservations.booking.price_changes import ExtraCharge, require_expected
from reservations.booking.taking_payment import record_consent
from reservations.models import BookingChange, ChangeState
from reservations.models.status import Status
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined, ReservationNotOpen
from roombook.money import ZERO

NOT_CONFIRMED = "Only a confirmed booking can be changed."
NEEDS_APPROVAL = "The center has to approve bookings of this room. Please ask the center."
CHANGE_UNDER_WAY = "The payment of another change is under way. Please try again in a minute."

GetSource = Callable[[User], Card | SavedCard]


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change. If it is not applied, its payment is not resolved yet."""

    is_applied: bool
    charge: Decimal
    refund: Decimal


@dataclass(frozen=True, slots=True)
class PendingDifference:
    """A payment that was created for a difference, and the card that is to pay it."""

    payment: Payment
    source: Card | SavedCard


@in_transaction
def preview_change(
    reservation_id: int, request: ChangeRequest, *, user: User, now: dt.datetime
) -> ChangeResult:
    """Change the customer's booking, roll that back and return the result.

    Raises what `change_booking` raises before it charges.
    """
    get_own_reservation(reservation_id, user)
    result = _prepare(reservation_id, request, is_by_staff=False, now=now)
    _find_unresolved_payment(result, request)
    if not change_steps.is_same(result, request):
        _require_customer_may_change(result, now=now)
        change_steps.evaluate(result, now=now).raise_if_unavailable()
        result = change_steps.apply(result, request, is_by_staff=False, by=user, now=now)
    transaction.set_rollback(True)
    return result


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

    def get_source(customer: User) -> Card | SavedCard:
        check_declined_cards(payment_method.network_address, now=now)
        return lifecycle.get_payment_source(
            customer,
            use_saved=payment_method.use_saved_card,
            payment_info=payment_method.card,
            now=now,
        )

    get_own_reservation(reservation_id, user)
    begin = functools.partial(
        _begin,
        reservation_id,
        request,
        get_source=get_source,
        expected_total=expected_total,
        by=user,
        is_by_staff=False,
        now=now,
    )
    return _change(reservation_id, begin, customer_is_present=True, now=now)


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
    begin = functools.partial(
        _begin,
        reservation_id,
        request,
        get_source=functools.partial(get_usable_saved_card, now=now),
        expected_total=expected_total,
        by=by,
        is_by_staff=True,
        now=now,
    )
    return _change(reservation_id, begin, customer_is_present=False, now=now)


def _change(
    reservation_id: int,
    begin: Callable[[], ChangeOutcome | PendingDifference | CardDeclined],
    *,
    customer_is_present: bool,
    now: dt.datetime,
) -> ChangeOutcome:
    payment_recovery.resolve_payments(reservation_id, user=None, now=now)
    begun = begin()
    if isinstance(begun, ChangeOutcome):
        return begun
    if isinstance(begun, CardDeclined):
        raise begun
    return _pay(begun, customer_is_present=customer_is_present, now=now)


# --- The steps -----------------------------------------------------------------------------------


@fulfils_obligations
def _begin(
    reservation_id: int,
    request: ChangeRequest,
    *,
    get_source: GetSource,
    expected_total: Decimal,
    by: User,
    is_by_staff: bool,
    now: dt.datetime,
) -> tuple[ChangeOutcome | PendingDifference | CardDeclined, list[Payment]]:
    """Apply a change that costs no more, or create the payment of its difference.

    Returns CardDeclined if the customer's bank has refused this change, and no request has reported
    that yet: it is not raised, so that this is stored.
    """
    result = _prepare(reservation_id, request, is_by_staff=is_by_staff, now=now)
    if not is_by_staff and (unresolved := _find_unresolved_payment(result, request)):
        return _describe_unresolved(unresolved), []
    if change_steps.is_same(result, request):
        return ChangeOutcome(is_applied=True, charge=ZERO, refund=ZERO), []
    rescheduling.require_unchanged(result.reservation, request)
    if not is_by_staff:
        _require_customer_may_change(result, now=now)
    try:
        with transaction.atomic():
            change_steps.evaluate(result, now=now).raise_if_unavailable()
            applied = change_steps.apply(result, request, is_by_staff=is_by_staff, by=by, now=now)
            require_expected("price", applied.new_total, expected=expected_total)
            applied, payments = rescheduling.refund_difference(applied, now=now)
            change_steps.record(applied, by=by, now=now)
            outcome = ChangeOutcome(is_applied=True, charge=applied.charge, refund=applied.refund)
            return outcome, payments
    except ExtraCharge as error:
        # What was applied is rolled back, and the locks were taken before.
        result = replace(result, new_total=result.old_total + error.difference)
    source = get_source(result.former.user)
    if not is_by_staff and (refusal := _take_refusal(result, request, source)):
        return refusal, []
    payment = _create_payment(result, request, by=by, is_by_staff=is_by_staff, now=now)
    if not is_by_staff:
        # Count it only here, so that a double click is one attempt. `record_answer` gives it back.
        CARD_DECLINED.attempt(by.pk, now=now)
    elif isinstance(source, SavedCard):
        record_consent(result.former, source, by=by, now=now)
    return PendingDifference(payment, source), []


def _prepare(
    reservation_id: int, request: ChangeRequest, *, is_by_staff: bool, now: dt.datetime
) -> ChangeResult:
    """Lock the booking and both rooms, and return the initial result."""
    reservation, room = lock_for_rescheduling(reservation_id, request.room_id)
    if reservation.status != Status.CONFIRMED:
        raise ReservationNotOpen(NOT_CONFIRMED)
    return change_steps.begin(reservation, room, request, is_by_staff=is_by_staff, now=now)


def _find_unresolved_payment(result: ChangeResult, request: ChangeRequest) -> Payment | None:
    """Return the payment of this change if it is not resolved yet (B27.5).

    Raises ReservationNotOpen if the payment of another change is not resolved.
    """
    rows = result.reservation.payments.select_related("change")
    payment = rows.filter(purpose=PaymentPurpose.CHANGE, state=PaymentState.STARTED).first()
    if payment is None:
        return None
    if read_request(payment.change) != _resolve_times(request, result.new):
        raise ReservationNotOpen(CHANGE_UNDER_WAY)
    return payment


def _resolve_times(request: ChangeRequest, slot: RoomSlot) -> ChangeRequest:
    """Return the request as it is stored, with the times of its slot."""
    return replace(request, start=slot.start, end=slot.end)


def _take_refusal(
    result: ChangeResult, request: ChangeRequest, source: Card | SavedCard
) -> CardDeclined | None:
    """Return, once, that the customer's bank has refused the payment of the same change (B27.5)."""
    payments = result.former.payments.filter(purpose=PaymentPurpose.CHANGE)
    payment = payments.order_by("pk").last()
    if payment is None or not lifecycle.is_confirmable(source):
        return None
    # The attendees of a change that is resolved are not stored.
    if read_request(payment.change) != replace(_resolve_times(request, result.new), attendees=None):
        return None
    message = lifecycle.take_unreported_decline(payments.filter(pk=payment.pk), source)
    return None if message is None else CardDeclined(message)


def _describe_unresolved(payment: Payment) -> ChangeOutcome:
    return ChangeOutcome(is_applied=False, charge=payment.amount, refund=ZERO)


def _require_customer_may_change(result: ChangeResult, *, now: dt.datetime) -> None:
    """Raise ReservationNotOpen if the center's rules leave the change to staff (B27.2)."""
    reservation = result.reservation
    if now > reservation.free_cancellation_until:
        raise ReservationNotOpen(
            "Cancelling would no longer be free, so only the center can change the booking. Please"
            " ask the center."
        )
    if result.old != result.new and not result.new.room.is_live_inventory:
        raise ReservationNotOpen(NEEDS_APPROVAL)


def _create_payment(
    result: ChangeResult, request: ChangeRequest, *, by: User, is_by_staff: bool, now: dt.datetime
) -> Payment:
    """Create the payment of the difference, and store what was requested."""
    booking = result.former
    try:
        payment = lifecycle.create_payment(
            reservation_id=booking.pk,
            reservation_uid=booking.uid,
            center_id=result.new.room.center_id,
            amount=result.difference,
            currency=booking.currency,
            gateway=gateways.get_current_gateway(),
            now=now,
            purpose=PaymentPurpose.CHANGE,
        )
    except IntegrityError as error:
        raise ReservationNotOpen(CHANGE_UNDER_WAY) from error
    store_change(payment, result, request, by=by, is_by_staff=is_by_staff, now=now)
    return payment


def _pay(
    pending: PendingDifference, *, customer_is_present: bool, now: dt.datetime
) -> ChangeOutcome:
    """Authorize the difference, apply the change, capture."""
    payment = pending.payment
    unknown = _describe_unresolved(payment)
    try:
        answer = lifecycle.authorize_payment(
            payment,
            pending.source,
            description=f"Change of reservation {payment.reservation_id}",
            on_session=customer_is_present and lifecycle.is_confirmable(pending.source),
        )
    except GatewayUnavailable:
        return unknown
    reservation, payment = change_authorization.apply_change_authorization(payment, answer, now=now)
    if payment.state == PaymentState.DECLINED:
        raise CardDeclined(payment.message)
    payment_recovery.try_fulfil_obligations(payment, reservation.status, now=now)
    change = BookingChange.objects.get(payment=payment.pk)
    if change.state == ChangeState.ABANDONED:
        raise ReservationNotOpen(f"{change.message} You were not charged.")
    if change.state == ChangeState.STARTED:
        return unknown
    return ChangeOutcome(is_applied=True, charge=payment.amount, refund=ZERO)
