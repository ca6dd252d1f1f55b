"""What can be done to a reservation before it is paid, by customers and by staff."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from accounts import roles
from accounts.limits import PROMO_CODE
from accounts.names import contains_card_number
from centers.models import MeetingRoom
from centers.span import Span
from reservations import availability
from reservations.booking import history
from reservations.booking.locks import lock_reservation, lock_room
from reservations.booking.span import resolve_span
from reservations.models import (
    Attendee,
    ChosenService,
    Reservation,
)
from reservations.models.querysets import RELEASED_HOLD, get_conflict_bounds
from reservations.models.status import Status
from reservations.pricing import bill, promo_codes, services
from reservations.pricing.allowances import get_available
from roombook.db.compiled_queries import datetime_param, int_param
from roombook.db.prepared_writes import Update, prepared_update
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, PromoCodeInvalid, ReservationNotOpen

if TYPE_CHECKING:
    from accounts.models import User

# The permission to book a room at a time at which its center is closed.
OVERRIDE_OPENING_HOURS = "reservations.override_opening_hours"


@in_transaction
def create_draft(
    user: "User",
    *,
    room_id: int,
    start: dt.datetime,
    end: dt.datetime,
    service_options: Sequence[Mapping[str, Any]] = (),
    number_of_attendees: int | None = None,
    attendees: Sequence[Mapping[str, Any]] = (),
    created_by: "User | None" = None,
    hours_override_reason: str = "",
    now: dt.datetime,
) -> Reservation:
    """Make a New reservation that holds its room for a while: 15 minutes, or 24 hours by staff.

    Times without an offset are the center's local time. `hours_override_reason` is why a manager
    books at a time at which the center is closed; what is no matter of opening hours (a closure,
    another booking) is refused all the same. Raises SlotUnavailable, InvalidRequest, NotFound or
    RateNotConfigured, and then nothing is made.
    """
    room = lock_room(room_id)
    span = resolve_span(room.center, start, end)
    guests = add_creator(user, attendees)
    head_count = resolve_attendee_count(room, number_of_attendees, guests)
    override = _hours_override(room, span, hours_override_reason, by=created_by)
    wanted = services.select_services(room.center, service_options)
    release_conflicting_holds(room, span, user=user, now=now)
    availability.evaluate(
        room, span, now=now, for_user=user, outside_hours=bool(override)
    ).require()
    if created_by is None:
        _let_oldest_go(user, now=now)
    quote = bill.quote_draft(user, room, span, wanted)
    reservation = Reservation(
        user=user,
        room=room,
        start=span.start,
        end=span.end,
        turnaround_minutes=room.turnaround_minutes,
        status=Status.NEW,
        holds_slot=True,
        hold_until=now + _draft_hold(created_by),
        number_of_attendees=head_count,
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
    ChosenService.objects.bulk_create(
        ChosenService(
            reservation=reservation,
            service=extra.service,
            duration_hours=extra.duration_hours,
            quantity=extra.quantity,
        )
        for extra in wanted
    )
    Attendee.objects.bulk_create(Attendee(reservation=reservation, **guest) for guest in guests)
    bill.save_lines(reservation, quote)
    changes = {"hours_override_reason": ("", override)}
    history.record_changes(reservation, changes, by=created_by, now=now)
    return reservation


def _hours_override(room: MeetingRoom, span: Span, reason: str, *, by: "User | None") -> str:
    """The reason to keep: none where the center is open anyway. Only who may can give one."""
    reason = reason.strip()
    if not reason or not availability.is_outside_hours(room, span):
        return ""
    if by is None or not roles.has_permission(by, OVERRIDE_OPENING_HOURS, room.center_id):
        raise InvalidRequest(
            {"hours_override_reason": "Only its manager may book outside a center's hours."}
        )
    return reason


def release_conflicting_holds(
    room: MeetingRoom,
    span: Span,
    *,
    user: "User",
    now: dt.datetime,
    but: Reservation | None = None,
) -> None:
    """Release what must not stand in this customer's way: lapsed holds, and their own drafts.

    The caller holds the room's lock. Released drafts stay New.
    """
    released_for(
        room=room.pk,
        user=user.pk,
        **get_conflict_bounds(span, room.turnaround_minutes),
        now=now,
        # No row has the number 0.
        but=but.pk if but else 0,
    )


@prepared_update
def released_for() -> Update:
    lapsed = Reservation.objects.with_expired_hold(datetime_param("now"))
    own = (
        Reservation.objects.filter(user=int_param("user"))
        .overlapping(
            datetime_param("start"),
            datetime_param("end"),
            datetime_param("wide_start"),
            datetime_param("wide_end"),
        )
        .exclude(pk=int_param("but"))
    )
    return (lapsed | own).filter(room=int_param("room")).drafts_with_hold(), RELEASED_HOLD


def apply_promo_code(
    reservation_id: int, code: str, *, user: "User", now: dt.datetime
) -> Reservation:
    """Set, replace or (with an empty code) take off the promo code, and price the draft anew.

    A refused code leaves the reservation as it was, and counts against guessing.
    """
    if code.strip():
        PROMO_CODE.check(user.pk, now=now)
    try:
        return _apply_promo_code(reservation_id, code.strip(), user=user, now=now)
    except PromoCodeInvalid:
        PROMO_CODE.count(user.pk, now=now)
        raise


@in_transaction
def _apply_promo_code(
    reservation_id: int, code: str, *, user: "User", now: dt.datetime
) -> Reservation:
    reservation = lock_draft(reservation_id, user=user)
    promo = promo_codes.get_promo_code(code) if code else None
    if promo is not None:
        promo_codes.require_usable(promo, reservation, now=now)
    before = reservation.promo_code, reservation.total_cost
    reservation.promo_code = promo
    reservation.save(update_fields=["promo_code"])
    bill.reprice(reservation)
    changes = {
        "promo_code": (before[0], promo),
        "total_cost": (before[1], reservation.total_cost),
    }
    history.record_changes(reservation, changes, by=user, now=now)
    return reservation


@in_transaction
def select_allowances(
    reservation_id: int, allowance_ids: Sequence[int], *, user: "User", now: dt.datetime
) -> Reservation:
    """Use exactly these allowances on a draft (none for an empty list), and price it anew."""
    reservation = lock_draft(reservation_id, user=user)
    valid = {
        offer.allowance.pk: offer
        for offer in get_available(user, reservation.room, reservation.span)
    }
    problems = {
        f"allowance_ids.{index}": "This allowance is not valid for this booking."
        for index, pk in enumerate(allowance_ids)
        if pk not in valid
    }
    if problems:
        raise InvalidRequest(problems)
    chosen = [offer for pk, offer in valid.items() if pk in set(allowance_ids)]
    total = reservation.total_cost
    reservation.allowances_by_hand = True
    reservation.save(update_fields=["allowances_by_hand"])
    bill.reprice(reservation, offers=chosen)
    changes = {
        # Which they were before is not worth a question; what they made of the price is known.
        "allowances": (None, ", ".join(offer.allowance.description for offer in chosen) or "none"),
        "total_cost": (total, reservation.total_cost),
    }
    history.record_changes(reservation, changes, by=user, now=now)
    return reservation


@in_transaction
def extend_hold(
    reservation_id: int, *, until: dt.datetime, by: "User", now: dt.datetime
) -> Reservation:
    """Staff keep a draft's room for longer; where its hold had lapsed, if the room is still free.

    Raises InvalidRequest where `until` is no later, or later than `get_latest_hold_end` allows.
    """
    reservation = lock_draft(reservation_id)
    if reservation.start <= now:
        raise ReservationNotOpen("This reservation's time has passed.")
    latest = get_latest_hold_end(reservation, now=now)
    if until > latest:
        raise InvalidRequest({"until": "That is longer than a room is held without being paid."})
    held = reservation.hold_until if reservation.is_held_at(now) else None
    if until <= (held or now):
        raise InvalidRequest(
            {"until": "It is held until then already." if held else "In the past."}
        )
    if held is None:
        user = reservation.user
        release_conflicting_holds(
            reservation.room, reservation.span, user=user, now=now, but=reservation
        )
        availability.evaluate_reservation(reservation, now=now, for_user=user).require()
    reservation.holds_slot, reservation.hold_until = True, until
    # Its customer is told again before it lapses.
    reservation.reminded_at = None
    reservation.save(update_fields=["holds_slot", "hold_until", "reminded_at"])
    history.record_changes(reservation, {"hold_until": (held, until)}, by=by, now=now)
    return reservation


def get_latest_hold_end(reservation: Reservation, *, now: dt.datetime) -> dt.datetime:
    """Until when a draft's room may be kept at most; after its start that means nothing."""
    return min(now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF), reservation.start)


