"""The steps of a change of a reservation: validated, evaluated, applied and recorded under locks.

Rescheduling (rescheduling.py) and changes whose difference is paid by card (changes.py) share them.
A booking that changes is priced again by today's rates if its room, its time or its services
change. It keeps the promo code that it has used, even if the code has expired or is used up since.
If the customer changes it, the code must be for the new room and day; if staff do, it need not be.
The code of a draft must be valid in every way.
"""

import copy
import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from django.conf import settings
from django.utils.crypto import salted_hmac

from accounts.models import User
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from centers.span import Span
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from reservations import availability
from reservations.availability import Availability
from reservations.booking import drafts
from reservations.booking.change_request import ChangeRequest, ChangeResult, RoomSlot
from reservations.booking.holds import release_conflicting_holds, release_holds_for
from reservations.models import (
    Attendee,
    LineItemType,
    PriceAdjustment,
    Reservation,
    history,
)
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill, promo_codes, services
from reservations.pricing.quote import Quote
from roombook import money
from roombook.errors import InvalidRequest, ReservationNotOpen

RESCHEDULABLE_STATUSES = frozenset({Status.NEW, Status.PENDING, Status.CONFIRMED})
PAYMENT_UNDER_WAY = "A payment is under way. Please try again in a minute."


# --- Validation ----------------------------------------------------------------------------------


def begin(
    reservation: Reservation,
    room: MeetingRoom,
    request: ChangeRequest,
    *,
    is_by_staff: bool,
    now: dt.datetime,
) -> ChangeResult:
    """Return the initial result, in which nothing has changed yet, or raise.

    The caller holds the locks of both rooms and of the reservation. Staff can extend a meeting that
    is running: only its end moves.

    Raises ReservationNotOpen or InvalidRequest.
    """
    if reservation.status == Status.PROCESSING:
        raise ReservationNotOpen(PAYMENT_UNDER_WAY)
    if reservation.status not in RESCHEDULABLE_STATUSES:
        raise ReservationNotOpen(f"It is {reservation.status} and can no longer be moved.")
    span = resolve_span(room.center, request.start, request.end)
    if reservation.start <= now and not (
        is_by_staff and _is_extension(reservation, room, span, now=now)
    ):
        raise ReservationNotOpen("Its time has come; it can no longer be moved.")
    selections = None
    if request.services is not None:
        booked = bill.get_selected_services(reservation)
        selected = services.select_services(room.center, request.services, span, booked=booked)
        selections = None if selected == booked else tuple(selected)
    else:
        missing = reservation.chosen_services.exclude(service__center=room.center_id)
        if names := ", ".join(missing.values_list("service__name", flat=True)):
            raise InvalidRequest(
                {"meeting_room_id": f"That center does not offer what was booked: {names}."}
            )
    attendees = reservation.number_of_attendees
    is_same_number = request.attendees is None and request.number_of_attendees is None
    if is_same_number and attendees > room.capacity:
        problem = f"The room holds {room.capacity} people, and {attendees} are expected."
        raise InvalidRequest({"meeting_room_id": problem})
    return ChangeResult(
        reservation=reservation,
        former=copy.copy(reservation),
        old=RoomSlot(reservation.room, reservation.start, reservation.end),
        new=RoomSlot(room, span.start, span.end),
        old_lines=tuple(reservation.line_items.order_by("position")),
        old_total=reservation.total_cost,
        new_total=reservation.total_cost,
        selections=selections,
    )


