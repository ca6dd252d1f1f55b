"""Creates drafts, and changes their holds, promo codes and allowances before they are paid."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from django.conf import settings

from accounts import roles
from accounts.act import Act
from accounts.limits import PROMO_CODE
from accounts.models import User
from accounts.profile import create_customer
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from centers.span import Span
from reservations import availability
from reservations.availability import Reason
from reservations.booking import booking_values
from reservations.booking.commands import Obstacle, command
from reservations.booking.holds import release_conflicting_holds, release_holds, release_holds_for
from reservations.booking.locks import (
    lock_draft,
    lock_drafts,
    lock_drafts_of_customer,
    lock_room,
)
from reservations.models import Reservation, history
from reservations.models.booking_fields import BookingValues
from reservations.models.status import Status
from reservations.pricing import allowances, bill, promo_codes, services
from reservations.pricing.quote import Quote
from reservations.pricing.terms import get_present_terms
from roombook.db.transactions import in_transaction
from roombook.errors import (
    InvalidRequest,
    PromoCodeInvalid,
    RateNotConfigured,
    ReservationNotOpen,
)

# The permission to book a room while its center is closed.
OVERRIDE_OPENING_HOURS = "reservations.override_opening_hours"


# --- Creating ------------------------------------------------------------------------------------


@in_transaction
def create_draft(
    act: Act,
    user: User,
    *,
    room_id: int,
    start: dt.datetime,
    end: dt.datetime,
    hours_override_reason: str = "",
    **values: Unpack[BookingValues],
) -> Reservation:
    """Create a New reservation that holds its room for 15 minutes, or 24 hours if made by staff.

    Times without an offset are local to the center. `hours_override_reason` says why a manager
    books while the center is closed; closures and other bookings still prevent it.

    Raises SlotUnavailable, InvalidRequest, NotFound, RateNotConfigured or TooManyRequests, or
    NotSignedIn if the account is disabled; then nothing is created.
    """
    now = act.now
    if not act.is_staff:
        # The count is undone if nothing is created.
        lock_drafts(user.pk, is_creating=True, now=now)
    User.objects.lock_active(user.pk)
    room = lock_room(room_id)
    span = resolve_span(room.center, start, end)
    columns, attendees = booking_values.resolve_new(user, room, values)
    override = _resolve_hours_override(room, span, hours_override_reason, act)
    selections = services.select_services(room.center, values.get("services", ()), span)
    other_drafts = release_conflicting_holds(room, span, user=user, now=now)
    availability.evaluate(
        room,
        span,
        now=now,
        for_user=user,
        ignore_opening_hours=bool(override),
        by_staff=act.is_staff,
    ).raise_if_unavailable()
    if not act.is_staff:
        # One more must not exceed the maximum, so that a customer cannot block rooms for free.
        release_holds(other_drafts[settings.HELD_DRAFTS_MAX - 1 :], now=now)
    quote = bill.quote_draft(user, room, span, selections)
    hold = dt.timedelta(minutes=settings.HOLD_MINUTES_CUSTOMER)
    if act.is_staff:
        hold = dt.timedelta(hours=settings.HOLD_HOURS_STAFF)
    reservation = Reservation(
        user=user,
        room=room,
        start=span.start,
        end=span.end,
        turnaround_minutes=room.turnaround_minutes,
        status=Status.NEW,
        holds_slot=True,
        currency=settings.CURRENCY,
        cancellation_terms=get_present_terms(room).to_json(),
        created_at=now,
        created_by=act.user if act.is_staff else None,
        hours_override_reason=override,
        total_cost=quote.total,
        billable_hours=quote.room.billable_hours,
        **columns,
    )
    reservation.hold_until = min(now + hold, reservation.payable_until)
    reservation.save(force_insert=True)
    booking_values.save_services(reservation, selections)
    booking_values.save_attendees(reservation, attendees)
    bill.save_lines(reservation, quote)
    changes = {"hours_override_reason": ("", override)}
    history.record_changes(reservation, changes, act)
    return reservation


def _resolve_hours_override(room: MeetingRoom, span: Span, reason: str, act: Act) -> str:
    """Return the reason to store, empty if the center is open. Raises if nobody may override."""
    reason = reason.strip()
    if not reason or not availability.is_outside_opening_hours(room, span):
        return ""
    may_override = act.is_staff and roles.has_permission(
        act.staff, OVERRIDE_OPENING_HOURS, room.center_id
    )
    if not may_override:
        raise InvalidRequest(
            {"hours_override_reason": "Only its manager may book outside a center's hours."}
        )
    return reason


# --- Discounts -----------------------------------------------------------------------------------


def apply_promo_code(act: Act, reservation_id: int, code: str) -> Reservation:
    """Set, replace or (with an empty code) remove the promo code, and price the draft again.

    An invalid code changes nothing and counts towards the limit against guessing.
    """
    guesser = act.user and act.user.pk
    if code.strip():
        PROMO_CODE.check(guesser, now=act.now)
    try:
        return _apply_promo_code(act, reservation_id, code.strip())
    except PromoCodeInvalid:
        PROMO_CODE.attempt(guesser, now=act.now)
        raise


@in_transaction
def _apply_promo_code(act: Act, reservation_id: int, code: str) -> Reservation:
    reservation = lock_draft(reservation_id, user=act.customer)
    promo_code = promo_codes.get_promo_code(code) if code else None
    if promo_code is not None:
        promo_codes.require_usable(promo_code, reservation, now=act.now)
    old_code, old_total = reservation.promo_code, reservation.total_cost
    reservation.promo_code = promo_code
    bill.reprice(reservation, save_also=["promo_code"])
    if promo_code is not None:
        # Parallel attempts may have filled the window: then a valid code came too late, too.
        PROMO_CODE.check(act.user and act.user.pk, now=act.now)
    changes = {
        "promo_code": (old_code, promo_code),
        "total_cost": (old_total, reservation.total_cost),
    }
    history.record_changes(reservation, changes, act)
    return reservation


@in_transaction
def select_allowances(act: Act, reservation_id: int, allowance_ids: Sequence[int]) -> Reservation:
    """Use exactly these allowances on a draft (none for an empty list), and price it again."""
    reservation = lock_draft(reservation_id, user=act.customer)
    available = {
        each.allowance.pk: each
        for each in allowances.get_available(reservation.user, reservation.room, reservation.span)
    }
    problems = {
        f"allowance_ids.{index}": "This allowance is not valid for this booking."
        for index, pk in enumerate(allowance_ids)
        if pk not in available
    }
    if problems:
        raise InvalidRequest(problems)
    selected = [each for pk, each in available.items() if pk in set(allowance_ids)]
    old_total = reservation.total_cost
    reservation.allowances_by_hand = True
    bill.reprice(reservation, available=selected, save_also=["allowances_by_hand"])
    names = ", ".join(each.allowance.description for each in selected)
    changes = {
        # Reading the previous selection would take another query. The change of price is recorded.
        "allowances": (None, names or "none"),
        "total_cost": (old_total, reservation.total_cost),
    }
    history.record_changes(reservation, changes, act)
    return reservation


# --- Prices --------------------------------------------------------------------------------------


def has_outdated_price(draft: Reservation, *, now: dt.datetime) -> bool:
    """Return whether a draft's hold ended so long ago that its price is calculated again.

    The hold after a declined card does not count, so that nobody can keep a price by declines.
    """
    hold_ended_at = draft.price_held_until or draft.hold_until or draft.created_at
    return hold_ended_at < now - dt.timedelta(hours=settings.DRAFT_PRICE_HOURS)


def reprice_if_outdated(draft: Reservation, act: Act) -> bool:
    """Reprice a locked draft if its price is outdated. Return whether that has changed its total.

    Other changes of a draft reprice it in any case. Raises PromoCodeInvalid or RateNotConfigured.
    """
    if not has_outdated_price(draft, now=act.now):
        return False
    old_total = draft.total_cost
    bill.reprice(draft)
    changes = {"total_cost": (old_total, draft.total_cost)}
    history.record_changes(draft, changes, act)
    return draft.total_cost != old_total


# --- Longer holds, by staff -----------------------------------------------------------------------


@command
def extend_hold(
    act: Act, reservation_id: int, *, until: dt.datetime
) -> tuple[Reservation, Obstacle]:
    """Extend a draft's hold (by staff). An expired hold starts again if the room is available.

    Raises InvalidRequest as `_validate_hold_end` does, or SlotUnavailable.
    """
    now = act.now
    lock_drafts_of_customer(reservation_id, now=now)
    reservation = lock_draft(reservation_id)
    if reservation.payable_until <= now:
        raise ReservationNotOpen("This reservation's time has passed.")
    _validate_hold_end(reservation, until, now=now)
    held_until = reservation.hold_until if reservation.is_held_at(now) else None
    if held_until is None:
        user = reservation.user
        release_holds_for(reservation, now=now)
        availability.evaluate_reservation(
            reservation, now=now, for_user=user
        ).raise_if_unavailable()
    reprice_if_outdated(reservation, act)
    reservation.holds_slot, reservation.hold_until = True, until
    reservation.price_held_until = None
    # The customer gets another reminder before the new hold expires.
    reservation.reminded_at = None
    reservation.save(update_fields=["holds_slot", "hold_until", "price_held_until", "reminded_at"])
    history.record_changes(reservation, {"hold_until": (held_until, until)}, act)
    return reservation, None


def can_extend_hold(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether a draft can hold its room for longer, or hold it again."""
    if not reservation.is_new:
        return False
    latest = get_latest_hold_end(reservation, now=now)
    if reservation.is_held_at(now):
        return reservation.hold_until is not None and latest > reservation.hold_until
    user = reservation.user
    return (
        latest > now
        and availability.evaluate_reservation(reservation, now=now, for_user=user).is_available
    )