def lock_draft(reservation_id: int, *, user: "User | None" = None) -> Reservation:
    """The reservation, locked, if it is still a draft."""
    reservation = lock_reservation(reservation_id, owner=user)
    if not reservation.is_new:
        raise ReservationNotOpen
    return reservation


def _let_oldest_go(user: "User", *, now: dt.datetime) -> None:
    """Make room for one more draft among those that hold a room for this customer.

    So that nobody keeps a center's rooms from everybody else without paying. What is let go stays
    New, and can be checked out while its room is free.
    """
    held = Reservation.objects.for_user(user).active_holds(now)
    drafts = held.filter(status=Status.NEW, created_by__isnull=True).order_by("-created_at", "-pk")
    too_many = drafts.values_list("pk", flat=True)[settings.HELD_DRAFTS_MAX - 1 :]
    if too_many:
        Reservation.objects.filter(pk__in=list(too_many)).release_holds()


def _draft_hold(created_by: "User | None") -> dt.timedelta:
    if created_by is not None:
        return dt.timedelta(hours=settings.HOLD_HOURS_STAFF)
    return dt.timedelta(minutes=settings.HOLD_MINUTES_CUSTOMER)


def add_creator(user: "User", attendees: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The attendees with the customer among them, added first where not listed.

    Who the creator is, is ours to say: by the e-mail address, never by the client's IsCreator.
    """
    problems = {
        f"attendees.{index}{field}": why
        for index, each in enumerate(attendees)
        for field, why in _wrong_with(each)
    }
    if problems:
        raise InvalidRequest(problems)
    guests = [
        {
            "name": each.get("name", ""),
            "email_address": each.get("email_address", ""),
            "company_name": each.get("company_name", ""),
            "is_creator": False,
        }
        for each in attendees
    ]
    for guest in guests:
        if guest["email_address"].lower() == user.email.lower():
            guest["is_creator"] = True
            return guests
    creator = {
        "name": user.get_full_name(),
        "email_address": user.email,
        "company_name": user.company_name,
        "is_creator": True,
    }
    return [creator, *guests]


def _wrong_with(attendee: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in ("name", "company_name"):
        if contains_card_number(attendee.get(field, "")):
            yield f".{field}", "This looks like a card number, not a name."
    address = attendee.get("email_address", "")
    if address:
        try:
            validate_email(address)
        except ValidationError:
            yield ".email_address", "This is not an e-mail address."
    elif not attendee.get("name"):
        yield "", "A name or an e-mail address is needed."


def resolve_attendee_count(room: MeetingRoom, asked: int | None, guests: Sequence[object]) -> int:
    """How many come: the number told, else everybody who is listed."""
    if asked is None:
        asked = len(guests)
    if asked < len(guests):
        raise InvalidRequest({"number_of_attendees": "Fewer than the attendees listed."})
    if asked > room.capacity:
        raise InvalidRequest({"number_of_attendees": f"The room holds {room.capacity} people."})
    return asked
