"""Task 1: a walk-in, from a free slot on the timeline to a paid and confirmed booking."""

import re

import pytest
from playwright.sync_api import expect

from reservations.models import Reservation
from tests.browser import chromium
from tests.browser.clicks import Clicks
from tests.browser.day import open_day, room

MAX_CLICKS = 5


@pytest.mark.parametrize("size", [chromium.DESKTOP, chromium.PHONE], ids=["desktop", "phone"])
def test_walk_in_pays_at_the_terminal_and_is_confirmed(desk, live_server, size):
    page = desk("desk", size=size)
    day = open_day(room("Aspen"))
    page.goto(f"{live_server.url}/admin/reservations/reservation/timeline/?date={day}")
    clicks = Clicks(page)
    page.reload()

    page.get_by_role("region").get_by_role(
        "link", name=re.compile(r"Aspen, .*, 10:00")
    ).first.click()
    page.locator("summary", has_text="New customer").click()
    page.fill("input[name=email]", "walk-in@example.com")
    page.fill("input[name=first_name]", "Grace")
    page.fill("input[name=last_name]", "Hopper")
    expect(page.locator("#draft-preview tfoot")).to_contain_text("$")
    page.get_by_role("button", name="Save draft and hold room").click()
    page.get_by_role("link", name="Take payment").click()
    page.get_by_label("Reference").fill("Slip 0042")
    preview = page.locator("#preview")
    expect(preview).to_contain_text("Confirmed")
    preview.get_by_role("button", name="Take payment and book").click()

    expect(page.locator(".reservation-head")).to_contain_text("Confirmed")
    expect(page.locator("body")).to_contain_text("paid at the card terminal")
    booked = Reservation.objects.latest("pk")
    payment = booked.payments.get()
    assert (payment.gateway, payment.reference) == ("terminal", "Slip 0042")
    assert (payment.amount, payment.taken_by.email) == (booked.total_cost, "desk@roombook.example")
    assert clicks.count <= MAX_CLICKS
