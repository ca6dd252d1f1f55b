"""What the page of a reservation shows, in the local time of its center.

The page has no form: each action has a page of its own. Personal data and payments are shown only
to users whose roles permit it.
"""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django.db.models import F
from django.utils import timezone

from accounts import customer_access, roles
from accounts.models import OutboxMessage, User
from centers.models import Service
from payments.models import Payment
from payments.statements import describe_accounts, summarize
from reservations.booking import amendments, payment_links
from reservations.desk.actions import get_available_actions
from reservations.desk.notes import build_note_list
from reservations.display import format_datetime, format_staff, format_time_zone
from reservations.models import BookingChange, ChangeState, Reservation, history
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

# Longer lists are cut: their own pages show all rows.
MAX_ROWS = 100


def build_summary_context(
    reservation: Reservation, user: User, *, now: dt.datetime
) -> dict[str, object]:
    """The template context of what is most important; ``reservation`` has its relations loaded."""
    center = reservation.room.center
    can_see_customer = roles.has_permission(user, roles.VIEW_USER, center.pk)
    actions = get_available_actions(user, reservation, now=now)
    return {
        "reservation": reservation,
        "now": now,
        "zone": center.zone,
        "actions": actions,
        "immediate_actions": [each for each in actions if each.is_immediate(reservation, now=now)],
        "can_see_receipts": reservation.booked_at is not None
        and roles.has_permission(user, roles.VIEW_RECEIPT, center.pk),
        "can_see_customer": can_see_customer,
        # Anybody can make a draft for an account whose address they know.
        "can_open_account": can_see_customer
        and customer_access.can_view_customer(user, reservation.user),
        "columns": list(describe_columns(reservation)),
        "is_held": reservation.is_held_at(now),
        "is_link_payable": payment_links.can_cancel_links(reservation, now=now),
        "services": reservation.chosen_services.select_related("service").order_by(
            "service__position"
        ),
        "notes": build_note_list(reservation, user, now=now),
        "change": _find_pending_change(reservation, user, now=now),
    }


def build_context(reservation: Reservation, user: User, *, now: dt.datetime) -> dict[str, object]:
    """The template context; ``reservation`` has its relations loaded."""
    center = reservation.room.center
    context: dict[str, object] = {}
    if roles.has_permission(user, roles.VIEW_PAYMENT, center.pk):
        lines = reservation.ledger_lines.select_related("center").order_by("at", "pk")
        rows = reservation.payments.prefetch_related("refunds", "disputes").order_by("pk")
        payments = list(rows[:MAX_ROWS])
        context = {
            "can_see_payments": True,
            "payments": payments,
            "ledger": [
                (line, describe_accounts(line), after)
                for line, after in summarize(lines[:MAX_ROWS])
            ],
            "is_test_payment": payments and not any(each.is_live for each in payments),
        }
    if reservation.booked_at is not None:
        context["terms"] = str(get_terms(reservation))
        if can_transition(reservation.status, Status.CANCELLED):
            context["cancellation"] = describe_cancellation(reservation, now=now)
    subjects = [emails.get_subject_key(reservation.pk), reservation.link_subject]
    messages = OutboxMessage.objects.filter(about__in=subjects)
    return {
        **build_summary_context(reservation, user, now=now),
        **context,
        "zone_name": format_time_zone(center, reservation.start),
        "redemption": reservation.promo_redemptions.filter(given_back_at__isnull=True).first(),
        "allowance_uses": reservation.allowance_uses.select_related("allowance").order_by("pk"),
        "adjustments": reservation.price_adjustments.select_related("by").order_by("pk"),
        "can_see_attendees": roles.has_permission(user, roles.VIEW_ATTENDEE, center.pk),
        "attendees": reservation.attendees.order_by("-is_creator", "pk")[:MAX_ROWS],
        "emails": messages.order_by("pk").defer("attachment")[:MAX_ROWS],
        "payment_link": payment_links.find_path(reservation, now=now)
        if roles.has_permission(user, roles.CHANGE_RESERVATION, center.pk)
        else "",
        "history": list(_describe_history(reservation)),
    }


# --- A change that waits for its payment ----------------------------------------------------------


def _find_pending_change(
    reservation: Reservation, user: User, *, now: dt.datetime
) -> dict[str, Any] | None:
    """The change whose payment is not resolved yet (B27.5): what was requested, and by when."""
    if not reservation.is_confirmed_or_completed:
        return None
    rows = reservation.changes.filter(state=ChangeState.STARTED)
    # While somebody pays for it by the link, the payment says more than the link.
    rows = rows.order_by(F("payment").asc(nulls_last=True))
    change = rows.select_related("payment", "room__center").first()
    if change is None:
        return None
    payment = change.payment
    can_see_payment = roles.has_permission(user, roles.VIEW_PAYMENT, reservation.room.center_id)
    return {
        "row": change,
        "facts": list(_describe_requested(reservation, change)),
        "payment": payment if can_see_payment else None,
        "state": _describe_payment(reservation, payment, now) if payment else "",
        "link_has_ended": change.link_until is not None and change.link_until <= now,
    }


def _describe_requested(
    reservation: Reservation, change: BookingChange
) -> Iterator[tuple[str, str]]:
    room, booked = change.room, (reservation.room_id, reservation.start, reservation.end)
    if (room.pk, change.start, change.end) != booked:
        time = dates.format_span(change.start, change.end, room.center.zone)
        yield "To", f"{amendments.describe_room(room)}, {time}"
    values = change.values | (change.personal_values or {})
    for field in BOOKING_FIELDS:
        if field.name in values:
            yield field.label, _describe_value(field, values[field.name])


def _describe_value(field: BookingField, value: Any) -> str:
    """What was entered for a field of a booking."""
    match field.kind:
        case FieldKind.SERVICES:
            selected = [each["service_id"] for each in value if each.get("selected", True)]
            names = Service.objects.filter(pk__in=selected).values_list("name", flat=True)
            return ", ".join(names) or "None"
        case FieldKind.ATTENDEES:
            return f"{len(value)} are listed"
        case FieldKind.EXTRAS:
            extras = ((each["text"], Decimal(each["amount"])) for each in value)
            return ", ".join(f"{text} {money.format_amount(amount)}" for text, amount in extras)
    return str(value)


def _describe_payment(reservation: Reservation, payment: Payment, now: dt.datetime) -> str:
    if payment.is_called_off:
        return "It is being called off"
    if payment.action_until is not None:
        until = format_datetime(reservation, payment.action_until)
        return f"Waiting for the customer's bank until {until}"
    return "In progress" if payment.lease_until > now else "Payment status unknown"


# --- History -------------------------------------------------------------------------------------


def _describe_history(reservation: Reservation) -> Iterator[dict[str, object]]:
    """The changes (label, old and new value), the latest first; the last is the creation."""
    for entry in history.get_changes(reservation)[:MAX_ROWS]:
        with timezone.override(reservation.room.center.zone):
            changes = list(render_changes(entry))
        author = entry.actor_email or "automatically"
        if entry.actor is not None:
            is_customer = entry.actor_id == reservation.user_id
            author = "the customer" if is_customer else format_staff(entry.actor)
        yield {"at": entry.timestamp, "author": author, "changes": changes}
    by = reservation.created_by
    yield {
        "at": reservation.created_at,
        "author": format_staff(by) if by else "the customer",
        "changes": [("Status", "", Status.NEW.label)],
    }
