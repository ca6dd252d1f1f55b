"""The page "Today": the meetings of a day, and what staff do about them (B18.1)."""

import datetime as dt
from decimal import Decimal
from itertools import groupby
from operator import itemgetter

import pytest
from django.urls import reverse
from django.utils import timezone

from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import PaymentState
from reservations.display import format_hours
from reservations.models import ChosenService
from reservations.models.status import Status
from tests import factories_centers as make
from tests.backoffice.many import many
from tests.backoffice.meetings import DAY, NOW, meeting, paid
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, reservation_url
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import DEFAULT_TERMS, HOUR, MINUTE, make_draft, make_room
from tests.reservations.rescheduling_helpers import make_room_in_same_center

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PAGE = reverse("admin:reservations_today")


@pytest.fixture
def desk(client, staff, room):
    client.force_login(staff("Desk", room.center))
    return client


def listed(page):
    """The reservations by the heading of their group, of all centers in turn."""
    return [
        (urgency.label, [each["reservation"].pk for each in group])
        for center in page.context["meetings"]["centers"]
        for urgency, group in groupby(center["arrivals"], itemgetter("urgency"))
    ]


def arrivals(page):
    return [each for center in page.context["meetings"]["centers"] for each in center["arrivals"]]


def test_meetings_are_listed_by_urgency_then_start(desk, room):
    def add(hours, **fields):
        return meeting(room, NOW + hours * HOUR, **fields).pk

    done = add(-3, status=Status.COMPLETED, checked_in_at=NOW - 3 * HOUR)
    unknown = add(-2, status=Status.COMPLETED)
    missed = add(-1, status=Status.NO_SHOW)
    late = add(0, turnaround_minutes=0)
    second = add(2, status=Status.PENDING)
    first = add(1, status=Status.NEW, holds_slot=True, hold_until=NOW + HOUR)
    here = meeting(make_room_in_same_center(room), NOW, checked_in_at=NOW - HOUR).pk
    add(3, status=Status.CANCELLED)
    add(4, status=Status.NEW, hold_until=NOW)

    assert listed(desk.get(PAGE)) == [
        ("Has begun, not checked in", [late]),
        ("Expected", [first, second]),
        ("Over, not checked in", [unknown]),
        ("Here", [here]),
        ("Done", [done, missed]),
    ]


def test_day_is_the_local_day_of_each_center(client):
    denver, auckland = make_room(), make_room(time_zone_id="Pacific/Auckland")
    # In Auckland it is the 16th, 04:00.
    meeting(denver, dt.datetime(2027, 3, 16, 5, 30, tzinfo=dt.UTC))
    meeting(auckland, dt.datetime(2027, 3, 15, 20, tzinfo=dt.UTC))
    meeting(denver, dt.datetime(2027, 3, 14, 16, tzinfo=dt.UTC))
    meeting(auckland, dt.datetime(2027, 3, 16, 20, tzinfo=dt.UTC))
    client.force_login(AdministratorFactory())

    page = client.get(PAGE)

    found = {
        each["center"].pk: (each["day"], each["zone_name"])
        for each in page.context["meetings"]["centers"]
    }
    assert found == {
        denver.center_id: ("Mon 2027-03-15", "Mountain Time (MDT)"),
        auckland.center_id: ("Tue 2027-03-16", "New Zealand Time (NZDT)"),
    }
    assert [format_hours(each["reservation"]) for each in arrivals(page)] == [
        "09:00 - 10:00",
        "23:30 - Tue 2027-03-16 00:30",
    ]
    tomorrow = client.get(PAGE, {"center": auckland.center_id, "date": "2027-03-17"})
    assert len(arrivals(tomorrow)) == 1


def test_chosen_center_is_remembered_until_all_are_chosen_or_its_role_ends(client, staff):
    here, there = make_room(), make_room()
    for each in (here, there):
        meeting(each, NOW + HOUR)
    user = staff("Desk", here.center, there.center)
    client.force_login(user)

    client.get(PAGE, {"center": there.center_id})
    assert [each["reservation"].room for each in arrivals(client.get(PAGE))] == [there]
    client.get(PAGE, {"center": ""})
    assert len(arrivals(client.get(PAGE))) == 2
    client.get(PAGE, {"center": there.center_id})
    user.center_roles.filter(center=there.center).delete()
    page = client.get(PAGE)
    assert page.context["center"] == here.center
    assert "Select a valid choice" not in page.text


def test_unknown_center_shows_an_error_and_nothing_else(desk, room):
    _ours, theirs = (meeting(each, NOW + HOUR) for each in (room, make_room()))
    for center in ("x", "9" * 20, theirs.room.center_id):
        page = desk.get(PAGE, {"center": center})
        assert "Select a valid choice." in words(page), center
        assert page.context["meetings"] is None, center


