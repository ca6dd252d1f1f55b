"""Date and time fields in a browser: one format, whatever the browser's language."""

import datetime as dt

from django.utils import timezone
from playwright.sync_api import expect

from centers.models import Closure
from tests.browser.day import open_day, request_for, room


def test_date_field_shows_iso_date_and_calendar_fills_it(desk, live_server):
    aspen = room("Aspen")
    day = open_day(aspen)
    page = desk("desk")
    page.goto(
        f"{live_server.url}/admin/reservations/reservation/add/"
        f"?room={aspen.pk}&start={day}T13:00&end={day}T15:00"
    )
    preview = page.locator("#draft-preview")
    expect(preview).to_contain_text("✓ Available")

    # Text reads the same in every language of a browser, unlike the browser's own date field.
    expect(page.get_by_role("textbox", name="Start", exact=True)).to_have_value(f"{day}")
    expect(page.locator("input[name=start_1]")).to_have_value("13:00")
    expect(page.get_by_role("button", name="Open the calendar")).to_have_count(2)

    page.locator("input[name=end_0] + input").evaluate(
        "native => { native.value = '2020-01-02'; native.dispatchEvent(new Event('change')) }"
    )
    expect(page.locator("input[name=end_0]")).to_have_value("2020-01-02")
    expect(preview).to_contain_text("The end must be after the start.")


def test_move_with_another_start_keeps_its_duration(desk, live_server):
    boardroom = room("Boardroom")
    day = open_day(boardroom)
    booking = request_for(boardroom, day, 9)
    page = desk("desk")
    page.goto(f"{live_server.url}/admin/reservations/reservation/{booking.pk}/step/move/")
    expect(page.locator("#id_end_1")).to_have_value("11:00")

    page.fill("#id_start_1", "13:30")
    expect(page.locator("#id_end_1")).to_have_value("15:30")
    expect(page.locator("#preview")).to_contain_text(f"{day} 13:30 - 15:30")

    page.fill("#id_start_0", f"{day + dt.timedelta(days=7)}")
    expect(page.locator("#id_end_0")).to_have_value(f"{day + dt.timedelta(days=7)}")

    # A change of the end changes the duration.
    page.fill("#id_end_1", "16:00")
    page.fill("#id_start_1", "23:30")
    expect(page.locator("#id_end_0")).to_have_value(f"{day + dt.timedelta(days=8)}")
    expect(page.locator("#id_end_1")).to_have_value("02:00")


def test_proposed_time_of_new_reservation_follows_the_room(desk, live_server):
    aspen, boardroom = room("Aspen"), room("Boardroom")
    Closure.objects.create(
        center=boardroom.center,
        room=boardroom,
        starts_at=timezone.now() - dt.timedelta(days=1),
        ends_at=timezone.now() + dt.timedelta(days=9),
    )
    page = desk("desk")
    page.goto(f"{live_server.url}/admin/reservations/reservation/add/?center={aspen.center_id}")
    names = ("start_0", "start_1", "end_0", "end_1")

    def read():
        return [page.locator(f"input[name={name}]").input_value() for name in names]

    for each in (boardroom, aspen, boardroom):
        page.select_option("#id_room", str(each.pk))
        expect(page.locator("#draft-preview")).to_contain_text("✓ Available")
    proposed = read()
    assert proposed[0] >= f"{timezone.now() + dt.timedelta(days=8):%Y-%m-%d}"

    # A time that was entered stays.
    page.fill("#id_start_1", "14:00")
    entered = read()
    page.select_option("#id_room", str(aspen.pk))
    assert read() == entered != proposed
