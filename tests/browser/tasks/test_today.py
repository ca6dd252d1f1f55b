"""Task 7: the morning at a center, in a browser: who comes, what to prepare, print, check in."""

import datetime as dt

import pytest
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from centers.models import Service
from reservations.demo.accounts import DEMO
from reservations.models import ChosenService, Reservation
from reservations.models.status import Status
from tests.browser.accessibility import scan
from tests.browser.day import room
from tests.browser.person import Person
from tests.browser.ways import DESKTOP, PHONE, in_ways
from tests.factories_reservations import ReservationFactory

MINUTE = dt.timedelta(minutes=1)
COUNT_PRINTS = "window.prints = 0; window.print = () => { window.prints += 1; };"


@pytest.fixture
def meetings(demo) -> list:
    """A meeting that has begun, and one that is over, in rooms that are free of demo data."""
    now = timezone.now().replace(second=0, microsecond=0)
    Reservation.objects.filter(start__gt=now - dt.timedelta(days=2)).update(
        status=Status.CANCELLED, cancelled_at=F("created_at"), holds_slot=False, hold_until=None
    )
    # At the same time, and so on the same day.
    start = now - 3 * MINUTE
    return [
        ReservationFactory(
            room=room(name),
            user=User.objects.get(email=DEMO),
            start=start,
            end=start + minutes * MINUTE,
            status=status,
            booked_at=now - dt.timedelta(days=1),
        )
        for name, minutes, status in (
            ("Boardroom", 1000, Status.CONFIRMED),
            ("Aspen", 1, Status.COMPLETED),
        )
    ]


@in_ways(DESKTOP)
def test_morning_takes_one_click_each_to_print_check_in_and_mark_no_show(desk, meetings, way):
    late, over = meetings
    service = Service.objects.filter(center=late.room.center).first()
    ChosenService.objects.create(reservation=late, service=service, quantity=8)
    page = desk("desk", way)
    page.add_init_script(COUNT_PRINTS)
    person = Person(page, way)
    # The day on which both began, even if this test runs at midnight.
    day = late.start.astimezone(late.room.center.zone).date()
    page.goto(f"{page.url}reservations/reservation/today/?date={day}")

    expect(page.locator(".today-preparations")).to_contain_text(f"{service.name}: 8")
    row = page.locator(f"#reservation-{late.pk}")
    expect(row.locator(".today-phone")).to_have_attribute("href", "tel:+13035550142")

    person.click(page.get_by_role("button", name="Print"))
    page.wait_for_function("window.prints === 1")
    assert person.clicks == 1

    check_in = page.get_by_role("button", name=f"Check in reservation {late.pk}", exact=True)
    person.click(check_in)
    expect(row).to_contain_text("Checked in")
    assert person.clicks == 2
    person.click(page.get_by_role("button", name=f"No-show reservation {over.pk}"))
    gone = page.locator(f"#reservation-{over.pk}")
    expect(gone.locator(".backoffice-status")).to_have_text("No-show")
    assert person.clicks == 3
    found = dict(Reservation.objects.values_list("pk", "status"))
    assert (found[late.pk], found[over.pk]) == (Status.CONFIRMED, Status.NO_SHOW)

    # Both are undone by keyboard, without confirmation.
    for each, name in ((late, "Undo check-in"), (over, "Undo no-show")):
        undo = page.get_by_role("button", name=f"{name} reservation {each.pk}")
        undo.press("Enter")
        expect(undo).to_have_count(0)
        # The next page is there, not only the former one gone.
        expect(page.locator(f"#reservation-{each.pk}")).to_be_visible()
    late.refresh_from_db()
    assert late.checked_in_at is None
    # The demo data of test_accessibility.py have no meetings of today.
    assert scan(check_in) == []

    page.set_viewport_size(PHONE.viewport)
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    check_in.click()
    expect(row).to_contain_text("Checked in")
