"""A reservation becomes another one, and the difference of its price is covered (B15.4, B27).

Everybody amends in the same way (`perform`): lock both rooms and the reservation, evaluate the new
slot without the reservation itself, return the benefits, store the new room, time, services and
attendees, price them by today's rates, consume the benefits again, require the total that the user
has seen, cover the difference, and record it all. Only how it is covered differs:

* A draft is only repriced. Its hold continues, or starts again if it has expired.
* What was charged above the price of a booking that becomes cheaper is refunded. The gateway is
  called after the transaction, by `reconcile_payments` if the worker dies in between.
* If a booking becomes more expensive, staff have taken the difference, or it is waived by an
  adjustment with a reason that the bill shows. A waiver applies once: the next amendment prices the
  booking without it. The new center bears its cost, so it needs the permission at both centers.
* A card or a payment link pays the difference in more than one transaction: differences.py.
* A request (Pending) keeps its price, because gateways capture the authorized amount.

Extras that staff add do not reprice a booking: its bill gets more lines.

A booking keeps the promo code that it has used, even if the code has expired or is used up since.
If the customer amends it, the code must be for the new room and day; if staff do, it need not be.
"""

import copy
import datetime as dt
import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import cast

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounts import roles
from accounts.act import Act
from accounts.models import User
from centers.hours import MINUTE, round_up_to_slot
from centers.models import Center, MeetingRoom
from centers.requested_span import resolve_span
from centers.rooms import get_booking_rules
from centers.span import Span
from payments import refunds
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.manual_payments import record_manual_payment
from payments.models import Payment, PaymentPurpose, PaymentState
from reservations import availability
from reservations.availability import Availability
from reservations.booking import booking_values
from reservations.booking.booking_values import NO_CHANGES, ChangedValues
from reservations.booking.charging import lock_booked_payments
from reservations.booking.checkout import require_account_payment
from reservations.booking.commands import (
    PAYMENT_UNDER_WAY,
    Obstacle,
    Refused,
    Unsettled,
    command,
)
from reservations.booking.holds import release_conflicting_holds, release_holds_for
from reservations.booking.locks import (
    lock_drafts_of_customer,
    lock_with_account,
    require_account,
)
from reservations.models import (
    BookingChange,
    ChangeState,
    LineItem,
    LineItemType,
    PriceAdjustment,
    Reservation,
    history,
)
from reservations.models.booking_fields import COLUMN_FIELDS, BookingValues, split_values
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill, promo_codes
from reservations.pricing.quote import Quote, QuoteLine
from reservations.pricing.terms import get_changed_terms, get_present_terms
from roombook import dates, money
from roombook.errors import InvalidRequest, ReservationNotOpen, SlotUnavailable

ADJUST_PRICE, BILL_EXTRA = "reservations.adjust_price", "reservations.bill_extra"
AMENDABLE_STATUSES = frozenset({Status.NEW, Status.PENDING, Status.CONFIRMED})
# For so long after its end, staff can bill that a meeting has lasted longer.
OVERRUN = dt.timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class RoomSlot:
    """A room and a time span."""

    room: MeetingRoom
    start: dt.datetime
    end: dt.datetime

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What a reservation should be. Times without an offset are local to the center of the room.

    `expected_version` is that of the reservation that the user saw; None if it need not be the
    same. `asked_at` is when staff asked for it, if a payment was to come first.
    """

    room_id: int
    start: dt.datetime
    end: dt.datetime
    values: BookingValues = field(default_factory=BookingValues)
    expected_version: int | None = field(default=None, compare=False)
    asked_at: dt.datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Amendment:
    """A reservation before (`former`) and after, on its way or as a preview.

    `charge` is what was charged for a higher price, and `way` says how. `obstacle` keeps
    it from being committed: it is refused if a higher price is neither paid nor waived.
    """

    reservation: Reservation
    former: Reservation
    request: ChangeRequest
    old: RoomSlot
    new: RoomSlot
    act: Act
    old_lines: tuple[LineItem, ...]
    new_total: Decimal
    new_lines: tuple[QuoteLine | LineItem, ...] = ()
    changed: ChangedValues = NO_CHANGES
    waived: Decimal = money.ZERO
    refund: Decimal = money.ZERO
    charge: Decimal = money.ZERO
    way: str = ""
    obstacle: Obstacle = None

    @property
    def old_total(self) -> Decimal:
        return Decimal(self.former.total_cost)

    @property
    def difference(self) -> Decimal:
        return self.new_total - self.old_total

    @property
    def is_refused(self) -> bool:
        return isinstance(self.obstacle, Refused)

    @property
    def is_same(self) -> bool:
        """Whether the reservation is already as it should be."""
        return self.old == self.new and self.changed == NO_CHANGES

    @property
    def is_used(self) -> bool:
        """Whether the meeting is over, and its new time ends now or before."""
        new, now = self.new, self.act.now
        return self.old.end <= now and new.end <= get_end_of_slot(new.room, now)


@dataclass(frozen=True, slots=True)
class TakenPayment:
    """How staff took a difference without a gateway: its name, and the number of the slip."""

    gateway: str
    reference: str = ""


# --- Who may, and when ----------------------------------------------------------------------------


def can_reschedule(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether the status and the time allow the reservation to be rescheduled."""
    return reservation.status in AMENDABLE_STATUSES and reservation.start > now


