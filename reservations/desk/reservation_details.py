"""What the page of a reservation shows, in the local time of its center.

The page has no form: each action has a page of its own (actions/). Personal data and payments are
shown only to users whose roles permit it.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from accounts import customer_access, roles
from accounts.models import OutboxMessage
from centers.models import Service
from payments.models import LedgerLine
from payments.statements import Summary, describe_accounts, summarize
from reservations.booking import amendments, payment_links
from reservations.desk.actions import get_available_actions
from reservations.desk.notes import build_note_list
from reservations.display import (
    format_datetime,
    format_place_and_time,
    format_service,
    format_staff,
    format_time_span,
    format_time_zone,
    render_status_badge,
)
from reservations.models import (
    BookingChange,
    ChangeState,
    RefundOverride,
    Reservation,
    history,
)
from reservations.models.booking_fields import (
    BOOKING_FIELDS,
    BookingField,
    FieldKind,
    describe_columns,
)
from reservations.models.status import Status, can_transition
from reservations.notifications import emails
from reservations.notifications.cancellation_terms import describe_cancellation
from reservations.pricing.terms import get_terms
from roombook import dates, money
from roombook.backoffice.audit_display import render_changes
from roombook.backoffice.models import AuditEntry

if TYPE_CHECKING:
    from accounts.models import User

# Longer lists are cut: their own pages show all rows.
MAX_ROWS = 100


@dataclass(frozen=True, slots=True)
class ReservationDetail:
    """A labeled value, optionally with a link and its title."""

    label: str
    text: str
    url: str = ""
    link_title: str = ""


class LedgerEntry(NamedTuple):
    """A line of the ledger in words, and the bill, what was paid and what is owed after it."""

    line: LedgerLine
    accounts: str
    bill: str
    paid: str
    owed: str


def build_summary_context(
    reservation: Reservation, user: "User", *, now: dt.datetime
) -> dict[str, object]:
    """The template context of what is most important; ``reservation`` has its relations loaded."""
    can_see_customer = roles.has_permission(user, roles.VIEW_USER, reservation.room.center_id)
    services = reservation.chosen_services.select_related("service").order_by("service__position")
    actions = get_available_actions(user, reservation, now=now)
    return {
        "reservation": reservation,
        "status": render_status_badge(reservation, now=now),
        "actions": actions,
        "immediate_actions": [
            action for action in actions if action.is_immediate(reservation, now=now)
        ],
        "receipts_url": _get_receipts_url(reservation, user),
        "booking": list(
            _describe_booking(reservation, user, now, can_see_customer=can_see_customer)
        ),
        "total": money.format_amount(reservation.total_cost),
        "services": [format_service(each) for each in services],
        "can_see_customer": can_see_customer,
        "notes": build_note_list(reservation, user, now=now),
        "pending_change": list(_describe_pending_change(reservation, user, now=now)),
    }


def build_context(reservation: Reservation, user: "User", *, now: dt.datetime) -> dict[str, object]:
    """The template context; ``reservation`` has its relations loaded."""
    center = reservation.room.center
    can_see_payments = roles.has_permission(user, roles.VIEW_PAYMENT, center.pk)
    payments, ledger = [], []
    if can_see_payments:
        lines = reservation.ledger_lines.select_related("center").order_by("at", "pk")
        ledger = list(summarize(lines[:MAX_ROWS]))
        rows = reservation.payments.prefetch_related("refunds", "disputes").order_by("pk")
        payments = list(rows[:MAX_ROWS])
    subjects = [emails.get_subject_key(reservation.pk), reservation.link_subject]
    messages = OutboxMessage.objects.filter(about__in=subjects)
    return {
        **build_summary_context(reservation, user, now=now),
        "zone": center.zone,
        "zone_name": format_time_zone(center, reservation.start),
        "place_and_time": format_place_and_time(reservation),
        "terms": list(_describe_terms(reservation, now=now)),
        "lines": list(reservation.line_items.order_by("position")),
        "discounts": list(_describe_discounts(reservation)),
        "can_see_attendees": roles.has_permission(user, roles.VIEW_ATTENDEE, center.pk),
        "attendees": list(reservation.attendees.order_by("-is_creator", "pk")[:MAX_ROWS]),
        "can_see_payments": can_see_payments,
        "payments": payments,
        "ledger": [_describe_line(reservation, *each) for each in ledger],
        "is_test_payment": bool(payments) and not any(each.is_live for each in payments),
        "emails": list(messages.order_by("pk").defer("attachment")[:MAX_ROWS]),
        "payment_link": payment_links.find_path(reservation, now=now)
        if roles.has_permission(user, roles.CHANGE_RESERVATION, center.pk)
        else "",
        "history": list(_describe_history(reservation)),
    }


def _describe_line(reservation: Reservation, line: LedgerLine, after: Summary) -> LedgerEntry:
    def render(amount: Decimal) -> str:
        return money.format_amount(amount, line.currency)

    accounts = describe_accounts(line)
    if line.center_id != reservation.room.center_id:
        accounts += f", at {line.center}"
    return LedgerEntry(line, accounts, *map(render, (after.bill, after.paid, after.owed)))


def _describe_booking(
    reservation: Reservation, staff: "User", now: dt.datetime, *, can_see_customer: bool
) -> Iterator[ReservationDetail]:
    user, room = reservation.user, reservation.room
    start = reservation.start.astimezone(room.center.zone)
    yield ReservationDetail(
        "When",
        f"{format_time_span(reservation)} {start:%Z}",
        f"{reverse('admin:reservations_timeline')}?"
        + urlencode({"center": room.center_id, "date": start.date()}),
        "Timeline of this day",
    )
    yield ReservationDetail("Room", room.name, _get_url("centers_meetingroom", room.pk))
    yield ReservationDetail("Center", str(room.center), _get_url("centers_center", room.center_id))
    name = user.get_full_name() or (user.email if can_see_customer else f"Account {user.pk}")
    company = f", {user.company_name}" if user.company_name else ""
    # Anybody can make a draft for an account whose address they know.
    can_open_account = can_see_customer and customer_access.can_view_customer(staff, user)
    url = _get_url("accounts_user", user.pk) if can_open_account else ""
    yield ReservationDetail("Customer", name + company, url)
    if can_see_customer:
        yield ReservationDetail("E-mail", user.known_email or "None")
    if can_open_account and user.phone_number:
        yield ReservationDetail("Phone", user.phone_number)
    yield from (ReservationDetail(*each) for each in describe_columns(reservation))
    if reservation.is_new:
        hold = "No: the hold expired. The customer can pay as long as the room is available."
        if reservation.is_held_at(now) and reservation.hold_until is not None:
            hold = f"Until {format_datetime(reservation, reservation.hold_until)}"
        yield ReservationDetail("Room held", hold)
        if payment_links.can_cancel_links(reservation, now=now) and reservation.payment_link_until:
            until = format_datetime(reservation, reservation.payment_link_until)
            yield ReservationDetail("Payment link", f"Sent, can be paid until {until}")
    if reservation.turnaround_minutes:
        minutes = f"{reservation.turnaround_minutes} minutes before and after"
        yield ReservationDetail("Turnaround", minutes)


def _describe_pending_change(
    reservation: Reservation, user: "User", *, now: dt.datetime
) -> Iterator[ReservationDetail]:
    """The change whose payment is not resolved yet (B27.5): what was requested, and by when."""
    if not reservation.is_confirmed_or_completed:
        return
    rows = reservation.changes.filter(state=ChangeState.STARTED)
    # While somebody pays for it by the link, the payment says more than the link.
    rows = rows.order_by(F("payment").asc(nulls_last=True))
    change = rows.select_related("payment", "room__center", "by").first()
    if change is None:
        return
    room, payment = change.room, change.payment
    if (room.pk, change.start, change.end) != (
        *(reservation.room_id, reservation.start, reservation.end),
    ):
        time = dates.format_span(change.start, change.end, room.center.zone)
        yield ReservationDetail("To", f"{amendments.describe_room(room)}, {time}")
    values = change.values | (change.personal_values or {})
    for field in BOOKING_FIELDS:
        if field.name in values:
            yield ReservationDetail(field.label, _describe_value(field, values[field.name]))
    by = "the customer" if change.by_id == reservation.user_id else "staff"
    requested_at = format_datetime(reservation, change.created_at)
    yield ReservationDetail("Requested", f"{requested_at}, by {by}")
    if payment is None:
        yield _describe_link(reservation, change, now=now)
        return
    if payment.is_called_off:
        state = "It is being called off"
    elif payment.action_until is not None:
        until = format_datetime(reservation, payment.action_until)
        state = f"Waiting for the customer's bank until {until}"
    elif payment.lease_until > now:
        state = "In progress"
    else:
        state = "Payment status unknown"
    url = ""
    if roles.has_permission(user, roles.VIEW_PAYMENT, reservation.room.center_id):
        url = _get_url("payments_payment", payment.pk)
        state = f"{payment.formatted_amount}. {state}"
    yield ReservationDetail("Payment", state, url)


def _describe_value(field: BookingField, value: Any) -> str:
    """What was entered for a field of a booking."""
    match field.kind:
        case FieldKind.SERVICES:
            selected = [each["service_id"] for each in value if each.get("selected", True)]
            return (
                ", ".join(each.name for each in Service.objects.filter(pk__in=selected)) or "None"
            )
        case FieldKind.ATTENDEES:
            return f"{len(value)} are listed"
        case FieldKind.EXTRAS:
            extras = ((each["text"], Decimal(each["amount"])) for each in value)
            return ", ".join(f"{text} {money.format_amount(amount)}" for text, amount in extras)
    return str(value)


def _describe_link(
    reservation: Reservation, change: BookingChange, *, now: dt.datetime
) -> ReservationDetail:
    assert change.link_until is not None
    until = format_datetime(reservation, change.link_until)
    amount = money.format_amount(change.difference)
    if change.link_until > now:
        return ReservationDetail("Payment link", f"{amount}. Sent, can be paid until {until}")
    text = f"{amount}. Expired on {until} and not paid: the booking is as it was."
    return ReservationDetail("Payment link", text)


def _describe_terms(reservation: Reservation, *, now: dt.datetime) -> Iterator[ReservationDetail]:
    """Who created it and when, and what cancelling it costs."""

    def describe(label: str, at: dt.datetime, suffix: str = "") -> ReservationDetail:
        return ReservationDetail(label, format_datetime(reservation, at) + suffix)

    yield describe("Created", reservation.created_at, f", by {_get_creator(reservation)}")
    if reservation.booked_at is not None:
        yield describe("Booked", reservation.booked_at)
        terms = str(get_terms(reservation))
        if can_transition(reservation.status, Status.CANCELLED):
            terms += f". {describe_cancellation(reservation, now=now)}"
        yield ReservationDetail("Terms of cancellation", terms)
    if reservation.cancelled_at is not None:
        yield describe("Cancelled", reservation.cancelled_at)
        yield from _describe_refund_override(reservation)
    if reservation.is_checked_in and reservation.checked_in_at is not None:
        yield describe("Checked in", reservation.checked_in_at)
    if reservation.partner is not None:
        yield ReservationDetail("Partner", str(reservation.partner))


def _describe_refund_override(reservation: Reservation) -> Iterator[ReservationDetail]:
    overrides = RefundOverride.objects.filter(reservation=reservation).select_related("by")
    for override in overrides:
        given = money.format_amount(override.refund)
        policy = money.format_amount(override.policy_refund)
        text = f"{given} instead of {policy}, by {format_staff(override.by)}: {override.reason}"
        yield ReservationDetail("Refund by decision", text)


def _get_creator(reservation: Reservation) -> str:
    by = reservation.created_by
    return format_staff(by) if by else "the customer"


def _describe_discounts(reservation: Reservation) -> Iterator[ReservationDetail]:
    """Promo code, allowances and price adjustments."""
    if reservation.promo_code is not None:
        redemption = reservation.promo_redemptions.filter(given_back_at__isnull=True).first()
        state = (
            f"Used, {money.format_amount(redemption.amount)} off" if redemption else "Not used yet"
        )
        yield ReservationDetail(f"Promo code {reservation.promo_code}", state)
    for use in reservation.allowance_uses.select_related("allowance").order_by("pk"):
        text = f"{use.hours} h, {money.format_amount(use.discount)} off"
        yield ReservationDetail(use.allowance.description, text)
    for adjustment in reservation.price_adjustments.select_related("by").order_by("pk"):
        text = f"{money.format_amount(adjustment.amount)}, by {format_staff(adjustment.by)}"
        kind = "Extra" if adjustment.amount > 0 else "Adjustment"
        yield ReservationDetail(f"{kind}: {adjustment.reason}", text)


# --- History -------------------------------------------------------------------------------------


def _describe_history(reservation: Reservation) -> Iterator[dict[str, object]]:
    """The changes (label, old and new value), the latest first; the last is the creation."""
    for entry in history.get_changes(reservation)[:MAX_ROWS]:
        with timezone.override(reservation.room.center.zone):
            changes = list(render_changes(entry))
        author = _get_author(entry, reservation)
        yield {"at": entry.timestamp, "author": author, "changes": changes}
    created = [("Status", "", Status.NEW.label)]
    author = _get_creator(reservation)
    yield {"at": reservation.created_at, "author": author, "changes": created}


def _get_author(entry: AuditEntry, reservation: Reservation) -> str:
    if entry.actor is None:
        return entry.actor_email or "automatically"
    if entry.actor_id == reservation.user_id:
        return "the customer"
    return format_staff(entry.actor)


def _get_receipts_url(reservation: Reservation, user: "User") -> str:
    is_booked = reservation.booked_at is not None
    center = reservation.room.center_id
    if not (is_booked and roles.has_permission(user, roles.VIEW_RECEIPT, center)):
        return ""
    return reverse("admin:reservations_reservation_receipts", args=[reservation.pk])


def _get_url(name: str, pk: int) -> str:
    return reverse(f"admin:{name}_change", args=[pk])
