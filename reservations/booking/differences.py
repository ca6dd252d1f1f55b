"""A card pays the difference of a booking that becomes more expensive (B27).

It pays in the four steps of charging.py: `_claim` amends the booking, rolls that back, and stores a
BookingChange with what was requested; what costs no more is done at once. While the gateway
authorizes the difference, the booking is as it was, and the new slot is not held. `Difference`
amends the booking again if everything is as it was, and abandons the change otherwise.

Staff can let a payment link pay (B27.7): then a BookingChange without a payment waits for it, and
holds the new slot, until somebody who has the link begins these steps.
"""

import datetime as dt
import functools
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

from django.conf import settings

from accounts.act import Act
from accounts.models import User
from centers.models import MeetingRoom
from payments import lifecycle
from payments.models import Payment, PaymentPurpose, PaymentState, SavedCard
from reservations.booking import amendments, charging
from reservations.booking.amendments import Amendment, ChangeRequest
from reservations.booking.charging import Claim, PaymentMethod, Purchase, Source
from reservations.booking.checkout import LINK_HAS_ENDED, record_consent
from reservations.booking.commands import Obstacle, command
from reservations.booking.locks import lock_with_account
from reservations.models import BookingChange, ChangeState, Reservation, history
from reservations.models.booking_fields import split_values
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.notifications.confirmation import describe_card
from reservations.pricing.terms import get_terms
from roombook.errors import DomainError, InvalidRequest, ReservationNotOpen
from roombook.money import ZERO

