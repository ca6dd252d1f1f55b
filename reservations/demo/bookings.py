"""The demo reservations, created like those of customers and staff: by the domain's functions."""

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Literal, NotRequired, TypedDict

from django.db.models import QuerySet

from accounts.act import Act
from accounts.models import User
from centers.models import MeetingRoom, Service
from centers.requested_span import resolve_span
from payments import fees
from payments.models import Payment
from reservations import availability, records
from reservations.booking import approval, cancellation, checkout, drafts, expiry, no_show
from reservations.booking.charging import PaymentMethod
from reservations.booking.checkout import check_out
from reservations.demo import accounts
from reservations.demo.data_files import read_json
from reservations.models import Allowance, Reservation
from reservations.models.booking_fields import AttendeeInput, ServiceInput
from reservations.models.status import Status
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen


class DemoService(TypedDict):
    name: str
    duration_hours: NotRequired[Decimal]
    quantity: NotRequired[int]


class DemoBooking(TypedDict):
    """A booking, created `created_days_ago` for the first available day `days_later`."""

    customer: str
    center: str
    room: str
    created_days_ago: Decimal
    days_later: int
    start: str
    end: str
    # How staff took the payment; the card of the customer if it is missing.
    paid_to_staff: NotRequired[Literal["cash", "account"]]
    outcome: Literal["draft", "paid", "approved", "declined", "cancelled", "missed"]
    promo_code: NotRequired[str]
    partner_code: NotRequired[str]
    allowance: NotRequired[str]
    services: NotRequired[list[DemoService]]
    guests: NotRequired[list[AttendeeInput]]


# The latest day that is tried after one on which the room is closed or taken.
MAX_DAYS_TRIED = 30

# A customer has at most one in a room: that is how a second run recognizes them.
BOOKINGS: list[DemoBooking] = read_json("bookings.json")


def create_missing(*, now: dt.datetime, write_line: Callable[[str], object]) -> None:
    """Create those that do not exist yet, and then do what is due.

    Calls the gateway: no transaction may be open.
    """
    for number, booking in enumerate(BOOKINGS, start=1):
        if reservation := _create(booking, now):
            count = f"[{number}/{len(BOOKINGS)}]"
            write_line(f"{count} reservation {reservation.pk}, {booking['center']}")
    for _ in expiry.close_overdue(now=now):
        pass
    for booking in BOOKINGS:
        if booking["outcome"] == "missed":
            for missed in _find(booking).filter(status=Status.COMPLETED):
                # Another run at the same time may have been faster.
                with suppress(ReservationNotOpen):
                    no_show.mark_no_show(Act(None, now), missed.pk)
    for payment in Payment.objects.with_fees_due(now):
        fees.fetch_fees(payment, now=now)


def are_complete() -> bool:
    """Return whether all exist, by their number: rooms may have been renamed since."""
    return Reservation.objects.filter(user__email__in=accounts.EMAILS).count() >= len(BOOKINGS)


def _find(booking: DemoBooking) -> QuerySet[Reservation]:
    return Reservation.objects.filter(
        user__email=booking["customer"],
        room__name=booking["room"],
        room__center__name=booking["center"],
    )


def _create(booking: DemoBooking, now: dt.datetime) -> Reservation | None:
    user = User.objects.get(email=booking["customer"])
    created_at = now - dt.timedelta(days=float(booking["created_days_ago"]))
    reservation = _create_draft(booking, user, created_at)
    if reservation is None:
        return None
    if code := booking.get("promo_code"):
        drafts.apply_promo_code(reservation.pk, code, user=user, now=created_at)
    if booking["outcome"] == "draft":
        return reservation
    # Checkout charges only a price that the customer has seen.
    records.get_record(reservation.pk, user=user)
    if way := booking.get("paid_to_staff"):
        staff = User.objects.get(email=accounts.STAFF)
        checkout.take_manual_payment(
            Act(staff, created_at, is_staff=True), reservation, gateway=way
        )
        return reservation
    if user.saved_payment_info is None:
        payment_method = PaymentMethod(card=accounts.get_card(user, created_at))
    else:
        payment_method = PaymentMethod(use_saved_card=True)
    check_out(
        reservation.pk,
        user=user,
        payment_method=payment_method,
        partner_code=booking.get("partner_code", ""),
        now=created_at,
    )
    an_hour_later = created_at + dt.timedelta(hours=1)
    match booking["outcome"]:
        case "approved":
            approval.approve(Act(None, an_hour_later), reservation.pk)
        case "declined":
            approval.decline(Act(None, an_hour_later), reservation.pk)
        case "cancelled":
            cancellation.cancel(Act(user, an_hour_later), reservation.pk)
    return reservation


@in_transaction
def _create_draft(booking: DemoBooking, user: User, created_at: dt.datetime) -> Reservation | None:
    # Of two runs at once, only one gets past the account's lock before the reservation exists.
    User.objects.lock(user.pk)
    if _find(booking).exists():
        return None
    room = MeetingRoom.objects.with_booking_details().get(
        center__name=booking["center"], name=booking["room"]
    )
    start, end = _find_available_day(booking, room, created_at)
    reservation = drafts.create_draft(
        Act(user, created_at),
        user,
        room_id=room.pk,
        start=start,
        end=end,
        services=[_get_option(room, each) for each in booking.get("services", ())],
        attendees=booking.get("guests", []),
    )
    if description := booking.get("allowance"):
        allowance = Allowance.objects.get(user=user, description=description)
        drafts.select_allowances(reservation.pk, [allowance.pk], user=user, now=created_at)
    return reservation


def _find_available_day(
    booking: DemoBooking, room: MeetingRoom, created_at: dt.datetime
) -> tuple[dt.datetime, dt.datetime]:
    """Return the first day on which the room is available at these hours, in local time."""
    earliest = created_at.astimezone(room.center.zone).date() + dt.timedelta(booking["days_later"])
    for later in range(MAX_DAYS_TRIED):
        day = earliest + dt.timedelta(later)
        start = dt.datetime.fromisoformat(f"{day}T{booking['start']}")
        end = dt.datetime.fromisoformat(f"{day}T{booking['end']}")
        span = resolve_span(room.center, start, end)
        if availability.evaluate(room, span, now=created_at).is_available:
            return start, end
    raise AssertionError(f"{room} is never available")


def _get_option(room: MeetingRoom, service: DemoService) -> ServiceInput:
    found = Service.objects.get(center=room.center, name=service["name"])
    return {
        "service_id": found.pk,
        "duration_hours": service.get("duration_hours"),
        "quantity": service.get("quantity"),
    }
