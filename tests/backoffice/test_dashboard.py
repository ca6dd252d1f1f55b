"""The dashboard: today at the permitted centers, what needs attention, an owner's first steps."""

import datetime as dt
from decimal import Decimal

import pytest
from django.urls import reverse

from accounts.models import OutboxMessage
from centers.models import Center, ResourceType
from payments.models import PaymentState, Refund, RefundState
from reservations.desk.dashboard.dashboard import build_dashboard
from reservations.display import get_reservation_url
from reservations.models.status import Status
from roombook.deliveries import DeliveryState
from tests.backoffice.meetings import DAY, NOW, meeting, paid
from tests.factories_centers import CenterFactory
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory
from tests.factories_reservations import HOUR, make_booking, make_room

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def seen(user=None, now=NOW):
    return build_dashboard(user or AdministratorFactory(), now=now)


def test_meetings_of_today_and_tomorrow_are_counted_by_local_day(office):
    denver, auckland = make_room(), make_room(time_zone_id="Pacific/Auckland")
    # In Auckland it is the 16th, 04:00.
    meeting(denver, dt.datetime(2027, 3, 15, 16, tzinfo=dt.UTC), checked_in_at=NOW)
    meeting(auckland, dt.datetime(2027, 3, 15, 20, tzinfo=dt.UTC), status=Status.NO_SHOW)
    meeting(denver, dt.datetime(2027, 3, 15, 13, tzinfo=dt.UTC))  # over
    # It was moved to tomorrow after the check-in, which therefore no longer counts.
    meeting(auckland, dt.datetime(2027, 3, 16, 20, tzinfo=dt.UTC), checked_in_at=NOW)
    meeting(denver, dt.datetime(2027, 3, 15, 18, tzinfo=dt.UTC), status=Status.PENDING)
    meeting(denver, dt.datetime(2027, 3, 17, 16, tzinfo=dt.UTC))

    page = office.get("/admin/")

    found = page.context["dashboard"]["days"]
    assert [tuple(day.values()) for day in found] == [("Today", 3, 1), ("Tomorrow", 1, 0)]
    assert "Today: 3 meetings, 1 checked in" in page.text


def test_pending_requests_are_sorted_by_what_expires_first():
    room = make_room()
    rows = [
        meeting(room, NOW + days * DAY, status=Status.PENDING, booked_at=NOW - waiting * HOUR)
        for days, waiting in ((5, 2), (3, 50), (1 / 24, 0))
    ]

    requests = seen()["requests"]

    assert [each["reservation"] for each in requests] == [rows[2], rows[1], rows[0]]
    assert requests[0]["expires"] == "expires in 1\xa0hour"
    assert requests[1]["expires"] == "expires in 22\xa0hours"


def test_month_comparison_uses_same_number_of_days():
    room = make_room()
    for start, total in (
        (NOW - 3 * DAY, 75),
        (NOW + 3 * HOUR, 75),
        (NOW + DAY, 1000),  # tomorrow
        (NOW - 28 * DAY, 100),
        (NOW - 20 * DAY, 1000),
    ):
        meeting(room, start, status=Status.COMPLETED, total_cost=Decimal(total))

    figures = seen()["figures"]

    assert (figures["month"], figures["former_month"]) == ("$150.00", "$100.00")
    assert figures["former_period"] == "Mon 2027-02-01 - Mon 2027-02-15"
    assert (figures["change"], figures["is_up"]) == ("+50%", True)
    # The previous month is shorter.
    figures = seen(now=NOW + 15 * DAY)["figures"]
    assert figures["former_period"] == "Mon 2027-02-01 - Sun 2027-02-28"


def test_week_utilization_is_shown_unless_there_are_too_many_rooms(monkeypatch, office):
    meeting(make_room(), NOW + 2 * HOUR, hours=5)
    figures = seen()["figures"]
    assert figures["week"] == "7.1%"

    monkeypatch.setattr("reservations.reports.utilization.MAX_ROOMS", 0)
    figures = seen()["figures"]
    assert "week" not in figures
    assert figures["note"].startswith("There are too many rooms")
    monkeypatch.setattr("reservations.desk.dashboard.figures.MAX_CENTERS", 0)
    page = office.get("/admin/")
    assert page.context["dashboard"]["figures"].keys() == {"note"}
    assert "too many centers" in page.text


def test_dashboard_hides_other_centers(staff, client):
    here, there = make_room(), make_room()
    Center.objects.filter(pk=there.center_id).update(name="Elsewhere")
    for room in (here, there):
        meeting(room, NOW + HOUR)
        request = meeting(room, NOW + 2 * DAY, status=Status.PENDING)
        paid(request, PaymentState.AUTHORIZED, authorized_until=NOW + HOUR)
    client.force_login(staff("Manager", here.center))

    answer = client.get("/admin/")
    page = answer.context["dashboard"]

    assert [each["reservation"].room.center.name for each in page["requests"]] == ["Glenarm"]
    assert page["days"][0]["meetings"] == 1
    assert "Elsewhere" not in answer.text
    assert not any(get_reservation_url(each.pk) in answer.text for each in there.reservations.all())

    assert page["can_answer"]
    assert not seen(staff("Viewer", here.center))["can_answer"]
    client.force_login(StaffFactory())  # without a role
    assert client.get("/admin/").context["dashboard"] == {"first_steps": []}


