"""What needs attention, on the dashboard."""

from decimal import Decimal

import pytest

from accounts.models import OutboxMessage
from payments.models import Dispute, PaymentState, Refund, RefundState
from reservations.models.status import Status
from roombook.deliveries import DeliveryState
from tests.backoffice.dashboard.helpers import DAY, NOW, meeting, paid, seen
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import HOUR, make_booking, make_room

pytestmark = pytest.mark.django_db


def concerns(user=None):
    return [(each.title, each.detail) for each in seen(user or AdministratorFactory())["alerts"]]


def test_alerts_without_problems_are_empty():
    make_booking(now=NOW, start=NOW + DAY)
    OutboxMessage.objects.all().delete()

    assert concerns() == []


def test_alerts_list_each_payment_once():
    room = make_room()
    expiring = meeting(room, NOW + DAY, status=Status.PENDING)
    paid(expiring, PaymentState.AUTHORIZED, authorized_until=NOW + 5 * HOUR)
    lost = meeting(room, NOW + 2 * DAY)
    paid(lost, PaymentState.VOIDED, counts=True)
    orphaned = meeting(room, NOW + 3 * DAY, status=Status.DECLINED)
    paid(orphaned)
    unmet = meeting(room, NOW + 4 * DAY, status=Status.CANCELLED, cancelled_at=NOW)
    refuse(paid(unmet))
    favour = meeting(room, NOW + 5 * DAY)
    refuse(paid(favour))
    doubt = meeting(room, NOW + 6 * DAY, status=Status.PROCESSING)
    paid(doubt, PaymentState.STARTED, lease_until=NOW - HOUR)
    # A refund that was made in another way is resolved.
    refund(refuse(paid(meeting(room, NOW + 7 * DAY))), state=RefundState.DONE)

    found = concerns()

    assert [what for what, _ in found] == [
        *(f"$75.00 of reservation {row.pk}" for row in (expiring, lost, orphaned)),
        *(f"Refund of $75.00 of reservation {row.pk}" for row in (unmet, favour)),
        f"$75.00 of reservation {doubt.pk}",
    ]
    assert found[3][1] == found[4][1] == "The gateway refused a refund of $75.00."


def refuse(payment):
    return Refund.objects.create(
        payment=payment,
        amount=payment.amount,
        state=RefundState.REFUSED,
        created_at=NOW,
        done_at=NOW,
    )


def refund(refused, state):
    Refund.objects.create(
        payment=refused.payment, amount=1, state=state, created_at=NOW, done_at=NOW, again=refused
    )


def test_alerts_list_open_disputes():
    payment = paid(meeting(make_room(), NOW + DAY))
    for reference, closed in (("d1", None), ("d2", NOW)):
        Dispute.objects.create(
            payment=payment,
            reference=reference,
            amount=Decimal("75.00"),
            currency="USD",
            reason="fraudulent",
            status="needs_response",
            opened_at=NOW,
            respond_by=NOW + 9 * DAY,
            closed_at=closed,
        )

    assert concerns() == [
        (
            "Dispute about $75.00, answer by Wed 2027-03-24",
            f"Reservation {payment.reservation_id}: Fraudulent",
        )
    ]


def unsent(count, **fields):
    for number in range(count):
        OutboxMessage.objects.create(
            **{
                "user": UserFactory(),
                "to": "x@example.com",
                "kind": "confirmed",
                "about": f"reservation {number}",
                "subject": "Booked",
                "text": "Booked",
                "state": DeliveryState.FAILED,
                "last_error": "no such user",
                "created_at": NOW - DAY,
                **fields,
            }
        )


def test_alerts_list_unsent_emails_or_their_number():
    waiting = {"state": DeliveryState.WAITING, "next_attempt_at": NOW, "last_error": ""}
    unsent(1)
    unsent(1, **waiting, created_at=NOW - 2 * HOUR)
    unsent(1, **waiting, created_at=NOW)
    unsent(1, state=DeliveryState.SENT, sent_at=NOW, created_at=NOW - 2 * HOUR)

    assert concerns() == [
        ("E-mail not sent: confirmed", "reservation 0. Waiting to be sent"),
        ("E-mail not sent: confirmed", "reservation 0. no such user"),
    ]
    unsent(2)
    assert concerns() == [("4 e-mails were not sent", "no such user")]
    OutboxMessage.objects.filter(state=DeliveryState.FAILED).update(**waiting)
    assert concerns() == [("4 e-mails were not sent", "Waiting to be sent")]


def test_no_alerts_message_names_permitted_checks_only(client, staff):
    unsent(1)
    client.force_login(staff("Desk", make_room().center))
    assert "No problems with bookings or payments." in client.get("/admin/").text
    OutboxMessage.objects.all().delete()
    client.force_login(AdministratorFactory())
    text = "No problems with bookings or payments or e-mails or webhooks."
    assert text in client.get("/admin/").text
