"""Reservations at the demo center, made as customers make them."""

import datetime as dt
import json
from urllib.request import Request, urlopen
from uuid import uuid4

from django.utils import timezone

from accounts.models import User
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from payments.models import Dispute, Payment, UnknownPayment
from reservations import availability
from reservations.booking.checkout import PaymentMethod, check_out
from reservations.booking.drafts import create_draft
from reservations.demo.accounts import DEMO, GUEST, PASSWORD, ROLES_CENTER, get_card
from reservations.models import Reservation
from reservations.receipts import issuing
from reservations.webhooks.events import create_test_event
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
    made = create_draft(user, room_id=room.pk, start=span.start, end=span.end, now=now)
    return check_out(made.pk, user=user, payment_method=PaymentMethod(use_saved_card=True), now=now)


def complete_demo_data() -> None:
    """Add a row of each kind of which the demo data have none, so that every page has something."""
    now, payment = timezone.now(), Payment.objects.latest("pk")
    issuing.issue_documents(Payment.objects.captured().earliest("pk").reservation, by=None, now=now)
    create_test_event(make_endpoint(), now=now)
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


class Phone:
    """The app of the second demo customer, over HTTP."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.token = self.call("sign-in", EmailAddress=GUEST, Password=PASSWORD)["Token"]

    def call(self, operation: str, **fields: object) -> dict:
        body = json.dumps(fields).encode()
        request = Request(
            f"{self.host}/api/{operation}", body, {"Content-Type": "application/json"}
        )
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def pay(self, reservation_id: int) -> dict:
        card = get_card(User.objects.get(email=GUEST), timezone.now())
        return self.call(
            "reservations/checkout",
            Token=self.token,
            ReservationId=reservation_id,
            PaymentInfo={
                "FirstName": card["first_name"],
                "LastName": card["last_name"],
                "CreditCardNumber": card["credit_card_number"],
                "SecurityCode": card["security_code"],
                "ExpirationDate": card["expiration_date"].isoformat(),
                "BillingAddress": {
                    "Street1": "88 Harbour Street",
                    "City": "Denver",
                    "State": "CO",
                    "PostalCode": "80205",
                    "Country": "US",
                },
            },
        )
