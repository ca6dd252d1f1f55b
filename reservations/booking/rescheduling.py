"""Moving a reservation to another room, another time, or both.

Under the locks of both rooms, in one transaction: the evaluator is asked with the reservation
itself left out, what is promised to it (promo use, included hours) is given back and taken anew for
the new time, and it is priced anew by today's rates. What that means for the money:

* A draft is only priced anew. Its hold goes on, or begins again where it had lapsed.
* What is Confirmed never costs its customer more by a move: see differences.py. What is cheaper is
  refunded; what is dearer is refused, or the difference is waived, by an adjustment on the bill
  with its reason. A waiver is good for that move alone: the next one prices the booking without it.
  It costs the center that it moves to, so that who waives may adjust prices there and where it was.
* A request (Pending) moves at the same price only: gateways take what was reserved.
* While a payment is under way, and once the meeting has begun, nothing is moved.

A promo code that a booking has used stays with it, whatever days and places it is for: the customer
was promised that price. A draft's code must be good for the new time and place.
"""

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from accounts import roles
from centers.models import MeetingRoom
from payments.models import Payment
from reservations import availability
from reservations.availability import Availability
from reservations.booking import checkout, history, price_changes
from reservations.booking.cancellation import capture_outstanding
from reservations.booking.drafts import release_conflicting_holds
from reservations.booking.locks import lock_for_rescheduling
from reservations.booking.price_adjustments import ADJUST_PRICE
from reservations.booking.span import resolve_span
from reservations.models import LineItem, LineItemType, PriceAdjustment, Reservation
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill as billing
from reservations.pricing import promo_codes
from reservations.pricing.quote import Quote, QuoteLine
from roombook import money
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, ReservationNotOpen

if TYPE_CHECKING:
    from accounts.models import User

RESCHEDULABLE_STATUSES = frozenset({Status.NEW, Status.PENDING, Status.CONFIRMED})


@dataclass(frozen=True, slots=True)
class RoomSlot:
    """Where and when a reservation is."""

    room: MeetingRoom
    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, slots=True)
class RescheduleResult:
    """What a move does, or would do: `reservation` is as it is after it."""

    reservation: Reservation
    old: RoomSlot
    new: RoomSlot
    old_lines: tuple[LineItem, ...]
    new_lines: tuple[QuoteLine, ...]
    old_total: Decimal
    new_total: Decimal
    waived: Decimal
    refund: Decimal
    # Why it cannot be done, in words for staff; empty where it can be.
    problems: tuple[str, ...] = ()
    # What is in the way is the price alone: who may, can waive the difference.
    can_be_waived: bool = False

    @property
    def difference(self) -> Decimal:
        return self.new_total - self.old_total


