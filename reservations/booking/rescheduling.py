"""Moves a reservation to another room, another time, or both.

The change takes one transaction, which locks both rooms. The availability check ignores the
reservation itself. The promo use and the included hours are returned and consumed again for the new
time, and the reservation is repriced by today's rates. The rules for the price:

* A draft is only repriced. Its hold continues, or starts again if it has expired.
* A Confirmed booking never costs its customer more (price_changes.py). If it becomes cheaper, the
  difference is refunded. If it becomes more expensive, rescheduling is refused, or the difference
  is waived by an adjustment on the bill that states the reason. A waiver applies only once: the
  next rescheduling prices the booking without it. The new center bears the cost of the waiver, so
  the user needs the permission to adjust prices at both centers.
* A request (Pending) keeps its price, because gateways capture the authorized amount.
* A reservation cannot be rescheduled while a payment is in progress, or once the meeting has begun.

A booking keeps the promo code that it has used, even if the code is not valid for the new time and
room: the customer was promised that price. The code of a draft must be valid for both.
"""

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal

from django.conf import settings
from django.db import transaction

from accounts import roles
from accounts.models import User
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from centers.span import Span
from payments.models import Payment
from reservations import availability
from reservations.availability import Availability
from reservations.booking import price_changes
from reservations.booking.holds import release_conflicting_holds, release_holds_for
from reservations.booking.locks import lock_drafts_of_customer, lock_for_rescheduling
from reservations.booking.payment_recovery import fulfils_obligations
from reservations.booking.price_adjustments import ADJUST_PRICE
from reservations.models import LineItem, LineItemType, PriceAdjustment, Reservation, history
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill, promo_codes
from reservations.pricing.quote import Quote, QuoteLine
from roombook import dates, money
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, ReservationNotOpen

RESCHEDULABLE_STATUSES = frozenset({Status.NEW, Status.PENDING, Status.CONFIRMED})


@dataclass(frozen=True, slots=True)
class RoomSlot:
    """A room and a time span."""

    room: MeetingRoom
    start: dt.datetime
    end: dt.datetime

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def key(self) -> str:
        return build_slot_key(self.room.pk, self.span)


@dataclass(frozen=True, slots=True)
class RescheduleResult:
    """The result of a rescheduling or of its preview. `reservation` has the new values.

    `problems` are messages for staff that say why it is not possible. `can_be_waived`: the only
    problem is the price, and a user with the permission can waive the difference.
    """

    reservation: Reservation
    old: RoomSlot
    new: RoomSlot
    old_lines: tuple[LineItem, ...]
    old_total: Decimal
    new_total: Decimal
    new_lines: tuple[QuoteLine, ...] = ()
    waived: Decimal = money.ZERO
    refund: Decimal = money.ZERO
    problems: tuple[str, ...] = ()
    can_be_waived: bool = False

    @property
    def difference(self) -> Decimal:
        return self.new_total - self.old_total


