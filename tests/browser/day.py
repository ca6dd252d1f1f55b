"""Reservations at the demo center, made as customers make them."""

import datetime as dt
from uuid import uuid4

from django.utils import timezone

from accounts.act import Act
from accounts.models import User
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from payments.models import Dispute, Payment, Refund, UnknownPayment
from reservations import availability
from reservations.booking.charging import PaymentMethod
from reservations.booking.checkout import check_out
from reservations.booking.drafts import create_draft
from reservations.demo.accounts import DEMO, ROLES_CENTER
from reservations.integrations.events import create_test_event
from reservations.models import Reservation
from reservations.receipts import issuing
from tests.webhooks.helpers import make_endpoint

CENTER = ROLES_CENTER


def room(name: str) -> MeetingRoom:
    return MeetingRoom.objects.select_related("center").get(name=name, center__name=CENTER)


def open_day(room: MeetingRoom, *, hours: tuple[int, int] = (9, 17)) -> dt.date:
    """A day in a week or later on which the room is available during these hours."""
    now = timezone.now()
    day = now.astimezone(room.center.zone).date() + dt.timedelta(days=7)
    while not availability.evaluate(room, _span(room, day, *hours), now=now).is_available:
        day += dt.timedelta(days=1)
    return day


def request_for(room: MeetingRoom, day: dt.date, hour: int) -> Reservation:
    """A paid request of the demo customer, awaiting approval."""
    MeetingRoom.objects.filter(pk=room.pk).update(is_live_inventory=False)
    span = _span(room, day, hour, hour + 2)
    user, now = User.objects.get(email=DEMO), timezone.now()
    made = create_draft(Act(user, now), user, room_id=room.pk, start=span.start, end=span.end)
    return check_out(Act(user, now), made.pk, payment_method=PaymentMethod(use_saved_card=True))


def complete_demo_data() -> None:
    """Add a row of each kind of which the demo data have none, so that every page has something."""
    now, payment = timezone.now(), Payment.objects.latest("pk")
    issuing.issue_documents(Payment.objects.captured().earliest("pk").reservation, by=None, now=now)
    create_test_event(make_endpoint(), now=now)
    Refund.objects.create(payment=payment, amount=1, state="refused", created_at=now, done_at=now)
    UnknownPayment.objects.create(
        gateway="sandbox", key=uuid4(), amount=75, currency="USD", found_at=payment.created_at
    )
    Dispute.objects.create(
        payment=payment,
        reference="d1",
        amount=payment.amount,
        currency=payment.currency,
        reason="fraudulent",
        status="needs_response",
        opened_at=payment.created_at,
    )


def _span(room: MeetingRoom, day: dt.date, first: int, last: int):
    return resolve_span(
        room.center,
        dt.datetime(day.year, day.month, day.day, first),  # noqa: DTZ001 (the center's clock)
        dt.datetime(day.year, day.month, day.day, last),  # noqa: DTZ001
    )