def _validate_hold_end(reservation: Reservation, until: dt.datetime, *, now: dt.datetime) -> None:
    """Raise InvalidRequest if a draft's hold cannot be extended until that time."""
    problem = ""
    if until > get_latest_hold_end(reservation, now=now):
        problem = (
            f"A room can be held for at most {settings.HOLD_HOURS_STAFF} hours without payment,"
            " and not beyond the time until which it can be paid."
        )
    elif until <= now:
        problem = "That time has passed."
    elif reservation.hold_until and reservation.is_held_at(now) and until <= reservation.hold_until:
        problem = "The room is held until then already."
    if problem:
        raise InvalidRequest({"until": problem})


def get_latest_hold_end(reservation: Reservation, *, now: dt.datetime) -> dt.datetime:
    """Return the latest full minute until which a draft can hold its room."""
    latest = min(now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF), reservation.payable_until)
    return latest.replace(second=0, microsecond=0)


# --- By staff, for customers ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DraftPreview:
    """The preview of a draft: why the room is not available, and the lines of its price.

    `problems` are the invalid fields. `span` is None if the times are among them. `quote` is None
    if there is no price; `price_problem` says why.
    """

    problems: Mapping[str, str]
    span: Span | None = None
    reasons: tuple[Reason, ...] = ()
    is_outside_hours: bool = False
    quote: Quote | None = None
    price_problem: str = ""

    @property
    def is_available(self) -> bool:
        return self.span is not None and not self.reasons