CHANGED_MEANWHILE = "The reservation has changed meanwhile. Please look at it again."
CHANGE_UNDER_WAY = "The payment of a change is under way. Please try again in a minute."


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change. If it is not applied, its payment is not resolved yet."""

    is_applied: bool
    charge: Decimal = ZERO
    refund: Decimal = ZERO


def preview_change(
    act: Act, reservation_id: int, request: ChangeRequest, *, link: BookingChange | None = None
) -> Amendment:
    """Return what the change would be. Raises what `change_booking` raises before it charges."""
    _, amendment = _claim.preview(act, reservation_id, request, None, link=link).result
    return amendment


def change_booking(
    act: Act,
    reservation_id: int,
    request: ChangeRequest,
    payment_method: PaymentMethod,
    *,
    expected_total: Decimal,
    link: BookingChange | None = None,
) -> ChangeOutcome:
    """Change a booking, and charge or refund the difference.

    `expected_total` is the total that the customer has seen. Staff charge the saved card of a
    customer who has agreed to that, or the card of the payer who has the `link`.

    Repeating the same change is safe: if the booking is already as it should be, nothing is done;
    nor if the payment of the same change by the customer is not resolved yet. Every other change is
    refused while a payment is not resolved.

    Raises:
        CardDeclined, SlotUnavailable, ReservationNotOpen, NoSavedCard, InvalidRequest, NotFound,
        PromoCodeInvalid, AllowanceExhausted, RateNotConfigured, TooManyRequests: nothing was
        changed or charged.
    """
    charging.resolve_payments(reservation_id, user=act.customer, now=act.now)
    claim, amendment = _claim(
        act, reservation_id, request, payment_method, expected_total=expected_total, link=link
    )
    claim = charging.charge(claim, payment_method, act)
    if claim.payment is None:
        return ChangeOutcome(is_applied=True, refund=amendment.refund)
    change = BookingChange.objects.get(payment=claim.payment.pk)
    if change.state == ChangeState.ABANDONED:
        raise ReservationNotOpen(f"{change.message} You were not charged.")
    is_applied = change.state == ChangeState.APPLIED
    return ChangeOutcome(is_applied=is_applied, charge=claim.payment.amount)


# --- By a payment link ----------------------------------------------------------------------------


def hold_for_link(
    act: Act, reservation_id: int, request: ChangeRequest, *, expected_total: Decimal
) -> BookingChange:
    """Store a change that costs more until a link has paid for it, and hold its slot until then.

    It replaces another one that waits. The caller is in a transaction. Raises what `amend` raises,
    and InvalidRequest if there is nothing to pay.
    """
    amendment, now = _open(act, reservation_id, request), act.now
    booking, new = amendment.former, amendment.new
    amendments.require_version(booking, request.expected_version)
    until = get_link_end(amendment, now=now)
    if until <= now:
        raise InvalidRequest({"way": "It is too late for a payment link."})
    if booking.is_paying_for_change:
        raise ReservationNotOpen(CHANGE_UNDER_WAY)
    booking.end_waiting_change(message="Another link was sent.", now=now)
    # First, because what it releases must not be rolled back.
    amendments.evaluate(amendment).raise_if_unavailable()
    amendment = amendments.perform(
        amendment, amendments.refund_or_refuse, expected_total=expected_total
    )
    if not amendment.is_refused:
        raise InvalidRequest({"way": "There is nothing to pay."})
    change = amendments.store_change(None, amendment, link_until=until)
    if (amendment.old == new and new.end <= now) or amendments.is_in_turnaround(amendment):
        return change  # It is over, and nothing is to be held.
    Reservation.slots.create(
        holds_for=booking,
        user=booking.user,
        created_by=act.user,
        created_at=now,
        room=new.room,
        start=new.start,
        end=new.end,
        turnaround_minutes=new.room.turnaround_minutes,
        holds_slot=True,
        hold_until=until,
        currency=booking.currency,
        cancellation_terms=booking.cancellation_terms,
    )
    return change


def get_link_end(amendment: Amendment, *, now: dt.datetime) -> dt.datetime:
    """Return until when a link can pay for the change of a booking.

    Nobody else needs the room for what was used, or is added to the bill of a running meeting.
    """
    old, new = amendment.old, amendment.new
    latest = now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF)
    if old.start > now:
        latest = min(latest, old.start, new.start)
    elif old != new and not amendment.is_used:
        latest = min(latest, old.end if old.end > now else new.end)
    return latest.replace(second=0, microsecond=0)


def _require_waiting(link: BookingChange, booking: Reservation, *, now: dt.datetime) -> None:
    """Raise ReservationNotOpen if the change no longer waits for its link to be paid."""
    waiting = booking.changes.filter(pk=link.pk, state=ChangeState.STARTED, link_until__gt=now)
    is_active = User.objects.filter(pk=booking.user_id, is_active=True).exists()
    if not is_active or not waiting.exists():
        raise ReservationNotOpen(LINK_HAS_ENDED)


# --- The steps ------------------------------------------------------------------------------------


@command
def _claim(
    act: Act,
    reservation_id: int,
    request: ChangeRequest,
    payment_method: PaymentMethod | None,
    *,
    expected_total: Decimal | None = None,
    link: BookingChange | None,
) -> tuple[tuple[Claim, Amendment], Obstacle]:
    """Apply a change that costs no more, or create the payment of its difference.

    Returns what the amendment of the booking is, or would be, too.

    If the payment of the same change is not resolved, or was declined at the bank and no request
    has reported that yet, it is the payment of the claim. Without a payment method, which a preview
    does not need, no payment is created.
    """
    amendment = _open(act, reservation_id, request)
    booking = amendment.former
    is_absent = payment_method is not None and not payment_method.is_customer_present
    # Only the customer's own request continues with the payment of an earlier one.
    unresolved = None if is_absent else _find_unresolved_payment(amendment)
    if unresolved is not None and payment_method is not None:
        return (Claim(booking, unresolved), amendment), None
    if link is not None:
        _require_waiting(link, booking, now=act.now)
    if amendment.is_same:
        return (Claim(booking), amendment), None
    amendments.require_version(booking, request.expected_version)
    _require_may_change(amendment)
    # What costs more is refused, so that nothing has changed but the price is known.
    amendment = amendments.perform(
        amendment, amendments.refund_or_refuse, expected_total=expected_total
    )
    if payment_method is None or not amendment.is_refused:
        return (Claim(booking), amendment), amendment.obstacle
    source = payment_method.get_source(booking.user, now=act.now)
    if payment_method.may_wait(source):
        declined = _take_unreported_decline(amendment, source, payment_method)
        if declined is not None:
            return (Claim(booking, declined), amendment), None
    payment = _create_payment(amendment, is_by_link=payment_method.is_by_link)
    if not is_absent:
        payment_method.count_attempt(booking, now=act.now)
    elif isinstance(source, SavedCard):
        record_consent(booking, source, act)
    return (Claim(booking, payment, source), amendment), None


def _open(act: Act, reservation_id: int, request: ChangeRequest) -> Amendment:
    """Lock the booking and both rooms, and return what has not changed yet."""
    reservation, room = lock_with_account(reservation_id, request.room_id, owner=act.customer)
    is_over = reservation.status == Status.COMPLETED
    if not reservation.is_confirmed_or_completed or (is_over and not act.is_staff):
        raise ReservationNotOpen("Only a confirmed booking can be changed.")
    return amendments.begin(act, reservation, room, request)


def _find_unresolved_payment(amendment: Amendment) -> Payment | None:
    """Return the payment of this change if it is not resolved yet (B27.5).

    Raises ReservationNotOpen if the payment of another change is not resolved.
    """
    rows = amendment.reservation.payments.select_related("change")
    payment = rows.filter(purpose=PaymentPurpose.CHANGE, state=PaymentState.STARTED).first()
    if payment is None:
        return None
    if amendments.read_request(payment.change) != _resolve_times(amendment):
        raise ReservationNotOpen(CHANGE_UNDER_WAY)
    return payment


def _resolve_times(amendment: Amendment) -> ChangeRequest:
    """Return the request as it is stored, with the times of its slot."""
    return replace(amendment.request, start=amendment.new.start, end=amendment.new.end)


def _take_unreported_decline(
    amendment: Amendment, source: Source, method: PaymentMethod
) -> Payment | None:
    """Return, once, a payment of the same change that the customer's bank has declined (B27.5)."""
    payments = amendment.former.payments.filter(
        purpose=PaymentPurpose.CHANGE, is_by_link=method.is_by_link
    )
    payment = payments.order_by("pk").last()
    # The personal values of a change that is resolved are not stored.
    values, _ = split_values(amendment.request.values)
    request = replace(_resolve_times(amendment), values=values)
    if payment is None or amendments.read_request(payment.change) != request:
        return None
    return method.take_unreported_decline(payments.filter(pk=payment.pk), source)


