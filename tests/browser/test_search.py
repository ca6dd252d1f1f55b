"""The search in the head of every page, in a browser."""

from playwright.sync_api import expect

from tests.browser.day import room


def test_search_button_opens_search_on_lists_and_forms(desk, live_server):
    boardroom = room("Boardroom")
    page = desk("manager")
    for path in ("centers/meetingroom/", f"centers/meetingroom/{boardroom.pk}/change/"):
        page.goto(f"{live_server.url}/admin/{path}")
        page.get_by_role("button", name="Search").first.click()
        page.locator("#search-input-command").press_sequentially("boardr")
        expect(page.locator("#command-results-list")).to_contain_text(boardroom.full_name)
