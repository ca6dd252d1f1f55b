"""What customers and staff of the demo do with a meeting, by the domain's functions."""

import datetime as dt
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from django.conf import settings

from accounts.act import Act
from accounts.models import User
from centers.models import MeetingRoom, Service
from centers.requested_span import resolve_span
from centers.span import Span
from payments.manual_payments import mark_received
from payments.models import Payment, Refund
from payments.refunds import confirm_refund_by_hand
from reservations import availability
from reservations.booking import (
    approval,
    attendance,
    cancellation,
    checkout,
    differences,
    drafts,
    expiry,
    notes,
    payment_links,
    price_adjustments,
)
from reservations.booking.amendments import ChangeRequest
from reservations.booking.charging import PaymentMethod
from reservations.booking.checkout import check_out
from reservations.demo import accounts
from reservations.demo.data_files import import_rows, read_json
from reservations.models import Allowance, Reservation
from reservations.models.booking_fields import BookingValues, ServiceInput
from roombook.errors import SlotUnavailable

HOUR = dt.timedelta(hours=1)

# How a meeting is paid: by the customer's card, or with staff. Drafts and links are not paid.
Way = Literal["card", "draft", "cash", "terminal", "account", "link"]


@dataclass(slots=True, eq=False)
class Meeting:
    """A reservation to be made at `created_at`. It has an id if it was made."""

    customer: User
    room: MeetingRoom
    span: Span
    created_at: dt.datetime
    way: Way
    staff: User
    values: BookingValues = field(default_factory=BookingValues)
    promo_code: str = ""
    partner_code: str = ""
    allowance: str = ""
    pk: int | None = None

    def load(self) -> Reservation:
        assert self.pk is not None
        rows = Reservation.objects.select_related("room__center", "user")
        return rows.get(pk=self.pk)


def book(meeting: Meeting, *, now: dt.datetime) -> None:
    """Create a draft and pay for it. A room that is closed or taken is not booked."""
    draft = _create_draft(meeting, now=now)
    if draft is None or meeting.way in {"draft", "link"}:
        return
    customer, total = meeting.customer, draft.total_cost
    if meeting.way == "card":
        check_out(
            Act(customer, now),
            draft.pk,
            payment_method=_get_card(meeting, now),
            partner_code=meeting.partner_code,
            shown_total=total,
        )
    else:
        checkout.book_draft(
            Act(meeting.staff, now, is_staff=True),
            draft.pk,
            gateway=meeting.way,
            reference=f"No. {draft.pk}",
            shown_total=total,
        )


def _create_draft(meeting: Meeting, *, now: dt.datetime) -> Reservation | None:
    customer, act = meeting.customer, Act(meeting.customer, now)
    if meeting.way not in {"card", "draft"}:
        act = Act(meeting.staff, now, is_staff=True)
    start, end = meeting.span.start, meeting.span.end
    try:
        draft = drafts.create_draft(
            act, customer, room_id=meeting.room.pk, start=start, end=end, **meeting.values
        )
    except SlotUnavailable:
        return None
    meeting.pk = draft.pk
    if description := meeting.allowance:
        allowance = Allowance.objects.get(user=customer, description=description)
        draft = drafts.select_allowances(Act(customer, now), draft.pk, [allowance.pk])
    if code := meeting.promo_code:
        draft = drafts.apply_promo_code(Act(customer, now), draft.pk, code)
    return draft


def _get_card(meeting: Meeting, now: dt.datetime) -> PaymentMethod:
    if meeting.customer.saved_payment_info is not None:
        return PaymentMethod(use_saved_card=True)
    return PaymentMethod(card=accounts.get_card(meeting.customer, now))