def can_extend(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether staff can extend the meeting: it is booked, and runs now."""
    return reservation.status == Status.CONFIRMED and reservation.start <= now < reservation.end


def _is_extension(
    reservation: Reservation, room: MeetingRoom, span: Span, *, now: dt.datetime
) -> bool:
    return (
        can_extend(reservation, now=now)
        and room.pk == reservation.room_id
        and span.start == reservation.start
        and span.end > reservation.end
    )


def is_same(result: ChangeResult, request: ChangeRequest) -> bool:
    """Return whether the reservation is already as it should be."""
    reservation, old, new = result.reservation, result.old, result.new
    if old.room.pk != new.room.pk or old.span != new.span:
        return False
    if result.selections is not None:
        return False
    count = request.number_of_attendees
    if count is not None and count != reservation.number_of_attendees:
        return False
    if request.attendees is None:
        return True
    wanted = drafts.add_creator(reservation.user, request.attendees)
    return _describe_guests(wanted) == _describe_guests(reservation.attendees.all())


def build_details_key(reservation: Reservation) -> str:
    """Return what identifies services and attendees, so that a stale page is noticed.

    It is keyed, because users see it who may not see the guests.
    """
    rows = reservation.chosen_services.order_by("service_id")
    chosen = list(rows.values_list("service", "duration_hours", "quantity"))
    guests = _describe_guests(reservation.attendees.all())
    details = (reservation.number_of_attendees, chosen, guests)
    return salted_hmac("reservation details", repr(details)).hexdigest()


def _describe_guests(guests: Iterable[Attendee]) -> list[tuple[str, str, str]]:
    return sorted((each.name, each.email_address, each.company_name) for each in guests)


def evaluate(result: ChangeResult, *, now: dt.datetime) -> Availability:
    """Evaluate the new slot. Releases the customer's own drafts and expired holds that conflict."""
    reservation, new = result.reservation, result.new
    user = reservation.user
    release_conflicting_holds(new.room, new.span, user=user, now=now, excluding=reservation)
    return availability.evaluate(
        new.room,
        new.span,
        now=now,
        for_user=user,
        excluding=reservation,
        ignore_opening_hours=reservation.is_outside_hours and _keeps_its_time(reservation, new),
        has_begun=reservation.start <= now,
    )


# --- The change ----------------------------------------------------------------------------------


def apply(
    result: ChangeResult,
    request: ChangeRequest,
    *,
    is_by_staff: bool,
    waiver: str = "",
    by: User | None,
    now: dt.datetime,
) -> ChangeResult:
    """Change and reprice the reservation. The caller has evaluated the new slot.

    `waiver` is the reason for which the difference to a higher price is waived.

    Raises PromoCodeInvalid or AllowanceExhausted.
    """
    reservation, new = result.reservation, result.new
    is_booked = not reservation.is_new
    is_repriced = result.old != new or result.selections is not None
    keeps_promo = is_booked and is_repriced and _return_benefits(reservation, now=now)
    _save_slot(reservation, new, now=now)
    _save_details(result, request)
    if not is_repriced:
        return result
    reservation.price_adjustments.filter(is_waiver=True).delete()
    quote = bill.reprice(reservation)
    waived = money.ZERO
    if is_booked and waiver and by is not None and quote.total > result.old_total:
        waived = calculate_waiver(quote, new.room.center.tax_rate, result.old_total)
        PriceAdjustment.objects.create(
            reservation=reservation, amount=-waived, reason=waiver, by=by, at=now, is_waiver=True
        )
        quote = bill.reprice(reservation)
    if is_booked:
        bill.consume_benefits(
            reservation, keeps_promo=keeps_promo, is_by_staff=is_by_staff, now=now
        )
    elif reservation.promo_code is not None:
        promo_codes.require_usable(reservation.promo_code, reservation, now=now)
    return replace(result, new_lines=quote.lines, new_total=reservation.total_cost, waived=waived)


def _save_details(result: ChangeResult, request: ChangeRequest) -> None:
    """Store the services and the attendees if they change."""
    reservation = result.reservation
    if result.selections is not None:
        reservation.chosen_services.all().delete()
        drafts.save_services(reservation, result.selections)
    if request.attendees is None and request.number_of_attendees is None:
        return
    guests: Sequence[Attendee] = list(reservation.attendees.all())
    if request.attendees is not None:
        guests = drafts.add_creator(reservation.user, request.attendees)
    count = request.number_of_attendees
    if count is None:
        count = max(reservation.number_of_attendees, len(guests))
    reservation.number_of_attendees = drafts.resolve_attendee_count(result.new.room, count, guests)
    reservation.save(update_fields=["number_of_attendees"])
    if request.attendees is not None:
        reservation.attendees.all().delete()
        drafts.save_attendees(reservation, guests)


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
    if reservation.room.center_id != new.room.center_id:
        # What is captured already stays in the cash of the previous center (B18).
        uncaptured = reservation.payments.filter(captured_at=None)
        uncaptured.update(cash_center=new.room.center_id)
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


# --- What others see of it -----------------------------------------------------------------------


def record(
    result: ChangeResult,
    *,
    waiver: str = "",
    way: str = "",
    by: User | None,
    now: dt.datetime,
) -> None:
    """Record the change in the history, and write to the customer of a booking.

    `way` says how a difference was paid.
    """
    reservation, former = result.reservation, result.former
    old, new = result.old, result.new
    has_moved = old.room.center_id != new.room.center_id
    old_room, new_room = describe_room(old.room), describe_room(new.room)
    if has_moved and old_room == new_room:  # Two centers may have the same name.
        old_room += f" (center {old.room.center_id})"
        new_room += f" (center {new.room.center_id})"
    waived = f"{money.format_amount(result.waived)}: {waiver}" if result.waived else None
    charge = f"{money.format_amount(result.charge)} ({way})" if result.charge else None
    changes = {
        "room": (old_room, new_room),
        "start": (old.start, new.start),
        "end": (old.end, new.end),
        "hold_until": (former.hold_until, reservation.hold_until),
        "hours_override_reason": (
            former.hours_override_reason,
            reservation.hours_override_reason,
        ),
        "number_of_attendees": (former.number_of_attendees, reservation.number_of_attendees),
        "services": (None, _describe_services(result)),
        "total_cost": (result.old_total, result.new_total),
        "refund": (None, result.refund or None),
        "charge": (None, charge),
        "waived": (None, waived),
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
            charge=result.charge,
            now=now,
        )
        post(reservation.pk, EventKind.CHANGED, by=by, now=now)


def _describe_services(result: ChangeResult) -> str | None:
    """Describe the new services, or return None if they were not changed."""
    if result.selections is None:
        return None
    return ", ".join(each.service.name for each in result.selections) or "none"


def describe_room(room: MeetingRoom) -> str:
    return f"{room.name} at {room.center.name}"
