"""The demo reservations, made as customers and staff make them: through the domain's functions."""

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from accounts.actions import lock_user
from accounts.models import User
from centers.models import MeetingRoom, Service
from reservations import availability
from reservations.booking import approval, cancellation, drafts
from reservations.booking.checkout import PaymentMethod, check_out
from reservations.booking.span import resolve_span
from reservations.demo import people
from reservations.demo.places import Tell
from reservations.models import Allowance, Reservation
from reservations.models.status import Status
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen

# A day on which the room is closed or taken is passed over, so many at most.
DAYS_TO_TRY = 30

Outcome = Literal["draft", "paid", "approved", "declined", "cancelled", "missed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoBooking:
    """One reservation: made so many days ago, for the first good day so many days after that.

    A customer has at most one of these in a room: that is how a second run knows them again.
    """

    customer: str = people.DEMO
    center: str
    room: str
    made_days_ago: float
    days_later: int
    start: str
    end: str
    outcome: Outcome
    # (service, pieces, hours)
    extras: tuple[tuple[str, int | None, str | None], ...] = ()
    guests: tuple[tuple[str, str], ...] = ()
    promo_code: str = ""
    partner_code: str = ""
    with_allowance: str = ""


BOOKINGS = (
    DemoBooking(
        center="Union Station",
        room="Boardroom",
        made_days_ago=20,
        days_later=4,
        start="09:00",
        end="14:00",
        outcome="paid",  # over by now: Completed
        extras=(("Coffee and tea", 8, None), ("Projector and screen", None, "3")),
        guests=(("Ida Lund", "ida.lund@example.com"), ("Omar Said", "omar.said@example.com")),
        promo_code="WELCOME10",
        partner_code="ACME",
    ),
    DemoBooking(
        center="Back Bay",
        room="Office 904",
        made_days_ago=16,
        days_later=3,
        start="13:00",
        end="17:00",
        outcome="paid",  # Completed, and nothing was to be paid
        with_allowance="Welcome hours",
    ),
    DemoBooking(
        center="The Loop",
        room="Lakeview",
        made_days_ago=14,
        days_later=3,
        start="10:00",
        end="12:00",
        outcome="missed",
    ),
    DemoBooking(
        center="Congress Avenue",
        room="Zilker",
        made_days_ago=12,
        days_later=2,
        start="10:00",
        end="15:30",
        outcome="draft",  # its day has passed: Expired
    ),
    DemoBooking(
        center="Market Street",
        room="Presidio",
        made_days_ago=3,
        days_later=21,
        start="09:00",
        end="13:00",
        outcome="declined",
    ),
    DemoBooking(
        center="Finsbury Square",
        room="Hawksmoor",
        made_days_ago=2,
        days_later=30,
        start="14:00",
        end="18:00",
        outcome="cancelled",
        extras=(("Wireless microphone", 2, "2"),),
    ),
    DemoBooking(
        customer=people.GUEST,
        center="Bryant Park",
        room="Bowery",
        made_days_ago=2,
        days_later=9,
        start="18:00",
        end="21:00",
        outcome="paid",
    ),
    DemoBooking(
        customer=people.GUEST,
        center="Union Station",
        room="Juniper",
        made_days_ago=1,
        days_later=6,
        start="08:00",
        end="10:00",
        outcome="paid",
        extras=(("Flip chart", None, None),),
    ),
    DemoBooking(
        center="Queen Street West",
        room="Maple",
        made_days_ago=1,
        days_later=13,
        start="09:00",
        end="17:00",
        outcome="approved",
        extras=(("Host at the door", None, "1"),),
    ),
    DemoBooking(
        center="Back Bay",
        room="Charles",
        made_days_ago=1,
        days_later=8,
        start="09:30",
        end="15:00",
        outcome="paid",
        extras=(("Coffee and tea", 10, None), ("Lunch buffet", 4, None)),
    ),
    DemoBooking(
        center="Pioneer Square",
        room="Rainier",
        made_days_ago=0.1,
        days_later=10,
        start="13:00",
        end="16:30",
        outcome="paid",  # not in live inventory: Pending
    ),
    DemoBooking(
        center="Union Station",
        room="Juniper",
        made_days_ago=0,
        days_later=6,
        start="11:00",
        end="17:00",
        outcome="draft",
        extras=(("Coffee and tea", 6, None), ("Parking space", 1, None)),
        guests=(("Ida Lund", "ida.lund@example.com"),),
    ),
)


def make(*, now: dt.datetime, tell: Tell) -> int:
    """Make those that are not there yet, and do what time asks for; returns how many were made.

    Asks the gateway: no transaction may be open.
    """
    made = 0
    for number, booking in enumerate(BOOKINGS, start=1):
        reservation = _make(booking, now)
        if reservation is not None:
            made += 1
            tell(f"[{number}/{len(BOOKINGS)}] reservation {reservation.pk}, {booking.center}")
    if made:
        for _ in approval.close_overdue(now=now):
            pass
        for missed in _missed():
            # Another run at the same time may have been quicker.
            with suppress(ReservationNotOpen):
                approval.mark_no_show(missed.pk, now=now)
    return made


def are_made() -> bool:
    """Counted, not looked up: rooms and centers may have got other names since."""
    made = Reservation.objects.filter(user__email__in=people.EMAILS).count()
    return made >= len(BOOKINGS)


def _made(booking: DemoBooking) -> bool:
    return Reservation.objects.filter(
        user__email=booking.customer,
        room__name=booking.room,
        room__center__name=booking.center,
    ).exists()


def _missed() -> list[Reservation]:
    rows: list[Reservation] = []
    for booking in BOOKINGS:
        if booking.outcome == "missed":
            rows += Reservation.objects.filter(
                user__email=booking.customer,
                room__name=booking.room,
                room__center__name=booking.center,
                status=Status.COMPLETED,
            )
    return rows


def _make(booking: DemoBooking, now: dt.datetime) -> Reservation | None:
    user = User.objects.get(email=booking.customer)
    made_at = now - dt.timedelta(days=booking.made_days_ago)
    reservation = _draft(booking, user, made_at)
    if reservation is None:
        return None
    if booking.promo_code:
        drafts.apply_promo_code(reservation.pk, booking.promo_code, user=user, now=made_at)
    if booking.outcome == "draft":
        return reservation
    check_out(
        reservation.pk,
        user=user,
        payment_method=_means(user, made_at),
        partner_code=booking.partner_code,
        now=made_at,
    )
    an_hour_later = made_at + dt.timedelta(hours=1)
    match booking.outcome:
        case "approved":
            approval.approve(reservation.pk, now=an_hour_later)
        case "declined":
            approval.decline(reservation.pk, now=an_hour_later)
        case "cancelled":
            cancellation.cancel(reservation.pk, user=user, now=an_hour_later)
    return reservation


@in_transaction
def _draft(booking: DemoBooking, user: User, made_at: dt.datetime) -> Reservation | None:
    # The account's lock: of two runs at once, only one makes it.
    lock_user(user)
    if _made(booking):
        return None
    room = MeetingRoom.objects.with_booking_details().get(
        center__name=booking.center, name=booking.room
    )
    start, end = _first_good_day(booking, room, made_at)
    reservation = drafts.create_draft(
        user,
        room_id=room.pk,
        start=start,
        end=end,
        service_options=[_option(room, *extra) for extra in booking.extras],
        attendees=[{"name": name, "email_address": email} for name, email in booking.guests],
        now=made_at,
    )
    if booking.with_allowance:
        allowance = Allowance.objects.get(user=user, description=booking.with_allowance)
        drafts.select_allowances(reservation.pk, [allowance.pk], user=user, now=made_at)
    return reservation


def _first_good_day(
    booking: DemoBooking, room: MeetingRoom, made_at: dt.datetime
) -> tuple[dt.datetime, dt.datetime]:
    """The first day on which the room can be had at these hours, on the center's clock."""
    earliest = made_at.astimezone(room.center.zone).date() + dt.timedelta(booking.days_later)
    for later in range(DAYS_TO_TRY):
        day = earliest + dt.timedelta(later)
        start, end = (
            dt.datetime.combine(day, dt.time.fromisoformat(text))
            for text in (booking.start, booking.end)
        )
        if availability.evaluate(
            room, resolve_span(room.center, start, end), now=made_at
        ).is_available:
            return start, end
    raise AssertionError(f"{room} is never free")


def _option(
    room: MeetingRoom, name: str, quantity: int | None, hours: str | None
) -> dict[str, Any]:
    service = Service.objects.get(center=room.center, name=name)
    option: dict[str, Any] = {"service_id": service.pk}
    if quantity is not None:
        option["quantity"] = quantity
    if hours is not None:
        option["duration_hours"] = Decimal(hours)
    return option


def _means(user: User, now: dt.datetime) -> PaymentMethod:
    if user.saved_payment_info is not None:
        return PaymentMethod(use_saved=True)
    return PaymentMethod(payment_info=people.card_of(user, now))
