"""The dashboard: today at the permitted centers, and nothing of other centers."""

import datetime as dt
import re
from decimal import Decimal

import pytest
from django.urls import reverse

from centers.models import Center
from payments.models import PaymentState
from reservations.desk.dashboard.dashboard import build_dashboard
from reservations.models import Reservation
from reservations.models.status import Status
from tests.backoffice.dashboard.helpers import DAY, NOW, meeting, paid, seen
from tests.backoffice.many import many
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import HOUR, make_pending_booking, make_room

pytestmark = pytest.mark.django_db


# --- Meetings -----------------------------------------------------------------------------------


def test_meetings_of_today_and_tomorrow_are_counted_by_local_day(client):
    denver, auckland = make_room(), make_room(time_zone_id="Pacific/Auckland")
    # In Auckland it is the 16th, 04:00.
    meeting(denver, dt.datetime(2027, 3, 15, 16, tzinfo=dt.UTC), checked_in_at=NOW)
    meeting(auckland, dt.datetime(2027, 3, 15, 20, tzinfo=dt.UTC), status=Status.NO_SHOW)
    meeting(denver, dt.datetime(2027, 3, 15, 13, tzinfo=dt.UTC))  # over
    # It was moved to tomorrow after the check-in, which therefore no longer counts.
    meeting(auckland, dt.datetime(2027, 3, 16, 20, tzinfo=dt.UTC), checked_in_at=NOW)
    meeting(denver, dt.datetime(2027, 3, 15, 18, tzinfo=dt.UTC), status=Status.PENDING)
    meeting(denver, dt.datetime(2027, 3, 17, 16, tzinfo=dt.UTC))
    client.force_login(AdministratorFactory())

    page = client.get("/admin/")

    found = page.context["dashboard"]["days"]
    assert [tuple(day.values()) for day in found] == [
        ("Today", 3, 1),
        ("Tomorrow", 1, 0),
    ]
    assert "Today: 3 meetings, 1 checked in" in page.text
    assert f'href="{reverse("admin:reservations_today")}"' in page.text


# --- Requests -----------------------------------------------------------------------------------


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

    page = seen(AdministratorFactory())

    assert [each["reservation"].pk for each in page["requests"]] == [
        rows[number].pk for number in (3, 1, 2, 0)
    ]
    assert page["requests"][0]["expires"] == "expires in 1\xa0hour"
    assert page["requests"][1]["waiting"] == "2\xa0days"
    assert page["requests"][1]["expires"] == "expires in 22\xa0hours"
    assert page["has_more_requests"] is False


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
    assert client.get(approve).status_code == 200
    request.refresh_from_db()
    assert request.status == Status.PENDING
    client.post(approve, {"confirmed": "1"})

    request.refresh_from_db()
    assert request.status == Status.CONFIRMED
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
    meeting(room, NOW - 3 * DAY, status=Status.COMPLETED)
    meeting(room, NOW + 3 * HOUR)
    meeting(room, NOW + DAY, total_cost=Decimal("1000.00"))  # tomorrow
    meeting(room, NOW - 28 * DAY, status=Status.COMPLETED, total_cost=Decimal("100.00"))
    meeting(room, NOW - 20 * DAY, status=Status.COMPLETED, total_cost=Decimal("1000.00"))

    figures = seen(AdministratorFactory())["figures"]

    assert (figures["month"], figures["former_month"]) == ("$150.00", "$100.00")
    assert figures["month_period"] == "Mon 2027-03-01 - Mon 2027-03-15"
    assert figures["former_period"] == "Mon 2027-02-01 - Mon 2027-02-15"
    assert (figures["change"], figures["is_up"]) == ("+50%", True)


def test_month_comparison_with_a_shorter_previous_month_takes_all_of_it():
    make_room()
    late = NOW + 15 * DAY  # 30 March

    figures = build_dashboard(AdministratorFactory(), now=late)["figures"]

    assert figures["former_period"] == "Mon 2027-02-01 - Sun 2027-02-28"
    assert figures["change"] == ""


def test_week_utilization_is_shown():
    room = make_room()
    meeting(room, NOW + 2 * HOUR, hours=5)

    figures = seen(AdministratorFactory())["figures"]

    assert figures["week_period"] == "Mon 2027-03-15 - Sun 2027-03-21"
    assert figures["week"] == "7.1%"


def test_figures_of_too_many_rooms_or_centers_show_note(monkeypatch, client):
    make_room()
    monkeypatch.setattr("reservations.reports.utilization.MAX_ROOMS", 0)
    figures = seen(AdministratorFactory())["figures"]
    assert "week" not in figures
    assert figures["note"].startswith("There are too many rooms")

    monkeypatch.setattr("reservations.desk.dashboard.figures.MAX_CENTERS", 0)
    client.force_login(AdministratorFactory())
    answer = client.get("/admin/")
    assert answer.context["dashboard"]["figures"].keys() == {"note"}
    assert "too many centers" in answer.text


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


def test_dashboard_without_role_is_empty(client):
    two_centers()
    client.force_login(UserFactory(is_staff=True))

    answer = client.get("/admin/")

    assert answer.status_code == 200
    assert answer.context["dashboard"] == {"first_steps": []}
