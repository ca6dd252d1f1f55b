"""Changes the room, time, services and attendees of a reservation, in one transaction.

The transaction locks both rooms. The availability check ignores the reservation itself. The promo
use and the included hours are returned and consumed again for the new time, and the reservation is
repriced by today's rates. The rules for the price (B27):

* A draft is only repriced. Its hold continues, or starts again if it has expired.
* If a Confirmed booking becomes cheaper, the difference is refunded. If it becomes more expensive,
  the customer pays the difference to staff, or it is waived by an adjustment on the bill that
  states the reason. A waiver applies only once: the next rescheduling prices the booking without
  it. The new center bears the cost of the waiver, so the user needs the permission to adjust prices
  at both centers. A difference that a card pays needs more than one transaction: see changes.py.
* A request (Pending) keeps its price, because gateways capture the authorized amount.
* A reservation cannot be rescheduled while a payment is in progress. Once the meeting has begun,
  staff can extend it.
"""

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal

from django.db import transaction

from accounts import roles
from accounts.models import User
from centers.models import MeetingRoom
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS
from payments.manual_payments import record_manual_payment
from payments.models import Payment, PaymentPurpose
from reservations.booking import change_steps, price_changes
from reservations.booking.change_request import (
    ChangeRequest,
    ChangeResult,
    build_slot_key,
    resolve_change,
    store_change,
)
from reservations.booking.locks import lock_drafts_of_customer, lock_for_rescheduling
from reservations.booking.payment_recovery import call_off_changes, fulfils_obligations
from reservations.booking.price_adjustments import ADJUST_PRICE
from reservations.booking.taking_payment import require_account_payment
from reservations.models import ChangeState, Reservation
from reservations.models.status import Status
from roombook import dates
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, ReservationNotOpen


@dataclass(frozen=True, slots=True)
class TakenPayment:
    """How staff took a difference without a gateway: its name, and the number of the slip."""

    gateway: str
    reference: str = ""