def test_figures_require_reports_permission_and_are_those_of_permitted_centers(staff):
    here, there = make_room(), make_room()
    meeting(here, NOW + HOUR)
    meeting(there, NOW + HOUR, total_cost=Decimal("1000.00"))
    for user, month in (
        (staff("Viewer", here.center), None),
        (staff("Desk", here.center), None),
        (staff("Manager", here.center), "$75.00"),
        (staff("Manager"), "$1,075.00"),
        (staff("Accountant"), "$1,075.00"),
    ):
        figures = seen(user).get("figures", {})
        assert figures.get("month") == month
        assert ("week" in figures) is bool(month)


def concerns():
    return [(each.title, each.detail) for each in seen()["alerts"]]


def refuse_refund(payment):
    return Refund.objects.create(
        payment=payment,
        amount=payment.amount,
        state=RefundState.REFUSED,
        created_at=NOW,
        done_at=NOW,
    )


def test_alerts_list_each_payment_once():
    make_booking(now=NOW, start=NOW + DAY)
    OutboxMessage.objects.all().delete()
    assert concerns() == []
    room = make_room()

    def pay(day, status=Status.CONFIRMED, *payment, cancelled_at=None, **fields):
        row = meeting(room, NOW + day * DAY, status=status, cancelled_at=cancelled_at)
        return paid(row, *payment, **fields)

    expiring = pay(1, Status.PENDING, PaymentState.AUTHORIZED, authorized_until=NOW + 5 * HOUR)
    lost = pay(2, Status.CONFIRMED, PaymentState.VOIDED, counts=True)
    orphaned = pay(3, Status.DECLINED)
    unmet, favour = pay(4, Status.CANCELLED, cancelled_at=NOW), pay(5)
    refuse_refund(unmet)
    refuse_refund(favour)
    doubt = pay(6, Status.PROCESSING, PaymentState.STARTED, lease_until=NOW - HOUR)
    # A refund that was made in another way is resolved.
    refused = refuse_refund(pay(7))
    again = {"payment": refused.payment, "state": RefundState.DONE, "again": refused}
    Refund.objects.create(**again, amount=1, created_at=NOW, done_at=NOW)

    found = concerns()

    assert [what for what, _ in found] == [
        *(f"$75.00 of reservation {each.reservation_id}" for each in (expiring, lost, orphaned)),
        *(f"Refund of $75.00 of reservation {each.reservation_id}" for each in (unmet, favour)),
        f"$75.00 of reservation {doubt.reservation_id}",
    ]
    assert found[3][1] == found[4][1] == "The gateway refused a refund of $75.00."


def test_alerts_list_open_disputes():
    payment = paid(meeting(make_room(), NOW + DAY))
    fields = {"currency": "USD", "reason": "fraudulent", "opened_at": NOW}
    for reference, closed, amount in (("d1", None, 75), ("d2", NOW, 70)):
        payment.disputes.create(
            **fields,
            amount=amount,
            reference=reference,
            respond_by=NOW + 9 * DAY,
            closed_at=closed,
        )

    title = "Dispute about $75.00, answer by Wed 2027-03-24"
    assert concerns() == [(title, f"Reservation {payment.reservation_id}: Fraudulent")]


def unsent(count=1, **fields):
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
    unsent()
    unsent(**waiting, created_at=NOW - 2 * HOUR)
    unsent(**waiting, created_at=NOW)
    unsent(state=DeliveryState.SENT, sent_at=NOW, created_at=NOW - 2 * HOUR)

    assert concerns() == [
        ("E-mail not sent: confirmed", "reservation 0. Waiting to be sent"),
        ("E-mail not sent: confirmed", "reservation 0. no such user"),
    ]
    unsent(2)
    assert concerns() == [("4 e-mails were not sent", "no such user")]


def test_owner_of_an_empty_database_sees_six_links_that_are_ticked_when_done(client):
    owner = AdministratorFactory()
    client.force_login(owner)
    steps = seen(owner)["first_steps"]
    assert [step.is_done for step in steps] == [False] * 6
    for step in steps:
        assert client.get(step.url).status_code == 200

    def get_done():
        return [step.title for step in seen(owner)["first_steps"] if step.is_done]

    # Nobody can book at a center without opening hours.
    CenterFactory()
    assert get_done() == []
    assert seen(StaffFactory())["first_steps"] == []
    room = make_room()
    done = ["Types of rooms and services", "A center", "Rooms and their prices", "Staff"]
    assert get_done() == done
    # They disappear with the first booking.
    meeting(room, NOW + HOUR, status=Status.NEW, booked_at=None)
    assert get_done() == done
    meeting(room, NOW + 24 * HOUR)
    assert seen(owner)["first_steps"] == []


def test_usual_types_are_added_by_one_click_and_only_once(office):
    url = reverse("admin:centers_resourcetype_samples")
    assert f'action="{url}"' in office.get("/admin/").text
    for _ in range(2):
        office.post(url)
    assert ResourceType.objects.count() == 3
    office.force_login(StaffFactory())
    assert office.post(url).status_code == 403
    assert office.get(url).status_code == 405
