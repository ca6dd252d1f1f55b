"""The day's round at the front desk by keyboard alone: no step needs a mouse."""

import re

from playwright.sync_api import expect

from reservations.demo.accounts import PASSWORD
from reservations.models import Reservation
from reservations.models.status import Status
from tests.browser.accessibility import scan
from tests.browser.chromium import open_page
from tests.browser.day import open_day, request_for, room
from tests.browser.person import go_to, go_to_slot, press, wait_for_scripts


def test_day_at_the_desk_needs_the_keyboard_only(demo, browser, live_server):
    boardroom, aspen = room("Boardroom"), room("Aspen")
    day = open_day(boardroom)
    first, second = request_for(boardroom, day, 9), request_for(boardroom, day, 13)
    page = open_page(browser)

    # Sign in.
    page.goto(f"{live_server.url}/admin/login/")
    go_to(page, page.locator("#id_username"))
    page.keyboard.type("desk@roombook.example")
    go_to(page, page.locator("#id_password"))
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{live_server.url}/admin/")

    # Answer a request. One stands on the next one then.
    press(page, page.get_by_role("link", name=f"Decline reservation {second.pk}"))
    press(page, page.locator("#preview").get_by_role("button", name="Decline", exact=True))
    expect(page.locator(".reservation-head")).to_contain_text("Awaiting approval")
    press(page, page.get_by_role("link", name="Dashboard"))
    page.wait_for_url(f"{live_server.url}/admin/")

    # Book a room on the timeline.
    press(page, page.get_by_role("link", name="Timeline"))
    go_to(page, page.locator("#timeline-date"))
    page.keyboard.press("Control+a")
    page.keyboard.type(f"{open_day(aspen)}")
    press(page, page.get_by_role("button", name="Show"))
    page.wait_for_url("**date=**")
    go_to_slot(
        page, "Aspen", page.get_by_role("link", name=re.compile(r"New draft: Aspen, .*, 10:00"))
    )
    page.keyboard.press("Enter")
    page.wait_for_url("**/reservation/add/**")
    go_to(page, page.locator(".draft-field--user .select2-selection"))
    page.keyboard.press("Enter")
    expect(page.locator(".select2-search__field")).to_be_focused()
    page.keyboard.type("demo@roombook.example")
    # While the address is typed, the list shows more customers.
    options = page.locator(".select2-results__option")
    expect(options).to_have_text([re.compile(r"demo@roombook\.example")])
    page.keyboard.press("Enter")
    expect(page.locator("#draft-preview")).to_contain_text("Price for")
    press(page, page.get_by_role("button", name="Save draft and hold room"))
    expect(page.locator(".reservation-head")).to_contain_text("Draft")
    draft = Reservation.objects.latest("pk")
    assert (draft.room, draft.status, draft.user.email) == (
        aspen,
        Status.NEW,
        "demo@roombook.example",
    )

    # Find the other request, and cancel it.
    wait_for_scripts(page.locator("textarea"))
    page.locator("textarea").first.focus()
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("nothing like it")
    expect(page.locator("#command-results-list")).to_contain_text("Nothing found.")
    page.keyboard.press("Control+a")
    page.keyboard.type(str(first.pk))
    expect(page.locator("#command-results-list")).to_contain_text(f"Reservation {first.pk}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/reservation/{first.pk}/change/")
    press(page, page.get_by_role("link", name="Cancel"))
    press(page, page.locator("#preview").get_by_role("button", name="Cancel the reservation"))
    expect(page.locator(".reservation-head")).to_contain_text("Cancelled")

    # Sign out.
    press(page, page.get_by_role("button", name="desk@roombook.example"))
    go_to(page, page.get_by_role("button", name="Log out"), key="Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/logout/")
    page.close()

    statuses = [Reservation.objects.get(pk=each.pk).status for each in (first, second)]
    assert statuses == [Status.CANCELLED, Status.DECLINED]


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

    page.goto(
        f"{live_server.url}/admin/reservations/reservation/add/?center={room('Aspen').center_id}"
    )
    expect(page.locator(".draft-field--user .select2-selection")).to_be_focused()
    # The only center is selected: whoever walks in is booked there.
    page.goto(f"{live_server.url}/admin/reservations/reservation/today/")
    expect(page.get_by_role("link", name="Walk-in")).to_be_visible()
    expect(
        desk("manager").locator("#nav-sidebar-apps").get_by_role("link", name="Rooms")
    ).to_be_visible()