def test_meeting_shows_phone_services_and_what_is_not_paid(desk, room):
    ada = UserFactory(first_name="Ada", phone_number="+1 (720) 555-0111", company_name="Engines")
    booking = meeting(room, NOW + HOUR, user=ada, number_of_attendees=6)
    paid(booking)
    coffee = make.ServiceFactory(center=room.center, name="Coffee")
    beamer = make.ServiceFactory(center=room.center, name="Beamer")
    ChosenService.objects.create(reservation=booking, service=coffee, quantity=8)
    ChosenService.objects.create(reservation=booking, service=beamer, duration_hours=Decimal(2))
    draft = meeting(room, NOW + 3 * HOUR, status=Status.NEW, holds_slot=True, hold_until=NOW + HOUR)
    request = meeting(room, NOW + 5 * HOUR, status=Status.PENDING)
    paid(request, PaymentState.AUTHORIZED, authorized_until=NOW + DAY)

    page = desk.get(PAGE)

    unpaid = {each["reservation"]: each["unpaid"] for each in arrivals(page)}
    assert unpaid == {booking: 75, draft: 75, request: None}
    assert "Coffee: 8 Beamer: 2 h" in words(page)
    [center] = page.context["meetings"]["centers"]
    assert center["preparations"] == [booking]
    assert 'href="tel:+1(720)555-0111"' in page.text
    post(booking.pk, EventKind.PAID, now=NOW)
    assert arrivals(desk.get(PAGE))[0]["unpaid"] is None


def test_customer_with_only_a_draft_has_no_phone_or_link(desk, room):
    """Anybody can make a draft for an account whose address they know."""
    user = UserFactory(phone_number="+1 720 555 0111")
    draft = make_draft(user, room, now=NOW, start=NOW + HOUR)

    page = desk.get(PAGE)

    assert [each["reservation"] for each in arrivals(page)] == [draft]
    assert "tel:" not in page.text
    assert reverse("admin:accounts_user_change", args=[user.pk]) not in page.text


def test_running_meeting_and_one_that_has_just_ended_lead_to_their_extension(desk, room):
    meeting(room, NOW - 4 * HOUR)  # long over
    over = meeting(room, NOW - 1.25 * HOUR, status=Status.COMPLETED)
    running = meeting(make_room_in_same_center(room), NOW - HOUR, hours=2)
    meeting(room, NOW + 3 * HOUR)

    page = desk.get(PAGE)
    extended = [each["reservation"] for each in arrivals(page) if each["can_extend"]]
    assert sorted(each.pk for each in extended) == [over.pk, running.pk]
    for each in extended:
        assert action_url(each, "extend") in page.text
        summary = desk.get(reservation_url(each), headers={"X-Requested-With": "fetch"})
        assert "Extend" in words(summary)
    # What was used is proposed: until the end of the time slot that is running.
    proposed = desk.get(action_url(over, "extend")).context["form"].initial["end"]
    assert timezone.make_aware(proposed, over.room.center.zone) - NOW < 15 * MINUTE


def act(client, reservation, name, page=PAGE):
    return client.post(
        action_url(reservation, name), {"confirmed": "yes", "next": f"{page}#reservation-1"}
    )


def test_check_in_and_no_show_return_to_the_page_and_can_be_undone(desk, room):
    late = meeting(room, NOW - HOUR, hours=2)
    over = meeting(room, NOW - 3 * HOUR, status=Status.COMPLETED)

    def offered():
        return {
            each["reservation"].pk: [action.name for action in each["actions"]]
            for each in arrivals(desk.get(PAGE))
        }

    before = offered()
    assert before == {late.pk: ["check-in"], over.pk: ["check-in", "no-show"]}
    done = act(desk, late, "check-in")
    assert done.url == f"{PAGE}#reservation-1"
    assert messages_of(done) == [("success", f"{late}: Checked in.")]
    assert act(desk, over, "no-show").status_code == 302
    assert offered() == {late.pk: ["undo-check-in"], over.pk: ["undo-no-show"]}
    assert "Checked in 09:00" in words(desk.get(PAGE))
    # It leads to no page of another host.
    for page in ("https://evil.example/", "//evil.example", "javascript:alert()"):
        twice = act(desk, late, "check-in", page)
        assert "Nothing was changed." in messages_of(twice)[-1][1]
        assert twice.url == reservation_url(late)
    act(desk, late, "undo-check-in")
    act(desk, over, "undo-no-show")
    assert offered() == before


def test_no_show_that_gives_something_back_is_named_and_has_no_button(desk, room):
    terms = {**DEFAULT_TERMS, "no_show_percent": 80}
    meeting(room, NOW - 3 * HOUR, status=Status.COMPLETED, cancellation_terms=terms)
    page = desk.get(PAGE)
    assert "A no-show costs 80%" in words(page)
    assert [action.name for action in arrivals(page)[0]["actions"]] == ["check-in"]


def test_more_meetings_than_are_listed_ask_for_a_center(client, staff, room, monkeypatch):
    monkeypatch.setattr("reservations.desk.today.MAX_ARRIVALS", 3)
    many(room, UserFactory(), 4, start=NOW)
    client.force_login(staff("Desk"))

    page = client.get(PAGE)

    assert len(arrivals(page)) == 3
    assert "Choose a center to see all of its meetings." in words(page)
