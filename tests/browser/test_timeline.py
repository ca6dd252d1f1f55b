"""The timeline and a new reservation in a browser: by keyboard and on a tablet."""

import re

from tests.browser.ways import Way

TIMELINE = "/admin/reservations/reservation/timeline/"


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
