"""The dashboard: today at the permitted centers, what needs attention, an owner's first steps."""

import datetime as dt
import re
from decimal import Decimal

import pytest
from django.urls import reverse

from accounts.models import OutboxMessage
from centers.models import Center, ResourceType
from payments.models import Dispute, PaymentState, Refund, RefundState
from reservations.desk.dashboard.dashboard import build_dashboard
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.deliveries import DeliveryState
from tests.backoffice.many import many
from tests.backoffice.meetings import DAY, NOW, meeting, paid
from tests.factories_centers import CenterFactory
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory
from tests.factories_reservations import HOUR, make_booking, make_pending_booking, make_room

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def seen(user=None, now=NOW):
    return build_dashboard(user or AdministratorFactory(), now=now)


# --- Meetings and requests ------------------------------------------------------------------------


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
    assert [tuple(day.values()) for day in found] == [
        ("Today", 3, 1),
        ("Tomorrow", 1, 0),
    ]
    assert "Today: 3 meetings, 1 checked in" in page.text
    assert f'href="{reverse("admin:reservations_today")}"' in page.text


def test_pending_requests_are_sorted_by_what_expires_first():
    room = make_room()
    rows = [
        meeting(
            room,
            NOW + days * DAY,
            status=Status.PENDING,
            booked_at=NOW - waiting * HOUR,
        )
        for days, waiting in ((5, 2), (3, 50), (4, 30), (1 / 24, 0))
    ]

    page = seen()

    listed = [each["reservation"].pk for each in page["requests"]]
    assert listed == [rows[number].pk for number in (3, 1, 2, 0)]
    assert page["requests"][0]["expires"] == "expires in 1\xa0hour"
    assert page["requests"][1]["waiting"] == "2\xa0days"
    assert page["requests"][1]["expires"] == "expires in 22\xa0hours"
    assert page["has_more_requests"] is False


def test_pending_requests_name_the_zone_if_they_are_in_several(office):
    denver, auckland = make_room(), make_room(time_zone_id="Pacific/Auckland")
    meeting(denver, NOW + DAY, status=Status.PENDING)
    page = office.get("/admin/").text
    assert "Tue 2027-03-16" in page
    assert "09:00 - 10:00</small>" in page

    meeting(auckland, NOW + DAY, status=Status.PENDING)
    page = office.get("/admin/").text
    assert "09:00 - 10:00 MDT</small>" in page
    assert "Wed 2027-03-17" in page
    assert "04:00 - 05:00 NZDT</small>" in page


def test_pending_request_can_be_answered_from_dashboard(client, staff):
    """The link leads to a preview, whose button answers the request."""
    request = make_pending_booking(now=NOW, start=NOW + 2 * DAY)
    client.force_login(staff("Desk", request.room.center))
    approve, decline = (
        reverse("admin:reservations_reservation_action", args=[request.pk, step])
        for step in ("approve", "decline")
    )

    page = client.get("/admin/").text
    assert f'href="{approve}"' in page
    assert f'href="{decline}"' in page
    client.post(approve, {"confirmed": "1"})

    assert "No pending requests." in client.get("/admin/").text


def test_many_pending_requests_end_with_a_link_and_have_no_buttons_without_permission(
    client, staff
):
    room = make_room()
    many(room, UserFactory(), 20, start=NOW + DAY, status=Status.PENDING)
    client.force_login(AdministratorFactory())
    page = client.get("/admin/").text
    assert page.count('class="dashboard-answer"') == 8
    assert "?status__exact=Pending" in page

    client.force_login(staff("Viewer", room.center))
    page = client.get("/admin/").text
    assert "Pending requests" in page
    assert "dashboard-answer" not in page
    assert ">Answer</span>" not in page


# --- Figures ------------------------------------------------------------------------------------


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
    assert figures["month_period"] == "Mon 2027-03-01 - Mon 2027-03-15"
    assert figures["former_period"] == "Mon 2027-02-01 - Mon 2027-02-15"
    assert (figures["change"], figures["is_up"]) == ("+50%", True)
    # The previous month is shorter.
    figures = seen(now=NOW + 15 * DAY)["figures"]
    assert figures["former_period"] == "Mon 2027-02-01 - Sun 2027-02-28"