def can_reschedule(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Whether a move may be thought of at all."""
    return reservation.status in RESCHEDULABLE_STATUSES and reservation.start > now


def get_waiver_refusal(user: "User", *rooms: MeetingRoom) -> str:
    """Why they cannot waive the difference between these rooms; empty where they can."""
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
    by: "User",
    now: dt.datetime,
) -> RescheduleResult:
    """What a move would do, found out by doing it and not a row changed.

    What stands in its way is told, not raised; only what makes no sense as a move is.
    """
    reservation, room = lock_for_rescheduling(reservation_id, room_id)
    place = _judged(reservation, room, start, end, now)
    would = _unmoved(reservation, place)
    answer = _availability(reservation, place, now)
    if not answer.is_available:
        transaction.set_rollback(True)
        return replace(would, problems=answer.staff_text)
    would = _relocated(would, waiver=waiver, by=by, now=now)
    if not reservation.is_new:
        try:
            price_changes.require_no_extra_charge(reservation, old_total=would.old_total)
        except ReservationNotOpen as error:
            is_dearer = would.difference > 0
            would = replace(would, problems=(error.message,), can_be_waived=is_dearer)
        else:
            would = replace(would, refund=-would.difference)
    transaction.set_rollback(True)
    return would


def reschedule(
    reservation_id: int,
    *,
    room_id: int,
    start: dt.datetime,
    end: dt.datetime,
    waiver: str = "",
    expected_total: Decimal | None = None,
    by: "User",
    now: dt.datetime,
) -> RescheduleResult:
    """Move a reservation; times without an offset are the new center's.

    `waiver` is the reason for which a dearer place costs no more. `agreed` is the new total that
    whoever decided has seen: at another one nothing is done. Raises SlotUnavailable,
    ReservationNotOpen, InvalidRequest, NotFound, PromoCodeInvalid, AllowanceExhausted,
    RateNotConfigured, or ServiceUnavailable where money has yet to be settled; then nothing is
    changed.
    """
    # Money that is owed to us is taken first, so that a part of it can be given back.
    capture_outstanding(reservation_id, now=now)
    done, payment = _move(
        reservation_id,
        room_id=room_id,
        start=start,
        end=end,
        waiver=waiver,
        expected_total=expected_total,
        by=by,
        now=now,
    )
    if payment is not None:
        checkout.try_fulfil_obligations(payment, now=now)
    return done


@in_transaction
def _move(
    reservation_id: int,
    *,
    room_id: int,
    start: dt.datetime,
    end: dt.datetime,
    waiver: str,
    expected_total: Decimal | None,
    by: "User",
    now: dt.datetime,
) -> tuple[RescheduleResult, Payment | None]:
    reservation, room = lock_for_rescheduling(reservation_id, room_id)
    place = _judged(reservation, room, start, end, now)
    _availability(reservation, place, now).require()
    held_until, override = reservation.hold_until, reservation.hours_override_reason
    done = _relocated(_unmoved(reservation, place), waiver=waiver, by=by, now=now)
    price_changes.require_expected("price", done.new_total, shown=expected_total)
    payment = None
    if not reservation.is_new:
        price_changes.require_no_extra_charge(reservation, old_total=done.old_total)
        refund, payment = price_changes.refund_reduction(
            reservation, old_total=done.old_total, reason="Moved to a cheaper room or time", now=now
        )
        done = replace(done, refund=refund)
    old, waived = done.old, done.waived
    changes = {
        "room": (describe_room(old.room), describe_room(place.room)),
        "start": (old.start, place.start),
        "end": (old.end, place.end),
        "hold_until": (held_until, reservation.hold_until),
        "hours_override_reason": (override, reservation.hours_override_reason),
        "total_cost": (done.old_total, done.new_total),
        "refund": (None, done.refund or None),
        "waived": (None, f"{money.format_amount(waived)}: {waiver}" if waived else None),
    }
    history.record_changes(reservation, changes, by=by, now=now)
    if not reservation.is_new:
        emails.send_rescheduled(reservation, old, refund=done.refund, now=now)
    return done, payment


def describe_room(room: MeetingRoom) -> str:
    return f"{room.name} at {room.center.name}"


# --- Before --------------------------------------------------------------------------------------


def _place_of(reservation: Reservation) -> RoomSlot:
    return RoomSlot(reservation.room, reservation.start, reservation.end)


def _judged(
    reservation: Reservation,
    room: MeetingRoom,
    start: dt.datetime,
    end: dt.datetime,
    now: dt.datetime,
) -> RoomSlot:
    """Where it is to go, if it may go anywhere and that place can take it at all."""
    if reservation.status == Status.PROCESSING:
        raise ReservationNotOpen("A payment is under way. Please try again in a minute.")
    if reservation.status not in RESCHEDULABLE_STATUSES:
        raise ReservationNotOpen(f"It is {reservation.status} and can no longer be moved.")
    if reservation.start <= now:
        raise ReservationNotOpen("Its time has come; it can no longer be moved.")
    span = resolve_span(room.center, start, end)
    if room.pk == reservation.room_id and span == reservation.span:
        raise InvalidRequest({"start_date": "It is in that room at that time already."})
    if reservation.number_of_attendees > room.capacity:
        people = reservation.number_of_attendees
        raise InvalidRequest(
            {"room": f"The room holds {room.capacity} people, and {people} are expected."}
        )
    chosen = reservation.chosen_services.exclude(service__center=room.center_id)
    if names := ", ".join(chosen.values_list("service__name", flat=True)):
        raise InvalidRequest({"room": f"That center does not offer what was booked: {names}."})
    return RoomSlot(room, span.start, span.end)


def _availability(reservation: Reservation, place: RoomSlot, now: dt.datetime) -> Availability:
    """Whether it can go there; the customer's own drafts and lapsed holds give way."""
    span = resolve_span(place.room.center, place.start, place.end)
    release_conflicting_holds(place.room, span, user=reservation.user, now=now, but=reservation)
    return availability.evaluate(
        place.room,
        span,
        now=now,
        for_user=reservation.user,
        ignoring=reservation,
        outside_hours=reservation.is_outside_hours and _keeps_its_time(reservation, place),
    )


# --- The move itself -----------------------------------------------------------------------------


def _unmoved(reservation: Reservation, place: RoomSlot) -> RescheduleResult:
    """A move of which nothing is done yet: what it begins with."""
    return RescheduleResult(
        reservation=reservation,
        old=_place_of(reservation),
        new=place,
        old_lines=tuple(reservation.line_items.order_by("position")),
        new_lines=(),
        old_total=reservation.total_cost,
        new_total=reservation.total_cost,
        waived=money.ZERO,
        refund=money.ZERO,
    )


def _relocated(
    move: RescheduleResult, *, waiver: str, by: "User", now: dt.datetime
) -> RescheduleResult:
    """Put it there and price it anew. The caller holds all locks of rooms."""
    reservation, place = move.reservation, move.new
    is_booked = not reservation.is_new
    if is_booked and waiver and (refusal := get_waiver_refusal(by, reservation.room, place.room)):
        raise InvalidRequest({"waiver": refusal})
    keeps_promo = _give_back(reservation, now=now) if is_booked else False
    _place(reservation, place, now=now)
    reservation.price_adjustments.filter(is_waiver=True).delete()
    quote = billing.reprice(reservation)
    waived = money.ZERO
    if is_booked and waiver and quote.total > move.old_total:
        waived = calculate_waiver(quote, place.room.center.tax_rate, move.old_total)
        PriceAdjustment.objects.create(
            reservation=reservation, amount=-waived, reason=waiver, by=by, at=now, is_waiver=True
        )
        quote = billing.reprice(reservation)
    if is_booked:
        billing.consume_benefits(reservation, keeps_promo=keeps_promo, now=now)
    elif reservation.promo_code is not None:
        promo_codes.require_usable(reservation.promo_code, reservation, now=now)
    return replace(move, new_lines=quote.lines, new_total=reservation.total_cost, waived=waived)


def _give_back(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Give back what the booking has used up; whether a use of its promo code was among that."""
    had_promo = reservation.promo_redemptions.filter(given_back_at__isnull=True).exists()
    billing.return_benefits(reservation, now=now)
    if reservation.promo_code is not None:
        # Its counters have just moved, in another copy of it.
        reservation.promo_code.refresh_from_db()
    return had_promo


def _keeps_its_time(reservation: Reservation, place: RoomSlot) -> bool:
    """Whether only the room changes; hours were overridden for that time of that center alone."""
    same_center = place.room.center_id == reservation.room.center_id
    return same_center and (place.start, place.end) == (reservation.start, reservation.end)


def _place(reservation: Reservation, place: RoomSlot, *, now: dt.datetime) -> None:
    if not _keeps_its_time(reservation, place):
        reservation.hours_override_reason = ""
    reservation.room = place.room
    reservation.start, reservation.end = place.start, place.end
    reservation.turnaround_minutes = place.room.turnaround_minutes
    if reservation.is_new:
        if not reservation.is_held_at(now):
            reservation.hold_until = now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF)
        reservation.holds_slot = True
    else:
        payment = reservation.payments.order_by("pk").last()
        is_live_money = payment.is_live if payment else reservation.is_live
        reservation.is_live = place.room.is_live_inventory and is_live_money
    reservation.save(
        update_fields=[
            *("room", "start", "end", "turnaround_minutes", "occupied_from", "occupied_until"),
            *("holds_slot", "hold_until", "is_live", "hours_override_reason"),
        ]
    )


def calculate_waiver(quote: Quote, tax_rate: Decimal, most: Decimal) -> Decimal:
    """What to take off a bill before tax, so that with tax it comes to `most`.

    Where no sum before tax comes to exactly that, to the nearest below: the rest is refunded.
    """
    untaxed = sum((line.total for line in quote.lines if line.type != LineItemType.TAX), money.ZERO)
    step = Decimal(1).scaleb(-money.get_minor_digits())
    wanted = money.round_amount(most / (1 + tax_rate / 100)) + step
    while wanted + money.round_amount(wanted * tax_rate / 100) > most:
        wanted -= step
    return untaxed - wanted
