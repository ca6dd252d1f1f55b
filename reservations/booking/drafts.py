"""Creates drafts, and changes their holds, promo codes and allowances before they are paid."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from accounts import roles
from accounts.act import Act
from accounts.limits import PROMO_CODE
from accounts.models import User, canonicalize_email
from accounts.validators import (
    CARD_NUMBER_IN_EMAIL,
    CARD_NUMBER_IN_NAME,
    email_contains_card_number,
)
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from centers.span import Span
from reservations import availability
from reservations.booking.holds import release_conflicting_holds, release_holds
from reservations.booking.locks import (
    lock_active_account,
    lock_drafts,
    lock_reservation,
    lock_room,
)
from reservations.models import Attendee, ChosenService, Reservation, history
from reservations.models.status import Status
from reservations.pricing import allowances, bill, promo_codes, services
from reservations.pricing.quote import ServiceSelection
from reservations.pricing.services import ServiceInput
from roombook.card_numbers import has_digits_of_a_card
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, NotSignedIn, PromoCodeInvalid, ReservationNotOpen
from roombook.texts import clean_line

# The permission to book a room while its center is closed.
OVERRIDE_OPENING_HOURS = "reservations.override_opening_hours"


class AttendeeInput(TypedDict, total=False):
    """An attendee as the customer enters them, with a name or an e-mail address."""

    name: str
    email_address: str
    company_name: str


# --- Creating ------------------------------------------------------------------------------------


@in_transaction
def create_draft(
    user: User,
    *,
    room_id: int,
    start: dt.datetime,
    end: dt.datetime,
    service_options: Sequence[ServiceInput] = (),
    number_of_attendees: int | None = None,
    attendees: Sequence[AttendeeInput] = (),
    created_by: User | None = None,
    hours_override_reason: str = "",
    now: dt.datetime,
) -> Reservation:
    """Create a New reservation that holds its room for 15 minutes, or 24 hours if made by staff.

    Times without an offset are local to the center. `hours_override_reason` says why a manager
    books while the center is closed; closures and other bookings still prevent it.

    Raises SlotUnavailable, InvalidRequest, NotFound, RateNotConfigured or TooManyRequests, or
    NotSignedIn if the account is disabled; then nothing is created.
    """
    if created_by is None:
        # The count is undone if nothing is created.
        lock_drafts(user.pk, is_creating=True, now=now)
    if not lock_active_account(user.pk):
        raise NotSignedIn
    room = lock_room(room_id)
    span = resolve_span(room.center, start, end)
    guests = add_creator(user, attendees)
    attendee_count = resolve_attendee_count(room, number_of_attendees, guests)
    override = _resolve_hours_override(room, span, hours_override_reason, by=created_by)
    selections = services.select_services(room.center, service_options, span)
    other_drafts = release_conflicting_holds(room, span, user=user, now=now)
    availability.evaluate(
        room, span, now=now, for_user=user, ignore_opening_hours=bool(override)
    ).raise_if_unavailable()
    if created_by is None:
        # One more must not exceed the maximum, so that a customer cannot block rooms for free.
        release_holds(other_drafts[settings.HELD_DRAFTS_MAX - 1 :], now=now)
    quote = bill.quote_draft(user, room, span, selections)
    reservation = Reservation(
        user=user,
        room=room,
        start=span.start,
        end=span.end,
        turnaround_minutes=room.turnaround_minutes,
        status=Status.NEW,
        holds_slot=True,
        hold_until=min(now + _get_hold_duration(created_by), span.start),
        number_of_attendees=attendee_count,
        currency=settings.CURRENCY,
        cancellation_notice_hours=settings.CANCELLATION_NOTICE_HOURS,
        cancellation_grace_minutes=settings.CANCELLATION_GRACE_MINUTES,
        created_at=now,
        created_by=created_by,
        hours_override_reason=override,
        total_cost=quote.total,
        billable_hours=quote.room.billable_hours,
    )
    reservation.save(force_insert=True)
    save_services(reservation, selections)
    save_attendees(reservation, guests)
    bill.save_lines(reservation, quote)
    changes = {"hours_override_reason": ("", override)}
    history.record_changes(reservation, changes, Act(created_by, now))
    return reservation


def save_services(reservation: Reservation, selections: Iterable[ServiceSelection]) -> None:
    # A list, because Django returns an empty one before it prepares anything.
    ChosenService.objects.bulk_create(
        [
            ChosenService(
                reservation=reservation,
                service=selection.service,
                duration_hours=selection.duration_hours,
                quantity=selection.quantity,
            )
            for selection in selections
        ]
    )


def save_attendees(reservation: Reservation, guests: Sequence[Attendee]) -> None:
    for guest in guests:
        guest.reservation = reservation
    Attendee.objects.bulk_create(guests)


def _resolve_hours_override(room: MeetingRoom, span: Span, reason: str, *, by: User | None) -> str:
    """Return the reason to store, empty if the center is open. Raises if `by` may not override."""
    reason = reason.strip()
    if not reason or not availability.is_outside_opening_hours(room, span):
        return ""
    if by is None or not roles.has_permission(by, OVERRIDE_OPENING_HOURS, room.center_id):
        raise InvalidRequest(
            {"hours_override_reason": "Only its manager may book outside a center's hours."}
        )
    return reason


def _get_hold_duration(created_by: User | None) -> dt.timedelta:
    if created_by is not None:
        return dt.timedelta(hours=settings.HOLD_HOURS_STAFF)
    return dt.timedelta(minutes=settings.HOLD_MINUTES_CUSTOMER)


# --- Attendees -----------------------------------------------------------------------------------


def add_creator(user: User, attendees: Sequence[AttendeeInput]) -> list[Attendee]:
    """Return the attendees with the customer among them, added first if they are not listed.

    The creator is recognized by the e-mail address; the client's IsCreator is ignored.
    """
    problems = {
        f"attendees.{index}{field}": problem
        for index, attendee in enumerate(attendees)
        for field, problem in _validate_attendee(attendee)
    }
    if problems:
        raise InvalidRequest(problems)
    guests = [
        Attendee(
            name=attendee.get("name", ""),
            email_address=attendee.get("email_address", ""),
            company_name=attendee.get("company_name", ""),
        )
        for attendee in attendees
    ]
    for guest in guests:
        if canonicalize_email(guest.email_address) == canonicalize_email(user.email):
            guest.is_creator = True
            return guests
    creator = Attendee(
        name=user.get_full_name(),
        email_address=user.email,
        company_name=user.company_name,
        is_creator=True,
    )
    return [creator, *guests]


def _validate_attendee(attendee: AttendeeInput) -> Iterator[tuple[str, str]]:
    """Yield each problem with its field."""
    names = {"name": attendee.get("name", ""), "company_name": attendee.get("company_name", "")}
    for field, name in names.items():
        if has_digits_of_a_card(name):
            yield f".{field}", CARD_NUMBER_IN_NAME
    address = attendee.get("email_address", "")
    if address:
        try:
            validate_email(address)
        except ValidationError:
            yield ".email_address", "This is not an e-mail address."
        else:
            if email_contains_card_number(address):
                yield ".email_address", CARD_NUMBER_IN_EMAIL
    elif not clean_line(attendee.get("name", "")):
        yield "", "A name or an e-mail address is needed."


def resolve_attendee_count(
    room: MeetingRoom, requested: int | None, guests: Sequence[object]
) -> int:
    """Return the requested number of attendees, or the number of those listed."""
    count = len(guests) if requested is None else requested
    if count < len(guests):
        raise InvalidRequest({"number_of_attendees": "Fewer than the attendees listed."})
    if count > room.capacity:
        raise InvalidRequest({"number_of_attendees": f"The room holds {room.capacity} people."})
    return count


# --- Discounts -----------------------------------------------------------------------------------


def apply_promo_code(
    reservation_id: int, code: str, *, user: User, now: dt.datetime
) -> Reservation:
    """Set, replace or (with an empty code) remove the promo code, and price the draft again.

    An invalid code changes nothing and counts towards the limit against guessing.
    """
    if code.strip():
        PROMO_CODE.check(user.pk, now=now)
    try:
        return _apply_promo_code(reservation_id, code.strip(), user=user, now=now)
    except PromoCodeInvalid:
        PROMO_CODE.attempt(user.pk, now=now)
        raise


@in_transaction
def _apply_promo_code(
    reservation_id: int, code: str, *, user: User, now: dt.datetime
) -> Reservation:
    reservation = lock_draft(reservation_id, user=user)
    promo_code = promo_codes.get_promo_code(code) if code else None
    if promo_code is not None:
        promo_codes.require_usable(promo_code, reservation, now=now)
    old_code, old_total = reservation.promo_code, reservation.total_cost
    reservation.promo_code = promo_code
    bill.reprice(reservation, save_also=["promo_code"])
    if promo_code is not None:
        # Parallel attempts may have filled the window: then a valid code came too late, too.
        PROMO_CODE.check(user.pk, now=now)
    changes = {
        "promo_code": (old_code, promo_code),
        "total_cost": (old_total, reservation.total_cost),
    }
    history.record_changes(reservation, changes, Act(user, now))
    return reservation


@in_transaction
def select_allowances(
    reservation_id: int, allowance_ids: Sequence[int], *, user: User, now: dt.datetime
) -> Reservation:
    """Use exactly these allowances on a draft (none for an empty list), and price it again."""
    reservation = lock_draft(reservation_id, user=user)
    available = {
        each.allowance.pk: each
        for each in allowances.get_available(user, reservation.room, reservation.span)
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
    history.record_changes(reservation, changes, Act(user, now))
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


def lock_draft(reservation_id: int, *, user: User | None = None) -> Reservation:
    """Lock a reservation that is still a draft, or raise ReservationNotOpen."""
    reservation = lock_reservation(reservation_id, owner=user)
    if not reservation.is_new:
        raise ReservationNotOpen
    return reservation
