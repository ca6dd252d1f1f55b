"""The page of a reservation: all that is known of it, on the clock of its center.

Nothing is typed here. What can be done to it are steps with pages of their own (steps/), and what
of it a member of staff sees follows from what they may see of customers and of money.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from auditlog.models import LogEntry
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from accounts import roles
from accounts.outbox import OutboxMessage
from payments.models import Payment
from reservations.admin import actions, formatting
from reservations.booking import history
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import emails
from roombook import money

if TYPE_CHECKING:
    from accounts.models import User

# A reservation that has more of these is looked up where they are.
MAX_ROWS = 100


@dataclass(frozen=True, slots=True)
class ReservationDetail:
    label: str
    text: str
    address: str = ""
    leads_to: str = ""


@dataclass(frozen=True, slots=True)
class ReservationHistoryEntry:
    """A line of the history: who did what, when."""

    at: dt.datetime
    who: str
    parts: list[tuple[str, str, str]]  # what, from what, to what


def build_context(reservation: Reservation, user: "User", *, now: dt.datetime) -> dict[str, Any]:
    """What the page tells this member of staff; `reservation` comes with customer and center."""
    center = reservation.room.center_id

    def may(permission: str) -> bool:
        return roles.has_permission(user, permission, center)

    sees_people = may("accounts.view_user")
    sees_money = may("payments.view_payment")
    payments = _payments(reservation) if sees_money else []
    return {
        "reservation": reservation,
        "status": Status(reservation.status).label,
        "what": formatting.format_place_and_time(reservation),
        "steps": actions.get_available_actions(user, reservation, now=now),
        "facts": list(_facts(reservation, now, sees_people=sees_people)),
        "terms": list(_terms(reservation)),
        "lines": list(reservation.line_items.order_by("position")),
        "total": money.format_amount(reservation.total_cost),
        "reduced_by": money.format_amount(reservation.reduced_by) if reservation.reduced_by else "",
        "services": list(
            reservation.chosen_services.select_related("service").order_by("service__position")
        ),
        "benefits": list(_benefits(reservation)),
        "sees_people": sees_people,
        "sees_attendees": may("reservations.view_attendee"),
        "attendees": list(reservation.attendees.order_by("-is_creator", "pk")[:MAX_ROWS]),
        "sees_money": sees_money,
        "payments": payments,
        "is_test_money": bool(payments) and not any(each.is_live for each in payments),
        "mails": list(OutboxMessage.objects.about(emails.get_subject_key(reservation))[:MAX_ROWS]),
        "history": list(_history(reservation, sees_people=sees_people)),
    }


# --- What was booked -----------------------------------------------------------------------------


def _facts(
    reservation: Reservation, now: dt.datetime, *, sees_people: bool
) -> Iterator[ReservationDetail]:
    user, room = reservation.user, reservation.room
    zone = room.center.zone
    when = f"{formatting.format_time_span(reservation)} {reservation.start.astimezone(zone):%Z}"
    yield ReservationDetail("When", when, _day(reservation), "This day on the timeline")
    yield ReservationDetail("Room", room.name, _page("centers_meetingroom", room.pk))
    yield ReservationDetail("Center", str(room.center), _page("centers_center", room.center_id))
    name = user.get_full_name() or (user.email if sees_people else f"Account {user.pk}")
    company = f", {user.company_name}" if user.company_name else ""
    yield ReservationDetail(
        "Customer", name + company, _page("accounts_user", user.pk) if sees_people else ""
    )
    if sees_people:
        yield ReservationDetail("E-mail", user.email)
        if user.phone_number:
            yield ReservationDetail("Phone", user.phone_number)
    yield ReservationDetail("People", str(reservation.number_of_attendees))
    if reservation.is_new:
        yield ReservationDetail("Room held", _hold(reservation, now))
    if reservation.hours_override_reason:
        yield ReservationDetail("Outside opening hours", reservation.hours_override_reason)
    if reservation.turnaround_minutes:
        yield ReservationDetail("Turnaround", f"{reservation.turnaround_minutes} minutes around it")


def _hold(reservation: Reservation, now: dt.datetime) -> str:
    if reservation.is_held_at(now) and reservation.hold_until is not None:
        return f"until {formatting.format_datetime(reservation, reservation.hold_until)}"
    return "no: the hold lapsed; it can be paid while the room is free"


def _terms(reservation: Reservation) -> Iterator[ReservationDetail]:
    """How it came about, and under which rules."""
    by = reservation.created_by
    made = formatting.format_datetime(reservation, reservation.created_at)
    yield ReservationDetail(
        "Made", f"{made}, by {by.get_full_name() or by.email if by else 'the customer'}"
    )
    if reservation.booked_at is not None:
        yield ReservationDetail(
            "Booked", formatting.format_datetime(reservation, reservation.booked_at)
        )
        yield ReservationDetail(
            "Free to cancel until",
            formatting.format_datetime(reservation, reservation.free_cancellation_until),
        )
    if reservation.cancelled_at is not None:
        yield ReservationDetail(
            "Cancelled", formatting.format_datetime(reservation, reservation.cancelled_at)
        )
    if reservation.partner is not None:
        yield ReservationDetail("Brought by", str(reservation.partner))


def _benefits(reservation: Reservation) -> Iterator[ReservationDetail]:
    """What makes it cheaper."""
    if reservation.promo_code is not None:
        used = reservation.promo_redemptions.filter(given_back_at__isnull=True).first()
        state = (
            f"used: {money.format_amount(used.amount)} off" if used else "on the bill, not used up"
        )
        yield ReservationDetail(f"Promo code {reservation.promo_code}", state)
    for use in reservation.allowance_uses.select_related("allowance").order_by("pk"):
        yield ReservationDetail(
            use.allowance.description, f"{use.hours} h: {money.format_amount(use.discount)} off"
        )
    for each in reservation.price_adjustments.select_related("by").order_by("pk"):
        by = each.by.get_full_name() or each.by.email
        yield ReservationDetail(
            f"Adjusted: {each.reason}", f"{money.format_amount(each.amount)}, by {by}"
        )


# --- Money ---------------------------------------------------------------------------------------


def _payments(reservation: Reservation) -> list[Payment]:
    rows = reservation.payments.prefetch_related("refunds", "disputes").order_by("pk")
    return list(rows[:MAX_ROWS])


# --- History -------------------------------------------------------------------------------------

LABELS = {
    "status": "Status",
    "refund_promised": "Refund promised",
    "room": "Room",
    "start": "Start",
    "end": "End",
    "hold_until": "Held until",
    "total_cost": "Total",
    "refund": "Refund",
    "waived": "Waived",
    "adjustment": "Adjustment",
    "promo_code": "Promo code",
    "allowances": "Included hours",
    "mail": "Mail",
    "hours_override_reason": "Outside opening hours",
}
SUMS = frozenset({"refund_promised", "total_cost", "refund"})
MOMENTS = frozenset({"start", "end", "hold_until"})


def _history(reservation: Reservation, *, sees_people: bool) -> Iterator[ReservationHistoryEntry]:
    """Its changes, the latest first; the first of all is that it was made."""
    for row in history.get_changes(reservation)[:MAX_ROWS]:
        parts = [
            (LABELS.get(name, name), *(_told(reservation, name, each) for each in change))
            for name, change in (row.changes or {}).items()
        ]
        yield ReservationHistoryEntry(
            row.timestamp, _who(row, reservation, sees_people=sees_people), parts
        )
    by = reservation.created_by
    who = (by.get_full_name() or by.email) if by else "the customer"
    yield ReservationHistoryEntry(reservation.created_at, who, [("Status", "", Status.NEW.label)])


def _who(row: LogEntry, reservation: Reservation, *, sees_people: bool) -> str:
    if row.actor_id is None:
        return row.actor_email or "by itself"
    if row.actor_id == reservation.user_id:
        return "the customer"
    return str(row.actor.get_full_name() or row.actor.email)


def _told(reservation: Reservation, name: str, value: str | None) -> str:
    if value is None:
        return ""
    if name in SUMS:
        return money.format_amount(Decimal(value))
    if name in MOMENTS and (moment := parse_datetime(value)):
        return formatting.format_datetime(reservation, moment)
    if name == "status" and value in Status:
        return Status(value).label
    return value


def _day(reservation: Reservation) -> str:
    """Its day on the timeline of its center."""
    center = reservation.room.center
    place = {"center": center.pk, "date": reservation.start.astimezone(center.zone).date()}
    return f"{reverse('admin:reservations_timeline')}?{urlencode(place)}"


def _page(name: str, pk: int) -> str:
    return reverse(f"admin:{name}_change", args=[pk])