def can_extend(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether staff can extend the meeting: until half an hour after its end (B27.8)."""
    return reservation.is_confirmed_or_completed and now < reservation.end + OVERRUN


def can_add_to_bill(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether staff can add services and extras: until noon of the next day (B27.9)."""
    zone = reservation.room.center.zone
    day = (reservation.end - MINUTE).astimezone(zone).date() + dt.timedelta(days=1)
    noon = dt.datetime.combine(day, dt.time(12), zone)
    return reservation.is_confirmed_or_completed and now < noon


def may_bill_extras(act: Act, room: MeetingRoom) -> bool:
    return act.is_staff and roles.has_permission(act.staff, BILL_EXTRA, room.center_id)


def get_waiver_refusal(user: User, *rooms: MeetingRoom) -> str:
    """Return why the user cannot waive the difference between these rooms; empty if they can."""
    for room in rooms:
        if not roles.has_permission(user, ADJUST_PRICE, room.center_id):
            return f"Only who may adjust prices at {room.center.name} can waive the difference."
    return ""


def require_version(reservation: Reservation, expected: int | None) -> None:
    """Raise ReservationNotOpen if the reservation is no longer as the user saw it."""
    if expected is not None and expected != reservation.version:
        span, room = reservation.span, reservation.room
        time = dates.format_span(span.start, span.end, room.center.zone)
        raise ReservationNotOpen(
            f"It was changed meanwhile, and is in {describe_room(room)}, {time}. Nothing was"
            " changed now. Please open the page again."
        )


def require_expected(label: str, amount: Decimal, *, expected: Decimal | None) -> None:
    """Raise ReservationNotOpen if an amount differs from the one that the user has confirmed.

    So a change that is confirmed twice is applied once. `expected` is None if no amount was shown.
    """
    if expected is not None and amount != expected:
        raise ReservationNotOpen(
            f"The {label} has changed: it comes to {money.format_amount(amount)} now. Nothing was"
            " done. Please look again."
        )


# --- By staff, in one transaction -----------------------------------------------------------------


@command
def amend(
    act: Act,
    reservation_id: int,
    request: ChangeRequest,
    *,
    waiver: str = "",
    taken: TakenPayment | None = None,
    expected_total: Decimal | None = None,
) -> tuple[Amendment, Obstacle]:
    """Amend a reservation for staff.

    `waiver` is the reason for waiving the difference to a higher price; `taken` is how the customer
    has paid it. It is refused without both; its preview shows the price. `expected_total` is the
    new total in the preview: if it or what the user saw has changed since then, nothing is done.

    Raises:
        SlotUnavailable, ReservationNotOpen, InvalidRequest, NotFound, PromoCodeInvalid,
        AllowanceExhausted, RateNotConfigured: nothing was changed.
        ServiceUnavailable: the payment is not resolved yet; nothing was changed.
    """
    lock_drafts_of_customer(reservation_id, now=act.now)
    cover = refund_or_refuse
    if taken is not None:
        if taken.gateway == ACCOUNT.name:
            # First of all, because it locks the customer's account.
            if expected_total is None:
                raise InvalidRequest({"gateway": "The new price is needed."})
            row = Reservation.objects.select_related("room", "user").get(pk=reservation_id)
            require_account_payment(act, row, expected_total - row.total_cost)
        cover = functools.partial(_take, taken=taken)
    reservation, room = lock_with_account(reservation_id, request.room_id)
    require_version(reservation, request.expected_version)
    amendment = begin(act, reservation, room, request)
    if amendment.is_same:
        raise InvalidRequest({"start_date": "It is like that already. Nothing would change."})
    amendment = perform(amendment, cover, waiver=waiver, expected_total=expected_total)
    return amendment, amendment.obstacle


# --- The steps ------------------------------------------------------------------------------------


def begin(
    act: Act, reservation: Reservation, room: MeetingRoom, request: ChangeRequest
) -> Amendment:
    """Validate the request; nothing has changed yet.

    The caller holds the locks of `lock_with_account`. Staff can extend a meeting that has begun,
    and add to its bill: it stays in its room, and its start does not move.

    Raises ReservationNotOpen or InvalidRequest.
    """
    require_account(reservation)
    if reservation.status == Status.PROCESSING:
        raise ReservationNotOpen(PAYMENT_UNDER_WAY)
    is_over = reservation.status == Status.COMPLETED
    if not is_over and reservation.status not in AMENDABLE_STATUSES:
        raise ReservationNotOpen(f"It is {reservation.status} and can no longer be moved.")
    span = resolve_span(room.center, request.start, request.end)
    old = RoomSlot(reservation.room, reservation.start, reservation.end)
    new = RoomSlot(room, span.start, span.end)
    if is_over or old.start <= act.now:
        is_possible = can_add_to_bill if new.end == old.end else can_extend
        keeps_start = (old.room.pk, old.start) == (room.pk, new.start) and new.end >= old.end
        asked_at = request.asked_at or act.now
        if not (act.is_staff and keeps_start and is_possible(reservation, now=asked_at)):
            raise ReservationNotOpen("Its time has come; it can no longer be moved.")
    if "services" not in request.values:
        missing = reservation.chosen_services.exclude(service__center=room.center_id)
        if names := ", ".join(missing.values_list("service__name", flat=True)):
            raise InvalidRequest(
                {"meeting_room_id": f"That center does not offer what was booked: {names}."}
            )
    amendment = Amendment(
        reservation,
        copy.copy(reservation),
        request,
        old,
        new,
        act,
        old_lines=tuple(reservation.line_items.order_by("position")),
        new_total=reservation.total_cost,
        changed=booking_values.find_changes(reservation, room, span, request.values),
    )
    if amendment.changed.extras and not may_bill_extras(act, room):
        raise InvalidRequest({"extras": "Your role does not allow extras at this center."})
    attendees = reservation.number_of_attendees
    is_same_number = "number_of_attendees" not in amendment.changed.columns
    if not amendment.is_same and is_same_number and attendees > room.capacity:
        problem = f"The room holds {room.capacity} people, and {attendees} are expected."
        raise InvalidRequest({"meeting_room_id": problem})
    return amendment


@transaction.atomic
def perform(
    amendment: Amendment,
    cover: Callable[[Amendment], Amendment],
    *,
    waiver: str = "",
    expected_total: Decimal | None = None,
) -> Amendment:
    """Amend the locked reservation, cover the difference, and record it all, or raise.

    If the difference is left unpaid, it is refused, and nothing has changed. What waits for a
    payment is called off: the booking is not as it was.
    """
    evaluate(amendment).raise_if_unavailable()
    amendment = _apply(amendment, waiver)
    require_expected("price", amendment.new_total, expected=expected_total)
    amendment = cover(amendment)
    if amendment.is_refused:
        transaction.set_rollback(True)
        return amendment
    call_off_changes(amendment.reservation, now=amendment.act.now)
    _record(amendment, waiver)
    return amendment


def evaluate(amendment: Amendment) -> Availability:
    """Evaluate the new slot. Releases the customer's own drafts and expired holds that conflict.

    Of time that was used already, only whether somebody else had the room matters.
    """
    reservation, old, new = amendment.reservation, amendment.old, amendment.new
    user, now = reservation.user, amendment.act.now
    has_begun = reservation.start <= now
    if has_begun and old == new:
        return Availability()
    # A draft or request of a customer could not be paid or approved after its start.
    may_have_begun = reservation.status == Status.CONFIRMED or reservation.created_by_id is not None
    release_conflicting_holds(new.room, new.span, user=user, now=now, excluding=reservation)
    answer = availability.evaluate(
        new.room,
        new.span,
        now=now,
        for_user=user,
        excluding=reservation,
        ignore_opening_hours=reservation.is_outside_hours and _keeps_its_time(amendment),
        has_begun=has_begun,
        by_staff=amendment.act.is_staff and may_have_begun,
    )
    if has_begun and old.end <= now:
        rows = Reservation.slots.filter(room=new.room, start__lt=new.end, end__gt=old.end)
        others = rows.exclude(Q(pk=reservation.pk) | Q(holds_for=reservation.pk))
        if others.filter(status=Status.COMPLETED).exists():
            raise SlotUnavailable
        if amendment.is_used:
            # Turnarounds do not matter any more, so HELD would say too much.
            if others.active_holds(now).exists():
                raise SlotUnavailable
            kept = (each for each in answer.reasons if each.code == availability.OFF_GRID)
            return Availability(tuple(kept))
    return answer


def is_in_turnaround(amendment: Amendment) -> bool:
    """Return whether what was used reaches into a turnaround: it is billed, but holds nothing."""
    reservation, new, now = amendment.reservation, amendment.new, amendment.act.now
    if not amendment.is_used:
        return False
    answer = availability.evaluate(
        new.room, new.span, now=now, for_user=reservation.user, excluding=reservation
    )
    return any(each.code == availability.HELD for each in answer.reasons)


def get_end_of_slot(room: MeetingRoom, at: dt.datetime) -> dt.datetime:
    """Return the end of the room's time slot that is running at that time."""
    return round_up_to_slot(at, room.center.zone, get_booking_rules(room).slot_minutes)


def _keeps_its_time(amendment: Amendment) -> bool:
    """Return whether only the room changes. An override applies to one time at one center."""
    old, new = amendment.old, amendment.new
    return old.room.center_id == new.room.center_id and old.span == new.span


def _apply(amendment: Amendment, waiver: str) -> Amendment:
    """Change and reprice the reservation. Raises PromoCodeInvalid or AllowanceExhausted."""
    reservation, new, act = amendment.reservation, amendment.new, amendment.act
    is_booked = not reservation.is_new
    waived_by = act.user if is_booked and waiver else None
    if waived_by and (refusal := get_waiver_refusal(waived_by, amendment.old.room, new.room)):
        raise InvalidRequest({"waiver": refusal})
    changed, has_new_code = amendment.changed, "promo_code" in amendment.changed.columns
    if waived_by and changed.extras:
        raise InvalidRequest({"waiver": "An extra is not waived. Leave it out."})
    is_repriced = amendment.old != new or changed.services is not None or has_new_code
    is_repriced |= bool(changed.extras) and reservation.is_new
    keeps_promo = is_booked and is_repriced and _return_benefits(reservation, now=act.now)
    _save_slot(amendment)
    booking_values.save_changes(reservation, changed)
    for each in changed.extras:
        _adjust(amendment, each["amount"], each["text"])
    if not is_repriced:
        for each in changed.extras:
            bill.append_adjustment(reservation, amount=each["amount"], reason=each["text"])
        lines = tuple(reservation.line_items.order_by("position")) if changed.extras else ()
        return replace(amendment, new_lines=lines, new_total=reservation.total_cost)
    reservation.price_adjustments.filter(is_waiver=True).delete()
    quote = bill.reprice(reservation)
    waived = money.ZERO
    if waived_by and quote.total > amendment.old_total:
        waived = calculate_waiver(quote, new.room.center, amendment.old_total)
        _adjust(amendment, -waived, waiver, is_waiver=True)
        quote = bill.reprice(reservation)
    if is_booked:
        bill.consume_benefits(
            reservation,
            keeps_promo=keeps_promo and not has_new_code,
            is_by_staff=act.is_staff,
            now=act.now,
        )
    elif reservation.promo_code is not None:
        promo_codes.require_usable(reservation.promo_code, reservation, now=act.now)
    return replace(
        amendment, new_lines=quote.lines, new_total=reservation.total_cost, waived=waived
    )


def _adjust(amendment: Amendment, amount: Decimal, reason: str, *, is_waiver: bool = False) -> None:
    """Store an adjustment, which is applied at every repricing."""
    PriceAdjustment.objects.create(
        reservation=amendment.reservation,
        amount=amount,
        reason=reason,
        by=amendment.act.staff,
        at=amendment.act.now,
        is_waiver=is_waiver,
    )


def _return_benefits(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return the booking's promo use and included hours. True if it had used its promo code."""
    had_promo = reservation.promo_redemptions.filter(given_back_at__isnull=True).exists()
    bill.return_benefits(reservation, now=now)
    if reservation.promo_code is not None:
        # `return_benefits` has changed the counters of another instance.
        reservation.promo_code.refresh_from_db()
    return had_promo


def _save_slot(amendment: Amendment) -> None:
    reservation, old, new = amendment.reservation, amendment.old, amendment.new
    now = amendment.act.now
    if not _keeps_its_time(amendment):
        reservation.hours_override_reason = ""
    if old.room.center_id != new.room.center_id:
        # What is captured already stays in the cash of the previous center (B18).
        uncaptured = reservation.payments.filter(captured_at=None)
        uncaptured.update(cash_center=new.room.center_id)
    reservation.room = new.room
    reservation.start, reservation.end = new.start, new.end
    reservation.turnaround_minutes = new.room.turnaround_minutes
    reservation.version += 1
    if reservation.is_new:
        terms = get_present_terms(new.room)
        if reservation.payable_until <= now:
            raise SlotUnavailable("That time has passed.")
        if not reservation.is_held_at(now):
            reservation.hold_until = now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF)
            # The new price is promised until after this hold (B15.2).
            reservation.price_held_until = None
            release_holds_for(reservation, now=now)
        assert reservation.hold_until is not None  # because it is held
        reservation.hold_until = min(reservation.hold_until, reservation.payable_until)
        reservation.holds_slot = True
    else:
        terms = get_changed_terms(reservation, new.room)
        payment = reservation.payments.filter(counts=True).order_by("pk").last()
        is_live_payment = payment.is_live if payment else reservation.is_live
        reservation.is_live = new.room.is_live_inventory and is_live_payment
        reservation.advance_calendar(now)
    reservation.cancellation_terms = terms.to_json()
    holds_nothing = is_in_turnaround(amendment)
    if holds_nothing and reservation.status == Status.CONFIRMED:
        reservation.transition_to(Status.COMPLETED, amendment.act)
    reservation.save(
        update_fields=[
            *("room", "start", "end", "turnaround_minutes", "occupied_from", "occupied_until"),
            *("holds_slot", "hold_until", "price_held_until"),
            *("is_live", "hours_override_reason", "version", "cancellation_terms"),
            *("calendar_sequence", "calendar_changed_at"),
        ]
    )
    if reservation.status == Status.COMPLETED and new.end > now and not holds_nothing:
        reservation.transition_to(Status.CONFIRMED, amendment.act)


def calculate_waiver(quote: Quote, center: Center, max_total: Decimal) -> Decimal:
    """Return the reduction by the center's prices with which a bill adds up to `max_total`.

    If no amount before tax gives exactly that total, the next lower total is used, and the
    remainder is refunded.
    """
    if center.prices_include_tax:
        return quote.total - max_total
    untaxed = sum((line.total for line in quote.lines if line.type != LineItemType.TAX), money.ZERO)
    tax_rate = center.tax_rate
    step = Decimal(1).scaleb(-money.get_minor_digits())
    target = money.round_amount(max_total / (1 + tax_rate / 100)) + step
    while target + money.round_amount(target * tax_rate / 100) > max_total:
        target -= step
    return untaxed - target


def describe_room(room: MeetingRoom) -> str:
    return f"{room.name} at {room.center.name}"


def _record(amendment: Amendment, waiver: str) -> None:
    """Record it in the history, and write to the customer of a booking."""
    reservation, former, act = amendment.reservation, amendment.former, amendment.act
    old, new = amendment.old, amendment.new
    has_moved = old.room.center_id != new.room.center_id
    old_room, new_room = describe_room(old.room), describe_room(new.room)
    if has_moved and old_room == new_room:  # Two centers may have the same name.
        old_room += f" (center {old.room.center_id})"
        new_room += f" (center {new.room.center_id})"
    selected = None
    if (services := amendment.changed.services) is not None:
        selected = ", ".join(each.service.name for each in services) or "none"
    extras = ", ".join(
        f"{each['text']} {money.format_amount(each['amount'])}" for each in amendment.changed.extras
    )
    waived = f"{money.format_amount(amendment.waived)}: {waiver}" if amendment.waived else None
    charge = None
    if amendment.charge:
        charge = f"{money.format_amount(amendment.charge)} ({amendment.way})"
    columns = (
        "start",
        "end",
        "hold_until",
        *(each.name for each in COLUMN_FIELDS if each.is_in_history),
    )
    changes = {
        "room": (old_room, new_room),
        **{name: (getattr(former, name), getattr(reservation, name)) for name in columns},
        "services": (None, selected),
        "extras": (None, extras or None),
        "attendees": (None, amendment.changed.attendees is not None or None),
        "promo_code": (former.promo_code, reservation.promo_code),
        "total_cost": (amendment.old_total, amendment.new_total),
        "refund": (None, amendment.refund or None),
        "charge": (None, charge),
        "waived": (None, waived),
    }
    former_center = old.room.center_id if has_moved else None
    history.record_changes(reservation, changes, act, former_center_id=former_center)
    if not reservation.is_new:
        moves_money = amendment.refund or amendment.charge or amendment.waived
        can_be_undone = bool(
            act.is_staff
            and old != new
            and not (has_moved or moves_money or amendment.changed.labels)
            and reservation.start > act.now
        )
        emails.send_rescheduled(
            reservation,
            former=former,
            refund=amendment.refund,
            charge=amendment.charge,
            changed=amendment.changed.labels,
            can_be_undone=can_be_undone,
            now=act.now,
        )
        post(reservation.pk, EventKind.CHANGED, by=act.user, now=act.now)


# --- Covering the difference ----------------------------------------------------------------------


def refund_or_refuse(amendment: Amendment) -> Amendment:
    """Refund what a booking costs less, or refuse a higher price. A draft costs nothing yet."""
    reservation, old_total = amendment.reservation, amendment.old_total
    if reservation.is_new:
        return amendment
    if refusal := get_price_refusal(reservation, old_total=old_total):
        return replace(amendment, obstacle=Refused(refusal))
    reason = "Changed to something cheaper"
    given, obstacle = refund_reduction(
        reservation, old_total=old_total, reason=reason, now=amendment.act.now
    )
    return replace(amendment, refund=given, obstacle=obstacle)


def _take(amendment: Amendment, taken: TakenPayment) -> Amendment:
    """Record the payment of a higher price. No gateway is called, so nothing can be in doubt."""
    reservation, act = amendment.reservation, amendment.act
    if amendment.difference <= 0 or not reservation.is_confirmed_or_completed:
        return refund_or_refuse(amendment)
    payment = record_manual_payment(
        reservation_id=reservation.pk,
        reservation_uid=reservation.uid,
        center_id=amendment.new.room.center_id,
        time_zone_id=amendment.new.room.center.time_zone_id,
        gateway=taken.gateway,
        amount=amendment.difference,
        currency=reservation.currency,
        reference=taken.reference,
        by=act.staff,
        purpose=PaymentPurpose.CHANGE,
        now=act.now,
    )
    change = store_change(payment, amendment)
    change.resolve(ChangeState.APPLIED, now=act.now)
    way = MANUAL_GATEWAYS[taken.gateway].label
    return replace(amendment, charge=amendment.difference, way=way)


def get_price_refusal(reservation: Reservation, *, old_total: Decimal) -> str:
    """Return why what was paid cannot cover the new price of a booking; empty if it does."""
    difference = reservation.total_cost - old_total
    amount = money.format_amount(abs(difference))
    if difference and reservation.status == Status.PENDING:
        word, way = ("more", ", or waive the difference.")
        if difference < 0:
            word, way = ("less", ": then the difference is refunded.")
        return (
            f"It would cost {amount} {word}, and a request's money is taken as it was reserved."
            f" Approve it first{way}"
        )
    if difference > 0:
        return f"It costs {amount} more. Choose how the customer pays that, or waive it."
    return ""


def refund_reduction(
    reservation: Reservation, *, old_total: Decimal, reason: str, now: dt.datetime
) -> tuple[Decimal, Obstacle]:
    """Create the refunds of a booking whose price was reduced.

    Returns the refunded amount, and what keeps it from being committed. The caller holds the lock
    of the reservation, and has called `get_price_refusal` and made all other checks.
    """
    reduction = old_total - reservation.total_cost
    if not reduction:
        return money.ZERO, None
    payments = lock_booked_payments(reservation)
    if due := [each for each in payments if each.state != PaymentState.CAPTURED]:
        return reduction, Unsettled(due)
    # Less than the reduction if the gateway's dashboard has refunded something already.
    return refunds.create_refunds(payments, amount=reduction, reason=reason, now=now), None


# --- What waits for its payment -------------------------------------------------------------------


def store_change(
    payment: Payment | None,
    amendment: Amendment,
    *,
    link_until: dt.datetime | None = None,
) -> BookingChange:
    """Store what was requested, until its payment is resolved."""
    values, personal_values = split_values(amendment.request.values)
    act = amendment.act
    return BookingChange.objects.create(
        # As it still is, for the e-mail, the history and the event of a link.
        reservation=amendment.former,
        payment=payment,
        link_until=link_until,
        by=act.user,
        is_by_staff=act.is_staff,
        room=amendment.new.room,
        start=amendment.new.start,
        end=amendment.new.end,
        values=values,
        personal_values=personal_values,
        old_total=amendment.old_total,
        new_total=amendment.new_total,
        version=amendment.former.version,
        created_at=amendment.request.asked_at or act.now,
    )


def read_request(change: BookingChange) -> ChangeRequest:
    """Return what was requested, from its row. Once it is resolved, without personal values."""
    values = cast("BookingValues", change.values | (change.personal_values or {}))
    if "services" in values:
        # JSON has no decimal numbers.
        values["services"] = [
            each | {"duration_hours": Decimal(hours)}
            if (hours := each.get("duration_hours"))
            else each
            for each in values["services"]
        ]
    if "extras" in values:
        values["extras"] = [
            {"text": each["text"], "amount": Decimal(each["amount"])} for each in values["extras"]
        ]
    return ChangeRequest(
        change.room_id, change.start, change.end, values, asked_at=change.created_at
    )


def call_off_changes(reservation: Reservation, *, now: dt.datetime) -> None:
    """Call off changes that are not paid yet: the booking has changed or ended (B27.4).

    The caller holds the lock of the reservation: if they were resolved before, another one could
    begin, or begin to wait, in between. Those that wait for the customer are voided after the
    transaction (`charging.settle`), and so are those whose worker died. The requests that are at
    work on the others void these.
    """
    was_booked = reservation.booked_at is not None
    if not was_booked or not reservation.changes.filter(state=ChangeState.STARTED).exists():
        return
    reservation.end_waiting_change(message="The booking has changed or ended.", now=now)
    started = reservation.payments.filter(purpose=PaymentPurpose.CHANGE, state=PaymentState.STARTED)
    started.update(is_called_off=True)
