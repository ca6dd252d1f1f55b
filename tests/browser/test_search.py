"""The search in the head of every page, in a browser."""

from playwright.sync_api import expect

from tests.browser.day import open_day, request_for, room


def test_search_by_keyboard_opens_reservation(desk):
    boardroom = room("Boardroom")
    waiting = request_for(boardroom, open_day(boardroom), 9)
    page = desk("desk")

    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type(str(waiting.pk))
    results = page.locator("#command-results-list")
    expect(results).to_contain_text(f"Reservation {waiting.pk}, ")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/reservation/{waiting.pk}/change/")


def test_search_button_opens_search_on_lists_and_forms(desk, live_server):
    boardroom = room("Boardroom")
    page = desk("manager")
    for path in ("centers/meetingroom/", f"centers/meetingroom/{boardroom.pk}/change/"):
        page.goto(f"{live_server.url}/admin/{path}")
        page.get_by_role("button", name="Search").first.click()
        page.locator("#search-input-command").press_sequentially("boardr")
        expect(page.locator("#command-results-list")).to_contain_text(boardroom.full_name)