def approve(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    approval.approve(Act(meeting.staff, now, is_staff=True), meeting.pk)


def check_customer_in(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    attendance.check_in(Act(meeting.staff, now, is_staff=True), meeting.pk)


def mark_no_show(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    attendance.mark_no_show(Act(meeting.staff, now, is_staff=True), meeting.pk)
    # What the terms of its center give back.
    for refund in Refund.objects.due_by_hand().filter(payment__reservation=meeting.pk):
        confirm_refund_by_hand(refund, "Bank transfer", now=now)


def receive_money(meeting: Meeting, *, now: dt.datetime) -> None:
    """Record that the money of a booking on account has come in."""
    for payment in Payment.objects.receivable().filter(reservation=meeting.pk):
        mark_received(payment, now=now)


def extend(meeting: Meeting, *, now: dt.datetime) -> None:
    """Let the customer change the booking to an hour more, and pay the difference."""
    assert meeting.pk is not None
    request = ChangeRequest(meeting.room.pk, meeting.span.start, meeting.span.end + HOUR)
    act = Act(meeting.customer, now)
    preview = differences.preview_change(act, meeting.pk, request)
    differences.change_booking(
        act, meeting.pk, request, _get_card(meeting, now), expected_total=preview.new_total
    )


def cancel(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    cancellation.cancel(Act(meeting.customer, now), meeting.pk)


def reduce_price(meeting: Meeting, *, now: dt.datetime) -> None:
    reservation = meeting.load()
    price_adjustments.adjust_price(
        Act(meeting.staff, now, is_staff=True),
        reservation.pk,
        amount=-reservation.total_cost.quantize(10) // 4,
        reason="The video conference did not work.",
    )


def add_note(meeting: Meeting, text: str, *, now: dt.datetime) -> None:
    notes.add_note(meeting.load(), text, by=meeting.staff, now=now)


def send_payment_link(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    # The address at which `make run` serves.
    base_url = settings.PUBLIC_URL or f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
    payment_links.send_link(Act(meeting.staff, now, is_staff=True), meeting.pk, base_url=base_url)


def close_overdue(*, now: dt.datetime) -> None:
    """Do what the regular command does with drafts and bookings whose time has passed."""
    for _ in expiry.close_overdue(now=now):
        pass


def close_room(meeting: Meeting, reason: str, *, now: dt.datetime) -> None:
    """Close the room on the day of the meeting, which stays in the closure."""
    room = meeting.room
    day = meeting.span.start.astimezone(room.center.zone).date()
    row = {
        "center": room.center.name,
        "room": room.name,
        "starts_at": f"{day}T00:00",
        "ends_at": f"{day + dt.timedelta(1)}T00:00",
        "reason": reason,
    }
    import_rows("closures", [row])


# --- The reservations of the demo accounts -------------------------------------------------------

# The latest day that is tried after one on which the room is closed or taken.
MAX_DAYS_TRIED = 30


def create_from_file(*, now: dt.datetime, write_line: Callable[[str], object]) -> None:
    """Create the reservations of bookings.json, and then do what is due.

    Calls the gateway: no transaction may be open.
    """
    rows = read_json("bookings.json")
    missed = []
    for number, row in enumerate(rows, start=1):
        meeting = _find_meeting(row, now)
        book(meeting, now=meeting.created_at)
        _follow_up(meeting, row["outcome"], now=meeting.created_at + HOUR)
        if row["outcome"] == "missed":
            missed.append(meeting)
        write_line(f"[{number}/{len(rows)}] reservation {meeting.pk}, {row['center']}")
    close_overdue(now=now)
    for meeting in missed:
        mark_no_show(meeting, now=now)


def _follow_up(meeting: Meeting, outcome: str, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    match outcome:
        case "approved":
            approve(meeting, now=now)
        case "declined":
            approval.decline(Act(meeting.staff, now, is_staff=True), meeting.pk)
        case "cancelled":
            cancel(meeting, now=now)


def _find_meeting(row: dict[str, Any], now: dt.datetime) -> Meeting:
    """Return the meeting of a row, on the first day on which its room is available."""
    room = MeetingRoom.objects.with_booking_details().get(
        center__name=row["center"], name=row["room"]
    )
    created_at = now - dt.timedelta(days=float(row["created_days_ago"]))
    earliest = created_at.astimezone(room.center.zone).date() + dt.timedelta(row["days_later"])
    for later in range(MAX_DAYS_TRIED):
        day = earliest + dt.timedelta(later)
        start, end = (dt.datetime.fromisoformat(f"{day}T{row[name]}") for name in ("start", "end"))
        span = resolve_span(room.center, start, end)
        if availability.evaluate(room, span, now=created_at).is_available:
            break
    services: list[ServiceInput] = [
        {
            "service_id": Service.objects.get(center=room.center, name=each["name"]).pk,
            "duration_hours": each.get("duration_hours"),
            "quantity": each.get("quantity"),
        }
        for each in row.get("services", ())
    ]
    return Meeting(
        User.objects.get(email=row["customer"]),
        room,
        span,
        created_at,
        way=row["way"],
        staff=User.objects.get(email=accounts.STAFF),
        values={"services": services, "attendees": row.get("guests", [])},
        promo_code=row.get("promo_code", ""),
        partner_code=row.get("partner_code", ""),
        allowance=row.get("allowance", ""),
    )
