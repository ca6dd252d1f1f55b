"""What customers and staff of the demo do with a meeting, by the domain's functions.

Each function does nothing if it is done already: a run that was interrupted is continued by the
next one, with the same times.
"""

import datetime as dt
import os
from dataclasses import dataclass
from typing import Literal

from django.conf import settings

from accounts.act import Act
from accounts.models import User
from centers.models import Closure, MeetingRoom, Service
from centers.span import Span, get_local_midnight
from payments.manual_payments import mark_received
from payments.models import Payment, Refund
from payments.refunds import confirm_refund_by_hand
from reservations.booking import (
    approval,
    cancellation,
    check_in,
    checkout,
    differences,
    drafts,
    no_show,
    notes,
    payment_links,
    price_adjustments,
)
from reservations.booking.amendments import ChangeRequest
from reservations.booking.charging import PaymentMethod
from reservations.booking.checkout import check_out
from reservations.demo import accounts
from reservations.demo.data_files import import_rows
from reservations.models import Note, Reservation
from reservations.models.status import Status
from roombook.errors import SlotUnavailable

HOUR = dt.timedelta(hours=1)

# How a meeting is paid. A draft is not paid.
Way = Literal["card", "cash", "terminal", "account", "draft"]


@dataclass(slots=True, eq=False)
class Meeting:
    """A reservation to be made at `created_at`. It has an id if it was made."""

    customer: User
    room: MeetingRoom
    span: Span
    created_at: dt.datetime
    way: Way
    staff: User
    people: int = 2
    coffee: Service | None = None
    promo_code: str = ""
    pk: int | None = None

    def load(self) -> Reservation:
        assert self.pk is not None
        rows = Reservation.objects.select_related("room__center", "user")
        return rows.get(pk=self.pk)


def book(meeting: Meeting, *, now: dt.datetime) -> None:
    """Create a draft and pay for it. A room that is closed or taken is not booked."""
    draft = meeting.load() if meeting.pk else _create_draft(meeting, now=now)
    if draft is None:
        return
    meeting.pk = draft.pk
    if not draft.is_new or meeting.way == "draft":
        return
    if code := meeting.promo_code:
        draft = drafts.apply_promo_code(draft.pk, code, user=meeting.customer, now=now)
    total = draft.total_cost
    if meeting.way == "card":
        card = _get_card(meeting, now)
        check_out(draft.pk, user=meeting.customer, payment_method=card, shown_total=total, now=now)
    else:
        checkout.take_manual_payment(
            Act(meeting.staff, now, is_staff=True),
            draft,
            gateway=meeting.way,
            reference=f"No. {draft.pk}",
            shown_total=total,
        )


def _create_draft(meeting: Meeting, *, now: dt.datetime) -> Reservation | None:
    coffee, act = meeting.coffee, Act(meeting.customer, now)
    if meeting.way != "card":
        act = Act(meeting.staff, now, is_staff=True)
    try:
        return drafts.create_draft(
            act,
            meeting.customer,
            room_id=meeting.room.pk,
            start=meeting.span.start,
            end=meeting.span.end,
            services=[{"service_id": coffee.pk, "quantity": meeting.people}] if coffee else [],
            number_of_attendees=meeting.people,
        )
    except SlotUnavailable:
        return None


def _get_card(meeting: Meeting, now: dt.datetime) -> PaymentMethod:
    return PaymentMethod(card=accounts.get_card(meeting.customer, now))


def approve(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    if meeting.load().status == Status.PENDING:
        approval.approve(Act(meeting.staff, now, is_staff=True), meeting.pk)


def check_customer_in(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    check_in.check_in(Act(meeting.staff, now, is_staff=True), meeting.pk)


def mark_no_show(meeting: Meeting, *, now: dt.datetime) -> None:
    assert meeting.pk is not None
    if meeting.load().status != Status.NO_SHOW:
        no_show.mark_no_show(Act(meeting.staff, now, is_staff=True), meeting.pk)
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
    if meeting.load().end != meeting.span.end:
        return
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
    if not reservation.price_adjustments.exists():
        price_adjustments.adjust_price(
            Act(meeting.staff, now, is_staff=True),
            reservation.pk,
            amount=-reservation.total_cost.quantize(10) // 4,
            reason="The video conference did not work.",
        )


def add_note(meeting: Meeting, text: str, *, now: dt.datetime) -> None:
    if not Note.objects.filter(reservation=meeting.pk).exists():
        notes.add_note(meeting.load(), text, by=meeting.staff, now=now)


def send_payment_link(meeting: Meeting, *, now: dt.datetime) -> None:
    draft = meeting.load()
    if draft.payment_link_until is None:
        # The address at which `make run` serves.
        base_url = settings.PUBLIC_URL or f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
        payment_links.send_link(Act(meeting.staff, now, is_staff=True), draft.pk, base_url=base_url)


def close_room(meeting: Meeting, reason: str, *, now: dt.datetime) -> None:
    """Close the room on the day of the meeting, which stays in the closure."""
    room, zone = meeting.room, meeting.room.center.zone
    day = meeting.span.start.astimezone(zone).date()
    start = get_local_midnight(day, zone)
    if not Closure.objects.filter(room=room, starts_at=start).exists():
        row = {
            "center": room.center.name,
            "room": room.name,
            "starts_at": f"{day}T00:00",
            "ends_at": f"{day + dt.timedelta(1)}T00:00",
            "reason": reason,
        }
        import_rows("closures", [row], now=now)