def can_reschedule(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether the status and the time allow the reservation to be rescheduled."""
    return reservation.status in RESCHEDULABLE_STATUSES and reservation.start > now


def build_slot_key(room_id: int, span: Span) -> str:
    """Return what identifies a room and a time, so that a stale page is noticed."""
    return f"{room_id}/{span.start.timestamp():.0f}/{span.end.timestamp():.0f}"


def get_waiver_refusal(user: User, *rooms: MeetingRoom) -> str:
    """Return why the user cannot waive the difference between these rooms; empty if they can."""
    for room in rooms:
        if not roles.has_permission(user, ADJUST_PRICE, room.center_id):
            return f"Only who may adjust prices at {room.center.name} can waive the difference."
    return ""


@in_transaction
def preview(
    reservation_id: int,
    *,
    room_id: int,
    start: dt.datetime,
    end: dt.datetime,
    waiver: str = "",
    expected_slot: str = "",
    by: User,
    now: dt.datetime,
) -> RescheduleResult:
    """Reschedule the reservation, roll that back and return the result.

    `problems` contains the reasons why it is not possible. Only invalid requests raise an error.
    """
    lock_drafts_of_customer(reservation_id, now=now)
    reservation, room = lock_for_rescheduling(reservation_id, room_id)
    _require_slot(reservation, expected_slot)
    new = _validate(reservation, room, start, end, now)
    result = _begin(reservation, new)
    evaluation = _evaluate(reservation, new, now)
    if not evaluation.is_available:
        transaction.set_rollback(True)
        return replace(result, problems=evaluation.staff_texts)
    result = _apply(result, waiver=waiver, by=by, now=now)
    if not reservation.is_new:
        try:
            price_changes.require_no_extra_charge(reservation, old_total=result.old_total)
        except ReservationNotOpen as error:
            is_more_expensive = result.difference > 0
            result = replace(result, problems=(error.message,), can_be_waived=is_more_expensive)
        else:
            result = replace(result, refund=-result.difference)
    transaction.set_rollback(True)
    return result


@fulfils_obligations
def reschedule(
    reservation_id: int,
    *,
    room_id: int,
    start: dt.datetime,
    end: dt.datetime,
    waiver: str = "",
    expected_slot: str = "",
    expected_total: Decimal | None = None,
    by: User,
    now: dt.datetime,
) -> tuple[RescheduleResult, list[Payment]]:
    """Reschedule a reservation. Times without an offset are local to the new center.

    `waiver` is the reason for waiving the difference to a higher price. `expected_total` is the new
    total in the preview, and `expected_slot` the key of the room and time that the user saw: if one
    has changed since then, nothing is done.

    Raises:
        SlotUnavailable, ReservationNotOpen, InvalidRequest, NotFound, PromoCodeInvalid,
        AllowanceExhausted, RateNotConfigured: nothing was changed.
        ServiceUnavailable: the payment is not resolved yet; nothing was changed.
    """
    lock_drafts_of_customer(reservation_id, now=now)
    reservation, room = lock_for_rescheduling(reservation_id, room_id)
    _require_slot(reservation, expected_slot)
    new = _validate(reservation, room, start, end, now)
    _evaluate(reservation, new, now).raise_if_unavailable()
    old_hold, old_override = reservation.hold_until, reservation.hours_override_reason
    result = _apply(_begin(reservation, new), waiver=waiver, by=by, now=now)
    price_changes.require_expected("price", result.new_total, expected=expected_total)
    payments: list[Payment] = []
    if not reservation.is_new:
        price_changes.require_no_extra_charge(reservation, old_total=result.old_total)
        refund, payments = price_changes.refund_reduction(
            reservation,
            old_total=result.old_total,
            reason="Moved to a cheaper room or time",
            now=now,
        )
        result = replace(result, refund=refund)
    old, waived = result.old, result.waived
    has_moved = old.room.center_id != new.room.center_id
    old_room, new_room = describe_room(old.room), describe_room(new.room)
    if has_moved and old_room == new_room:  # Two centers may have the same name.
        old_room += f" (center {old.room.center_id})"
        new_room += f" (center {new.room.center_id})"
    changes = {
        "room": (old_room, new_room),
        "start": (old.start, new.start),
        "end": (old.end, new.end),
        "hold_until": (old_hold, reservation.hold_until),
        "hours_override_reason": (old_override, reservation.hours_override_reason),
        "total_cost": (result.old_total, result.new_total),
        "refund": (None, result.refund or None),
        "waived": (None, f"{money.format_amount(waived)}: {waiver}" if waived else None),
    }
    history.record_changes(
        reservation,
        changes,
        by=by,
        now=now,
        former_center_id=old.room.center_id if has_moved else None,
    )
    if not reservation.is_new:
        emails.send_rescheduled(
            reservation,
            old_room=old.room,
            old_start=old.start,
            old_end=old.end,
            refund=result.refund,
            now=now,
        )
    return result, payments


def describe_room(room: MeetingRoom) -> str:
    return f"{room.name} at {room.center.name}"


# --- Validation ----------------------------------------------------------------------------------


def _require_slot(reservation: Reservation, expected_slot: str) -> None:
    """Raise ReservationNotOpen if the reservation has moved since the user saw it."""
    if expected_slot not in {"", build_slot_key(reservation.room_id, reservation.span)}:
        room = reservation.room
        time = dates.format_span(reservation.start, reservation.end, room.center.zone)
        raise ReservationNotOpen(
            f"It was moved meanwhile, to {describe_room(room)}, {time}. Nothing was changed."
        )


def _validate(
    reservation: Reservation,
    room: MeetingRoom,
    start: dt.datetime,
    end: dt.datetime,
    now: dt.datetime,
) -> RoomSlot:
    """Return the new slot if the reservation can be rescheduled and the slot is suitable."""
    if reservation.status == Status.PROCESSING:
        raise ReservationNotOpen("A payment is under way. Please try again in a minute.")
    if reservation.status not in RESCHEDULABLE_STATUSES:
        raise ReservationNotOpen(f"It is {reservation.status} and can no longer be moved.")
    if reservation.start <= now:
        raise ReservationNotOpen("Its time has come; it can no longer be moved.")
    span = resolve_span(room.center, start, end)
    if room.pk == reservation.room_id and span == reservation.span:
        raise InvalidRequest({"start_date": "It is in that room at that time already."})
    attendees = reservation.number_of_attendees
    if attendees > room.capacity:
        raise InvalidRequest(
            {"room": f"The room holds {room.capacity} people, and {attendees} are expected."}
        )
    missing = reservation.chosen_services.exclude(service__center=room.center_id)
    if names := ", ".join(missing.values_list("service__name", flat=True)):
        raise InvalidRequest({"room": f"That center does not offer what was booked: {names}."})
    return RoomSlot(room, span.start, span.end)


def _evaluate(reservation: Reservation, new: RoomSlot, now: dt.datetime) -> Availability:
    """Evaluate the new slot. Releases the customer's own drafts and expired holds that conflict."""
    user = reservation.user
    release_conflicting_holds(new.room, new.span, user=user, now=now, excluding=reservation)
    return availability.evaluate(
        new.room,
        new.span,
        now=now,
        for_user=user,
        excluding=reservation,
        ignore_opening_hours=reservation.is_outside_hours and _keeps_its_time(reservation, new),
    )


# --- The change ----------------------------------------------------------------------------------


def _begin(reservation: Reservation, new: RoomSlot) -> RescheduleResult:
    """Return the initial result, in which nothing has changed yet."""
    return RescheduleResult(
        reservation=reservation,
        old=RoomSlot(reservation.room, reservation.start, reservation.end),
        new=new,
        old_lines=tuple(reservation.line_items.order_by("position")),
        old_total=reservation.total_cost,
        new_total=reservation.total_cost,
    )


def _apply(
    result: RescheduleResult, *, waiver: str, by: User, now: dt.datetime
) -> RescheduleResult:
    """Reschedule and reprice the reservation. The caller holds the locks of both rooms."""
    reservation, new = result.reservation, result.new
    is_booked = not reservation.is_new
    if is_booked and waiver and (refusal := get_waiver_refusal(by, reservation.room, new.room)):
        raise InvalidRequest({"waiver": refusal})
    keeps_promo = _return_benefits(reservation, now=now) if is_booked else False
    _save_slot(reservation, new, now=now)
    reservation.price_adjustments.filter(is_waiver=True).delete()
    quote = bill.reprice(reservation)
    waived = money.ZERO
    if is_booked and waiver and quote.total > result.old_total:
        waived = calculate_waiver(quote, new.room.center.tax_rate, result.old_total)
        PriceAdjustment.objects.create(
            reservation=reservation, amount=-waived, reason=waiver, by=by, at=now, is_waiver=True
        )
        quote = bill.reprice(reservation)
    if is_booked:
        bill.consume_benefits(reservation, keeps_promo=keeps_promo, now=now)
    elif reservation.promo_code is not None:
        promo_codes.require_usable(reservation.promo_code, reservation, now=now)
    return replace(result, new_lines=quote.lines, new_total=reservation.total_cost, waived=waived)


def _return_benefits(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return the booking's promo use and included hours. True if it had used its promo code."""
    had_promo = reservation.promo_redemptions.filter(given_back_at__isnull=True).exists()
    bill.return_benefits(reservation, now=now)
    if reservation.promo_code is not None:
        # `return_benefits` has changed the counters of another instance.
        reservation.promo_code.refresh_from_db()
    return had_promo


def _keeps_its_time(reservation: Reservation, new: RoomSlot) -> bool:
    """Return whether only the room changes. An override applies to one time at one center."""
    is_same_center = new.room.center_id == reservation.room.center_id
    return is_same_center and (new.start, new.end) == (reservation.start, reservation.end)


def _save_slot(reservation: Reservation, new: RoomSlot, *, now: dt.datetime) -> None:
    if not _keeps_its_time(reservation, new):
        reservation.hours_override_reason = ""
    reservation.room = new.room
    reservation.start, reservation.end = new.start, new.end
    reservation.turnaround_minutes = new.room.turnaround_minutes
    if reservation.is_new:
        if not reservation.is_held_at(now):
            reservation.hold_until = now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF)
            # The new price is promised until after this hold (B15.2).
            reservation.price_held_until = None
            release_holds_for(reservation, now=now)
        assert reservation.hold_until is not None  # because it is held
        reservation.hold_until = min(reservation.hold_until, new.start)
        reservation.holds_slot = True
    else:
        payment = reservation.payments.order_by("pk").last()
        is_live_payment = payment.is_live if payment else reservation.is_live
        reservation.is_live = new.room.is_live_inventory and is_live_payment
        reservation.advance_calendar(now)
    reservation.save(
        update_fields=[
            *("room", "start", "end", "turnaround_minutes", "occupied_from", "occupied_until"),
            *("holds_slot", "hold_until", "price_held_until"),
            *("is_live", "hours_override_reason"),
            *("calendar_sequence", "calendar_changed_at"),
        ]
    )


def calculate_waiver(quote: Quote, tax_rate: Decimal, max_total: Decimal) -> Decimal:
    """Return the reduction before tax with which a bill, including tax, adds up to `max_total`.

    If no amount before tax gives exactly that total, the next lower total is used, and the
    remainder is refunded.
    """
    untaxed = sum((line.total for line in quote.lines if line.type != LineItemType.TAX), money.ZERO)
    step = Decimal(1).scaleb(-money.get_minor_digits())
    target = money.round_amount(max_total / (1 + tax_rate / 100)) + step
    while target + money.round_amount(target * tax_rate / 100) > max_total:
        target -= step
    return untaxed - target