def preview_draft(
    user: User | None,
    room: MeetingRoom,
    *,
    start: dt.datetime,
    end: dt.datetime,
    hours_override_reason: str = "",
    now: dt.datetime,
    **values: Unpack[BookingValues],
) -> DraftPreview:
    """Preview a draft for a customer, or for no customer while none is selected.

    With a customer, the price is the price of the draft, with the included hours that apply
    automatically. Without a customer, it is the list price. With a reason, the opening hours are
    overridden.
    """
    problems: dict[str, str] = {}
    try:
        booking_values.resolve_new(user, room, values)
    except InvalidRequest as error:
        problems |= error.fields
    span, selections = None, []
    try:
        span = resolve_span(room.center, start, end)
    except InvalidRequest as error:
        problems |= error.fields
    try:
        selections = services.select_services(room.center, values.get("services", ()), span)
    except InvalidRequest as error:
        problems |= error.fields
    if span is None:
        return DraftPreview(problems)
    result = availability.evaluate(
        room,
        span,
        now=now,
        for_user=user,
        ignore_opening_hours=bool(hours_override_reason),
        by_staff=True,
    )
    quote, price_problem = None, ""
    try:
        quote = bill.quote_draft(user, room, span, selections)
    except RateNotConfigured as error:
        price_problem = error.message
    return DraftPreview(
        problems=problems,
        span=span,
        reasons=result.reasons,
        is_outside_hours=availability.is_outside_opening_hours(room, span),
        quote=quote,
        price_problem=price_problem,
    )


@in_transaction
def create_draft_for_new_customer(
    act: Act, customer: Mapping[str, str], **draft: Any
) -> Reservation:
    """Create an account for a customer and their first draft, in one transaction.

    `customer` contains the arguments of `create_customer`, whose problems are reported as
    `customer.<field>`; `draft` contains the arguments of `create_draft`.
    """
    try:
        user = create_customer(**customer)
    except InvalidRequest as error:
        problems = {f"customer.{name}": problem for name, problem in error.fields.items()}
        raise InvalidRequest(problems) from error
    return create_draft(act, user, **draft)
