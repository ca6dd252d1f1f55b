"""The form of a room in a browser: its rates follow the selected center."""

from playwright.sync_api import expect

from tests.browser.day import room


def test_rates_of_a_new_room_follow_the_selected_center(desk, live_server):
    boardroom = room("Boardroom")
    page = desk("staff")
    page.goto(f"{live_server.url}/admin/centers/meetingroom/add/")
    rates = page.locator("#id_rate option")
    expect(rates).to_have_count(1)

    page.click(".field-center .select2-selection")
    page.keyboard.type(boardroom.center.name)
    page.locator(".select2-results__option", has_text=boardroom.center.name).first.click()

    # Those of services are not offered.
    offered = boardroom.center.rates.exclude(services__isnull=False, rooms__isnull=True)
    expect(rates).to_have_count(1 + offered.distinct().count())
    expect(page.locator("#id_rate")).to_contain_text(str(boardroom.rate))
