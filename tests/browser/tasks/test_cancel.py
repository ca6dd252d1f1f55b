"""A manager's tasks when a center cannot host, in a browser, with as few clicks as possible."""

import datetime as dt

from django.utils import timezone
from playwright.sync_api import expect

from accounts.act import Act
from accounts.models import OutboxMessage
from centers.models import Closure, MeetingRoom
from payments.models import Refund
from reservations.booking import approval
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.pricing.terms import RefundTerms
from tests.browser import accessibility, chromium
from tests.browser.day import open_day, request_for, room
from tests.browser.person import Person
from tests.browser.ways import DESKTOP, in_ways


def book(place: MeetingRoom, day: dt.date, hour: int) -> Reservation:
    request = request_for(place, day, hour)
    return approval.approve(Act(None, timezone.now()), request.pk)


def make_policy_strict(*bookings: Reservation) -> None:
    """Let the policy refund nothing."""
    Reservation.objects.filter(pk__in=[each.pk for each in bookings]).update(
        cancellation_terms=RefundTerms("", (), 0).to_json()
    )


@in_ways(DESKTOP)
def test_center_is_closed_for_a_day_with_six_clicks(desk, live_server, way):
    boardroom = room("Boardroom")
    # The demo data have other bookings at the center.
    others = Reservation.objects.filter(room__center=boardroom.center, start__gt=timezone.now())
    others.exclude(room=boardroom).update(status=Status.EXPIRED, holds_slot=False, hold_until=None)
    day = open_day(boardroom)
    bookings = [book(boardroom, day, hour) for hour in (9, 12, 15)]
    make_policy_strict(*bookings)
    page = desk("manager", way)
    person = Person(page, way)
    page.goto(f"{live_server.url}/admin/centers/closure/add/?center={boardroom.center_id}")

    fill_day(person, day)
    save = page.get_by_role("button", name="Save", exact=True)
    person.click(save)
    for booking in bookings:
        expect(page.get_by_role("link", name=f"{booking}", exact=True)).to_be_visible()
    assert not Closure.objects.filter(reason="Burst pipe").exists()
    person.click(save)
    person.click(page.get_by_label(f"Select {bookings[2]}"), key="Space")
    assert accessibility.scan(page.get_by_role("button", name="Cancel selected")) == []
    person.click(page.get_by_role("button", name="Cancel selected"))
    person.fill(page.get_by_label("Reason for this refund"), "Burst pipe")
    message = "We have to close. We are sorry."
    person.fill(page.get_by_label("Message to the customer"), message)
    person.click(page.get_by_role("button", name="Preview"))
    assert accessibility.scan(page.locator(".action-email", has_text=message)) == []
    person.click(page.get_by_role("button", name="Cancel the reservation: 2 reservations"))

    left = page.get_by_role("row", name=f"{bookings[2]}")
    expect(left).to_contain_text("Burst pipe")
    expect(page.get_by_label(f"Select {bookings[0]}")).to_have_count(0)
    assert 5 <= person.clicks <= 6
    for booking in bookings:
        booking.refresh_from_db()
    assert [each.status for each in bookings] == ["Cancelled", "Cancelled", "Confirmed"]
    assert {each.amount for each in Refund.objects.filter(payment__reservation__in=bookings)} == {
        each.total_cost for each in bookings[:2]
    }
    mails = OutboxMessage.objects.filter(kind="cancelled", text__contains="We have to close.")
    assert mails.count() == 2
    page.goto(f"{live_server.url}/admin/")
    page.get_by_role("link", name="1 booking to resolve").press("Enter")
    expect(page.get_by_label(f"Select {bookings[2]}")).to_be_visible()
    # The same page on a phone.
    page.set_viewport_size(chromium.PHONE)
    page.reload()
    assert accessibility.scan(page.get_by_role("button", name="Move selected")) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= chromium.PHONE["width"]


def fill_day(person: Person, day: dt.date) -> None:
    for field, text in (
        ("starts_at_0", f"{day}"),
        ("starts_at_1", "00:00"),
        ("ends_at_0", f"{day + dt.timedelta(days=1)}"),
        ("ends_at_1", "00:00"),
        ("reason", "Burst pipe"),
    ):
        person.fill(person.page.locator(f"#id_{field}"), text)
