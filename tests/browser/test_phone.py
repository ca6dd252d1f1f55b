"""The back office on a phone: nothing has to be scrolled sideways."""

from playwright.sync_api import Locator, expect

from tests.browser import chromium
from tests.browser.day import open_day, request_for, room
from tests.browser.person import wait_for_scripts
from tests.browser.ways import PHONE

RESERVATIONS = "/admin/reservations/reservation/"


def is_on_screen(link: Locator) -> bool:
    wait_for_scripts(link)
    link.scroll_into_view_if_needed()
    box = link.bounding_box()
    width = link.evaluate("() => window.innerWidth")
    return box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_requests_are_answered_without_scrolling_sideways(desk, live_server):
    boardroom = room("Boardroom")
    request = request_for(boardroom, open_day(boardroom), 9)
    page = desk("manager", PHONE)

    for width in (390, 820, 1280, 1440):
        page.set_viewport_size({**chromium.PHONE, "width": width})
        page.goto(f"{live_server.url}/admin/")
        for word in ("Approve", "Decline"):
            link = page.get_by_role("link", name=f"{word} reservation {request.pk}")
            # Scrolling to it would move the content of a box that is wider than the screen.
            assert link.locator(
                "xpath=ancestor::*[contains(@class, 'backoffice-scroll')]"
            ).evaluate("box => box.scrollWidth <= box.clientWidth")
            assert is_on_screen(link)

    page.set_viewport_size(chromium.PHONE)
    # In the list, the reservation is a card.
    page.goto(f"{live_server.url}{RESERVATIONS}?q={request.pk}")
    for text in ("Awaiting approval", "Boardroom", f"${request.total_cost}"):
        cell = page.locator("#result_list").get_by_text(text, exact=True)
        expect(cell).to_be_visible()
        assert is_on_screen(cell)
    too_wide = []
    for path in (
        *(RESERVATIONS, f"{RESERVATIONS}add/?room=1", "/admin/reservations/promocode/"),
        *(f"{RESERVATIONS}{request.pk}/step/{name}/" for name in ("move", "cancel", "approve")),
    ):
        page.goto(live_server.url + path)
        if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            too_wide.append(path)
    assert too_wide == []
    assert is_on_screen(page.locator("#preview").get_by_role("button", name="Approve"))
