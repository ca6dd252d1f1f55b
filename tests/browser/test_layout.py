"""What stays in view and in reach: long names, small windows, the menu, the first field."""

import datetime as dt

from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from reservations.demo.accounts import DEMO
from reservations.models import Reservation
from reservations.models.status import Status
from tests.browser.accessibility import scan
from tests.browser.day import room
from tests.factories_reservations import ReservationFactory

ADMIN = "admin/reservations/reservation"


def test_long_names_stay_in_their_cards_and_check_in_in_view(desk, live_server):
    start = timezone.now().replace(second=0, microsecond=0)
    Reservation.objects.filter(start__gt=start - dt.timedelta(days=2)).update(
        status=Status.CANCELLED, cancelled_at=F("created_at"), holds_slot=False, hold_until=None
    )
    user = User.objects.get(email=DEMO)
    User.objects.filter(pk=user.pk).update(last_name="B" * 255, company_name="C" * 255)
    aspen = room("Aspen")
    meeting = ReservationFactory(
        room=aspen,
        user=user,
        start=start,
        end=start + dt.timedelta(hours=1),
        status=Status.CONFIRMED,
        booked_at=start,
    )
    page = desk("desk")
    day = start.astimezone(aspen.center.zone).date()
    for width in (1440, 1024, 900, 720, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{live_server.url}/{ADMIN}/today/?date={day}")
        box = page.get_by_role("button", name=f"Check in reservation {meeting.pk}").bounding_box()
        card = page.locator(".today-center").bounding_box()
        assert box["x"] + box["width"] <= card["x"] + card["width"] <= width, width
        assert box["height"] < 60, width
        page.goto(f"{live_server.url}/{ADMIN}/{meeting.pk}/change/")
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert scan(page.locator(".reservation-head")) == []


def test_menu_of_the_desk_is_short_and_the_keyboard_starts_where_the_work_is(desk, live_server):
    page = desk("desk")
    menu = page.locator("#nav-sidebar-apps")
    rooms = menu.get_by_role("link", name="Rooms")
    assert 5 < menu.get_by_role("link").count() <= 9
    expect(rooms).to_be_hidden()
    menu.get_by_text("More").click()
    assert scan(rooms) == []
    page.goto(f"{live_server.url}/admin/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#content :focus")).to_be_attached()

    page.goto(f"{live_server.url}/{ADMIN}/add/?center={room('Aspen').center_id}")
    expect(page.locator(".draft-field--user .select2-selection")).to_be_focused()
    # The only center is selected: whoever walks in is booked there.
    page.goto(f"{live_server.url}/{ADMIN}/today/")
    expect(page.get_by_role("link", name="Walk-in")).to_be_visible()
    expect(
        desk("manager").locator("#nav-sidebar-apps").get_by_role("link", name="Rooms")
    ).to_be_visible()