def test_week_utilization_is_shown_unless_there_are_too_many_rooms(monkeypatch, office):
    meeting(make_room(), NOW + 2 * HOUR, hours=5)
    figures = seen()["figures"]
    assert figures["week_period"] == "Mon 2027-03-15 - Sun 2027-03-21"
    assert figures["week"] == "7.1%"

    monkeypatch.setattr("reservations.reports.utilization.MAX_ROOMS", 0)
    figures = seen()["figures"]
    assert "week" not in figures
    assert figures["note"].startswith("There are too many rooms")
    monkeypatch.setattr("reservations.desk.dashboard.figures.MAX_CENTERS", 0)
    page = office.get("/admin/")
    assert page.context["dashboard"]["figures"].keys() == {"note"}
    assert "too many centers" in page.text


# --- Who sees what ------------------------------------------------------------------------------


def two_centers():
    here, there = make_room(), make_room()
    Center.objects.filter(pk=there.center_id).update(name="Elsewhere")
    for room in (here, there):
        meeting(room, NOW + HOUR)
        request = meeting(room, NOW + 2 * DAY, status=Status.PENDING)
        paid(request, PaymentState.AUTHORIZED, authorized_until=NOW + HOUR)
    return here, there


def test_dashboard_hides_other_centers(staff, client):
    here, there = two_centers()
    client.force_login(staff("Manager", here.center))

    answer = client.get("/admin/")
    page = answer.context["dashboard"]

    assert [each["reservation"].room.center.name for each in page["requests"]] == ["Glenarm"]
    assert page["days"][0]["meetings"] == 1
    assert "Elsewhere" not in re.sub(r"<[^>]+>", " ", answer.text)
    others = Reservation.objects.filter(room=there).values_list("pk", flat=True)
    pages = {reverse("admin:reservations_reservation_change", args=[pk]) for pk in others}
    assert not any(each in answer.text for each in pages)

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


# --- What needs attention -------------------------------------------------------------------------


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
    for reference, closed, amount in (("d1", None, 75), ("d2", NOW, 70)):
        Dispute.objects.create(
            payment=payment,
            reference=reference,
            amount=amount,
            currency="USD",
            reason="fraudulent",
            status="needs_response",
            opened_at=NOW,
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
    OutboxMessage.objects.filter(state=DeliveryState.FAILED).update(**waiting)
    assert concerns() == [("4 e-mails were not sent", "Waiting to be sent")]


def test_no_alerts_message_names_permitted_checks_only(client, staff):
    unsent()
    client.force_login(staff("Desk", make_room().center))
    assert "No problems with bookings or payments." in client.get("/admin/").text
    OutboxMessage.objects.all().delete()
    client.force_login(AdministratorFactory())
    text = "No problems with bookings or payments or e-mails or webhooks."
    assert text in client.get("/admin/").text


# --- The first steps of an owner, until the first booking -----------------------------------------


def test_owner_of_an_empty_database_sees_six_links_that_are_ticked_when_done(client):
    owner = AdministratorFactory()
    client.force_login(owner)
    steps = seen(owner)["first_steps"]
    page = client.get("/admin/").text
    assert [step.is_done for step in steps] == [False] * 6
    for step in steps:
        assert f'href="{step.url}"' in page
        assert client.get(step.url).status_code == 200

    def get_done():
        return [step.title for step in seen(owner)["first_steps"] if step.is_done]

    # Nobody can book at a center without opening hours.
    CenterFactory()
    assert get_done() == []
    StaffFactory()
    make_room()
    done = ["Types of rooms and services", "A center", "Rooms and their prices", "Staff"]
    assert get_done() == done


def test_steps_disappear_with_the_first_booking_and_are_for_owners_only():
    room = make_room()
    meeting(room, NOW + HOUR, status=Status.NEW, booked_at=None)
    assert seen()["first_steps"]
    assert seen(StaffFactory())["first_steps"] == []
    meeting(room, NOW + 24 * HOUR)
    assert seen()["first_steps"] == []


def test_usual_types_are_added_by_one_click_and_only_once(office):
    url = reverse("admin:centers_resourcetype_samples")
    assert f'action="{url}"' in office.get("/admin/").text
    for _ in range(2):
        office.post(url)
    assert ResourceType.objects.count() == 3
    office.force_login(StaffFactory())
    assert office.post(url).status_code == 403
    assert office.get(url).status_code == 405
