"""Forms in a browser: dates and times, and what follows what is entered."""

import datetime as dt

from django.utils import timezone
from playwright.sync_api import expect

from accounts.act import Act
from centers.models import Closure, Neighborhood
from reservations.booking import cancellation
from reservations.demo.accounts import PASSWORD
from reservations.models import Reservation
from tests.browser.accessibility import scan
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


def test_form_of_a_lapsed_session_is_sent_after_signing_in(desk, live_server):
    aspen = room("Aspen")
    day = open_day(aspen)
    # Another page than that of which every refusal is a complaint.
    page = desk("desk").context.new_page()
    new = f"{live_server.url}/admin/reservations/reservation/add/"
    page.goto(f"{new}?room={aspen.pk}&start={day}T13:00&end={day}T15:00")
    page.locator("summary", has_text="New customer").click()
    page.fill("#id_email", "ada@example.com")
    page.context.clear_cookies(name="sessionid")

    page.fill("#id_first_name", "Ada")
    page.fill("#id_last_name", "King")
    panel = page.locator("#draft-preview")
    expect(panel).to_have_text("You are signed out. Send the form: what you entered is kept.")
    page.get_by_role("button", name="Save draft and hold room").click()
    expect(page.get_by_text("You were signed out in the meantime.")).to_be_visible()
    page.fill("#id_username", "desk@roombook.example")
    page.fill("#id_password", PASSWORD)
    page.click("#login-form button[type=submit]")
    again = page.get_by_role("button", name="Send it again")
    assert scan(again, ["light"]) == []
    again.click()
    expect(page.get_by_text("is held until")).to_be_visible()
    assert Reservation.objects.latest("pk").user.email == "ada@example.com"


def test_double_click_does_it_once_and_what_a_colleague_has_done_is_said(desk, live_server):
    boardroom = room("Boardroom")
    booking = request_for(boardroom, open_day(boardroom), 9)
    page = desk("desk")
    url = f"{live_server.url}/admin/reservations/reservation/{booking.pk}/step"
    page.goto(f"{url}/approve/")
    sent = []
    page.on("request", lambda each: sent.append(each.url) if each.method == "POST" else None)
    button = page.locator("#preview").get_by_role("button", name="Approve")
    button.evaluate("each => { each.click(); setTimeout(() => each.click(), 20) }")
    expect(page.locator(".reservation-head")).to_contain_text("Confirmed")
    expect(page.get_by_text(f"Reservation {booking.pk}: Approved.")).to_be_visible()
    page.wait_for_load_state()
    expect(page.get_by_text("Nothing was")).to_have_count(0)
    assert len(sent) == 1

    page.goto(f"{url}/cancel/")
    cancellation.cancel(Act(booking.user, timezone.now(), is_staff=True), booking.pk)
    page.fill("textarea[name=message]", "Sorry")
    again = page.get_by_text("It has changed meanwhile. Open the page again.")
    expect(again).to_be_visible()


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

    # A day and a time as people type them.
    page.fill("#id_start_1", "1pm")
    page.locator("#id_start_1").blur()
    expect(page.locator("#id_start_1")).to_have_value("13:00")
    expect(page.locator("#id_end_1")).to_have_value("15:00")
    page.fill("#id_start_1", "1330")
    page.fill("#id_start_0", f"{day + dt.timedelta(days=7):%m/%d/%Y}")
    page.locator("#id_start_0").blur()
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
        # The preview is of this room, not of the one before.
        expect(page.locator(".draft-lines")).to_contain_text(each.name)
        expect(page.locator("#draft-preview")).to_contain_text("✓ Available")
    proposed = read()
    assert proposed[0] >= f"{timezone.now() + dt.timedelta(days=8):%Y-%m-%d}"

    # A time that was entered stays.
    page.fill("#id_start_1", "14:00")
    entered = read()
    page.select_option("#id_room", str(aspen.pk))
    expect(page.locator(".draft-lines")).to_contain_text(aspen.name)
    assert read() == entered != proposed


def test_leaving_a_center_that_was_edited_without_typing_asks_first(desk, live_server):
    Neighborhood.objects.create(name="Baker", city="Denver", state="CO")
    page = desk("staff")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    tab = page.locator("#content-main, #tabs-wrapper").get_by_role("link", name="Rates", exact=True)

    def choose_neighborhood():
        page.locator(".field-neighborhood .select2-selection").click()
        page.locator(".select2-search__field").last.fill("Baker")
        page.get_by_role("option", name="Baker").click()

    def paste_coordinates():
        page.locator("#id_latitude").evaluate(
            """field => {
                const data = new DataTransfer();
                data.setData("text", "39.7, -104.9");
                field.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data}));
            }"""
        )

    def choose_day():
        page.get_by_role("link", name="Closures", exact=True).last.click()
        page.get_by_role("link", name="Add another Closure").click()
        page.locator("#id_closures-0-starts_at_0 + input").evaluate(
            "native => { native.value = '2030-01-02'; native.dispatchEvent(new Event('change')) }"
        )

    for number, edit in enumerate((choose_neighborhood, paste_coordinates, choose_day), 1):
        page.goto(f"{live_server.url}/admin/centers/center/{room('Aspen').center_id}/change/")
        edit()
        tab.click()
        page.wait_for_url("**/change/?tab=rate")
        assert asked == ["beforeunload"] * number


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