def _require_may_change(amendment: Amendment) -> None:
    """Raise ReservationNotOpen if the center's rules leave the change to staff (B27.2)."""
    act = amendment.act
    if act.is_staff:
        return
    booking = amendment.former
    terms = get_terms(booking)
    until = terms.get_change_end(booking)
    if until is None or act.now >= until:
        reason = "Cancelling would no longer be free"
        if terms.change_hours is not None:
            reason = f"It is less than {terms.change_hours} hours before the start"
        raise ReservationNotOpen(
            f"{reason}, so only the center can change the booking. Please ask the center."
        )
    if amendment.old != amendment.new and not amendment.new.room.is_live_inventory:
        raise ReservationNotOpen(
            "The center has to approve bookings of this room. Please ask the center."
        )


def _create_payment(amendment: Amendment, *, is_by_link: bool) -> Payment:
    """Create the payment of the difference, and store what was requested."""
    booking = amendment.former
    payment = charging.create_payment(
        booking,
        amount=amendment.difference,
        purpose=PaymentPurpose.CHANGE,
        center_id=amendment.new.room.center_id,
        is_by_link=is_by_link,
        refusal=CHANGE_UNDER_WAY,
        now=amendment.act.now,
    )
    amendments.store_change(payment, amendment)
    if is_by_link:
        # The payer may have to confirm the payment at the bank when the link has ended already.
        deadline = lifecycle.get_action_deadline(payment)
        held = Reservation.slots.filter(holds_for=booking.pk, hold_until__lt=deadline)
        held.update(hold_until=deadline)
    return payment


@dataclass(frozen=True, slots=True)
class Difference(Purchase):
    """A change that is applied once its difference is paid. `room` is the new one."""

    room: MeetingRoom
    change: BookingChange

    purpose = PaymentPurpose.CHANGE
    description = "Change of reservation"

    @classmethod
    def lock(
        cls, payment: Payment, *, may_be_paid: bool, room_id: int | None, now: dt.datetime
    ) -> Self:
        change = BookingChange.objects.get(payment=payment.pk)
        return cls(*lock_with_account(payment.reservation_id, change.room_id), change)

    def is_attempt(self, payment: Payment) -> bool:
        return payment.is_by_link or not self.change.is_by_staff

    def conclude(self, payment: Payment, act: Act) -> None:
        """Amend the booking if it is as it was, and that is possible at the same price.

        Otherwise the payment does not count, and is voided.
        """
        change = self.change
        asked = Act(change.by, act.now, is_staff=change.is_by_staff)
        try:
            if not self._is_unchanged():
                raise ReservationNotOpen(CHANGED_MEANWHILE)
            request = amendments.read_request(change)
            amendment = amendments.begin(asked, self.reservation, self.room, request)
            amendments.perform(amendment, functools.partial(self._cover, payment=payment))
        except DomainError as error:
            payment.counts = False
            message = " ".join(error.fields.values()) if isinstance(error, InvalidRequest) else ""
            # What the attempt has changed in memory was rolled back.
            self.reservation.refresh_from_db()
            self._give_up(message or error.message, act)

    def _cover(self, amendment: Amendment, *, payment: Payment) -> Amendment:
        change, now = self.change, amendment.act.now
        if (amendment.old_total, amendment.new_total) != (change.old_total, change.new_total):
            raise ReservationNotOpen(CHANGED_MEANWHILE)
        change.resolve(ChangeState.APPLIED, now=now)
        payment.counts = True
        payment.save(update_fields=["counts"])
        if payment.is_by_link:
            # The link that was paid was for this change: there is never another one.
            self.reservation.end_waiting_change(ChangeState.APPLIED, now=now)
        return replace(amendment, charge=payment.amount, way=describe_card(payment))

    def abandon(self, payment: Payment, act: Act) -> None:
        not_paid = "The payment was called off." if self._is_unchanged() else CHANGED_MEANWHILE
        self._give_up(payment.message or not_paid, act)

    def _give_up(self, message: str, act: Act) -> None:
        """Record why the change was not made, and tell the customer if no user waits for that.

        The customer has heard already what staff have changed meanwhile.
        """
        reservation = self.reservation
        self.change.resolve(ChangeState.ABANDONED, message=message, now=act.now)
        history.record_changes(reservation, {"change_not_made": (None, message)}, act)
        is_told = self.change.is_by_staff and not self._is_unchanged()
        if act.user is None and reservation.status == Status.CONFIRMED and not is_told:
            emails.send_not_changed(reservation, reason=message, now=act.now)

    def _is_unchanged(self) -> bool:
        reservation = self.reservation
        return reservation.is_confirmed_or_completed and reservation.version == self.change.version
