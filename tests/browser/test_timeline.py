"""The timeline and a new reservation in a browser: by keyboard and on a tablet."""

import datetime as dt
import re

from playwright.sync_api import expect

from tests.browser.day import open_day, room
from tests.browser.ways import Way

TIMELINE = "/admin/reservations/reservation/timeline/"


def test_keyboard_from_free_slot_to_held_room(desk, live_server):
    page = desk("desk")
    day = open_day(room("Aspen"))
    page.goto(f"{live_server.url}{TIMELINE}?date={day - dt.timedelta(days=1)}")
    page.click("[title='Next day']")
    page.wait_for_url(f"**date={day}**")
    page.locator(".timeline-free-slot").first.focus()
    before = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == before
    page.keyboard.press("Enter")
    page.wait_for_url("**/reservation/add/**")
    preview = page.locator("#draft-preview")
    expect(preview).to_contain_text("✓ Available")
    expect(preview).to_contain_text("List price")
    page.click(".draft-field--user .select2-selection")
    page.keyboard.type("demo@roombook.example")
    # While the address is typed, the list shows more customers.
    options = page.locator(".select2-results__option")
    expect(options).to_have_text([re.compile(r"demo@roombook\.example")])
    page.keyboard.press("Enter")
    expect(preview).to_contain_text("Price for")
    page.click("text=Save draft and hold room")
    page.wait_for_url("**/change/")
    expect(page.locator("body")).to_contain_text("is held until")


def test_tablet_timeline_keeps_room_names_visible(desk, live_server):
    page = desk("manager", Way("tablet"))
    page.goto(f"{live_server.url}{TIMELINE}?hours=all")
    timeline = page.locator(".timeline")
    timeline.evaluate("timeline => { timeline.scrollLeft = timeline.scrollWidth }")
    name = page.locator(".timeline-row .timeline-name").first
    frame = timeline.bounding_box()
    assert abs(name.bounding_box()["x"] - frame["x"]) < 2
    # Nothing but the timeline itself is wider than the screen.
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    sizes = page.locator(".timeline-free-slot").evaluate_all(
        "links => links.map(link => link.getBoundingClientRect().height)"
    )
    assert all(height >= 44 for height in sizes)
    # The address of the page names no center and no day; the script asks for those it shows.
    with page.expect_request(re.compile(r"center=\d+&date=\d")):
        page.evaluate("document.dispatchEvent(new CustomEvent('timeline:refresh'))")
