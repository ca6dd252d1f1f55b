"""What a change of a reservation asks for, how that is stored, and what it results in."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from accounts.models import OutboxMessage, User
from centers.models import MeetingRoom
from centers.span import Span
from payments.models import Payment
from reservations.booking.drafts import AttendeeInput
from reservations.models import BookingChange, ChangeState, LineItem, Reservation
from reservations.pricing.quote import QuoteLine, ServiceSelection
from reservations.pricing.services import ServiceInput
from roombook import money


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


def build_slot_key(room_id: int, span: Span) -> str:
    """Return what identifies a room and a time, so that a stale page is noticed."""
    return f"{room_id}/{span.start.timestamp():.0f}/{span.end.timestamp():.0f}"


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What a reservation should be. Times without an offset are local to the center of the room.

    Services, number and attendees are None if they stay as they are. `expected_slot` is the key of
    the room and time that the user saw, and `expected_details` that of the services and attendees.
    They are empty if these need not be the same.
    """

    room_id: int
    start: dt.datetime
    end: dt.datetime
    services: Sequence[ServiceInput] | None = None
    number_of_attendees: int | None = None
    attendees: Sequence[AttendeeInput] | None = None
    expected_slot: str = field(default="", compare=False)
    expected_details: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The result of a change or of its preview.

    `reservation` has the new values, and `former` those before the change.

    `charge` is what was charged for a higher price. `problems` are messages for staff that say why
    it is not possible. `can_be_waived`: the only problem is the price, and the difference can
    be paid, or waived by a user with the permission.
    """

    reservation: Reservation
    former: Reservation
    old: RoomSlot
    new: RoomSlot
    old_lines: tuple[LineItem, ...]
    old_total: Decimal
    new_total: Decimal
    new_lines: tuple[QuoteLine, ...] = ()
    # The services that are selected; None if they stay as they are.
    selections: tuple[ServiceSelection, ...] | None = None
    waived: Decimal = money.ZERO
    refund: Decimal = money.ZERO
    charge: Decimal = money.ZERO
    problems: tuple[str, ...] = ()
    can_be_waived: bool = False

    @property
    def difference(self) -> Decimal:
        return self.new_total - self.old_total


# --- What is stored of a change that costs more (B27) ---------------------------------------------


def store_change(
    payment: Payment | None,
    result: ChangeResult,
    request: ChangeRequest,
    *,
    by: User | None,
    is_by_staff: bool,
    link_until: dt.datetime | None = None,
    now: dt.datetime,
) -> BookingChange:
    """Store what was requested, until its payment is resolved."""
    return BookingChange.objects.create(
        reservation=result.reservation,
        payment=payment,
        link_until=link_until,
        by=by,
        is_by_staff=is_by_staff,
        room=result.new.room,
        start=result.new.start,
        end=result.new.end,
        number_of_attendees=request.number_of_attendees,
        services=None if request.services is None else list(request.services),
        attendees=None if request.attendees is None else list(request.attendees),
        old_total=result.old_total,
        new_total=result.new_total,
        calendar_sequence=result.former.calendar_sequence,
        created_at=now,
    )


def read_request(change: BookingChange) -> ChangeRequest:
    """Return what was requested, from its row."""
    services = change.services
    if services is not None:
        services = [{**each, **_read_hours(each)} for each in services]
    return ChangeRequest(
        change.room_id,
        change.start,
        change.end,
        services,
        change.number_of_attendees,
        change.attendees,
    )


def _read_hours(service: dict[str, str]) -> dict[str, Decimal]:
    hours = service.get("duration_hours")
    return {} if hours is None else {"duration_hours": Decimal(hours)}


def resolve_change(
    change: BookingChange, state: ChangeState, *, message: str = "", now: dt.datetime
) -> None:
    """Store that the change was applied or abandoned, and forget the attendees."""
    change.state = state
    change.message = message[:255]
    change.resolved_at = now
    change.attendees = None
    change.save(update_fields=["state", "message", "resolved_at", "attendees"])


def end_waiting_change(
    reservation: Reservation, state: ChangeState, *, message: str = "", now: dt.datetime
) -> None:
    """End the change that waits for a payment by a link, if there is one, and what it holds."""
    change = reservation.changes.filter(payment=None, state=ChangeState.STARTED).first()
    if change is not None:
        resolve_change(change, state, message=message, now=now)
        release_slot(reservation)
        # An e-mail that was not sent yet is not sent.
        emails = OutboxMessage.objects.about(get_link_subject(reservation))
        emails.waiting().update(expires_at=now)


def release_slot(reservation: Reservation) -> None:
    """Release what is held for the change that waits for its payment."""
    Reservation.slots.filter(holds_for=reservation.pk).delete()


def get_link_subject(reservation: Reservation) -> str:
    return f"payment link {reservation.pk}"