def can_reschedule(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether the status and the time allow the reservation to be rescheduled."""
    return reservation.status in change_steps.RESCHEDULABLE_STATUSES and reservation.start > now


def get_waiver_refusal(user: User, *rooms: MeetingRoom) -> str:
    """Return why the user cannot waive the difference between these rooms; empty if they can."""
    for room in rooms:
        if not roles.has_permission(user, ADJUST_PRICE, room.center_id):
            return f"Only who may adjust prices at {room.center.name} can waive the difference."
    return ""


@in_transaction
def preview(
    reservation_id: int,
    request: ChangeRequest,
    *,
    waiver: str = "",
    by: User,
    now: dt.datetime,
) -> ChangeResult:
    """Change the reservation, roll that back and return the result.

    `problems` contains the reasons why it is not possible. Only invalid requests raise an error.
    """
    lock_drafts_of_customer(reservation_id, now=now)
    reservation, room = lock_for_rescheduling(reservation_id, request.room_id)
    require_unchanged(reservation, request)
    result = _begin(reservation, room, request, now=now)
    evaluation = change_steps.evaluate(result, now=now)
    if not evaluation.is_available:
        transaction.set_rollback(True)
        return replace(result, problems=evaluation.staff_texts)
    result = _apply(result, request, waiver=waiver, by=by, now=now)
    if not reservation.is_new:
        try:
            price_changes.require_no_extra_charge(reservation, old_total=result.old_total)
        except ReservationNotOpen as error:
            can_be_waived = result.difference > 0
            result = replace(result, problems=(error.message,), can_be_waived=can_be_waived)
        else:
            result = replace(result, refund=-result.difference)
    transaction.set_rollback(True)
    return result


@fulfils_obligations
def reschedule(
    reservation_id: int,
    request: ChangeRequest,
    *,
    waiver: str = "",
    taken: TakenPayment | None = None,
    expected_total: Decimal | None = None,
    by: User,
    now: dt.datetime,
) -> tuple[ChangeResult, list[Payment]]:
    """Change a reservation. Times without an offset are local to the new center.

    `waiver` is the reason for waiving the difference to a higher price; `taken` is how the customer
    has paid it. `expected_total` is the new total in the preview: if it or what the user saw
    has changed since then (the expected values of the request), nothing is done.

    Raises:
        SlotUnavailable, ReservationNotOpen, InvalidRequest, NotFound, PromoCodeInvalid,
        AllowanceExhausted, RateNotConfigured: nothing was changed.
        ServiceUnavailable: the payment is not resolved yet; nothing was changed.
    """
    lock_drafts_of_customer(reservation_id, now=now)
    if taken is not None and taken.gateway == ACCOUNT.name:
        # First of all, because it locks the customer's account.
        _require_account_payment(reservation_id, expected_total, by=by)
    reservation, room = lock_for_rescheduling(reservation_id, request.room_id)
    require_unchanged(reservation, request)
    result = _begin(reservation, room, request, now=now)
    change_steps.evaluate(result, now=now).raise_if_unavailable()
    result = _apply(result, request, waiver=waiver, by=by, now=now)
    price_changes.require_expected("price", result.new_total, expected=expected_total)
    way = ""
    if taken is not None and result.difference > 0 and reservation.status == Status.CONFIRMED:
        way = MANUAL_GATEWAYS[taken.gateway].label
        result = _take_difference(result, request, taken, by=by, now=now)
    result, payments = refund_difference(result, now=now)
    change_steps.record(result, waiver=waiver, way=way, by=by, now=now)
    return result, payments


def require_unchanged(reservation: Reservation, request: ChangeRequest) -> None:
    """Raise ReservationNotOpen if the reservation is no longer as the user saw it."""
    room, span = reservation.room, reservation.span
    if request.expected_slot not in {"", build_slot_key(room.pk, span)}:
        time = dates.format_span(span.start, span.end, room.center.zone)
        raise ReservationNotOpen(
            f"It was moved meanwhile, to {change_steps.describe_room(room)}, {time}. Nothing was"
            " changed."
        )
    expected = request.expected_details
    if expected and expected != change_steps.build_details_key(reservation):
        raise ReservationNotOpen(
            "Its services or guests were changed meanwhile. Nothing was changed now. Please open"
            " the page again."
        )


def _begin(
    reservation: Reservation, room: MeetingRoom, request: ChangeRequest, *, now: dt.datetime
) -> ChangeResult:
    result = change_steps.begin(reservation, room, request, is_by_staff=True, now=now)
    if change_steps.is_same(result, request):
        raise InvalidRequest({"start_date": "It is like that already. Nothing would change."})
    return result


def _apply(
    result: ChangeResult, request: ChangeRequest, *, waiver: str, by: User, now: dt.datetime
) -> ChangeResult:
    is_booked = not result.reservation.is_new
    rooms = result.old.room, result.new.room
    if is_booked and waiver and (refusal := get_waiver_refusal(by, *rooms)):
        raise InvalidRequest({"waiver": refusal})
    return change_steps.apply(result, request, is_by_staff=True, waiver=waiver, by=by, now=now)


# --- The difference ------------------------------------------------------------------------------


def refund_difference(
    result: ChangeResult, *, now: dt.datetime
) -> tuple[ChangeResult, list[Payment]]:
    """Refund what a booking costs less, and call off changes that are not paid yet.

    Returns the result and payments to be processed.

    Raises ExtraCharge if it costs more and that is not paid, or ReservationNotOpen for a request.
    """
    reservation = result.reservation
    if reservation.is_new:
        return result, []
    called_off = call_off_changes(reservation)
    if result.charge:
        return result, called_off
    price_changes.require_no_extra_charge(reservation, old_total=result.old_total)
    refund, payments = price_changes.refund_reduction(
        reservation,
        old_total=result.old_total,
        reason="Changed to something cheaper",
        now=now,
    )
    return replace(result, refund=refund), [*payments, *called_off]


def _take_difference(
    result: ChangeResult,
    request: ChangeRequest,
    taken: TakenPayment,
    *,
    by: User,
    now: dt.datetime,
) -> ChangeResult:
    """Record the payment of the difference. No gateway is called, so nothing can be in doubt."""
    reservation = result.reservation
    payment = record_manual_payment(
        reservation_id=reservation.pk,
        reservation_uid=reservation.uid,
        center_id=result.new.room.center_id,
        time_zone_id=result.new.room.center.time_zone_id,
        gateway=taken.gateway,
        amount=result.difference,
        currency=reservation.currency,
        reference=taken.reference,
        by=by,
        purpose=PaymentPurpose.CHANGE,
        now=now,
    )
    change = store_change(payment, result, request, by=by, is_by_staff=True, now=now)
    resolve_change(change, ChangeState.APPLIED, now=now)
    return replace(result, charge=result.difference)


def _require_account_payment(
    reservation_id: int, expected_total: Decimal | None, *, by: User
) -> None:
    """Raise InvalidRequest unless staff may charge the difference to the account (B26.4)."""
    if expected_total is None:
        raise InvalidRequest({"gateway": "The new price is needed."})
    reservation = Reservation.objects.select_related("room", "user").get(pk=reservation_id)
    require_account_payment(reservation, expected_total - reservation.total_cost, by=by)
