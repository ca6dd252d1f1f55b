"""Task: move a booking by dragging it to another room or time, or by keyboard."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from accounts.act import Act
from accounts.models import User
from centers.span import Span
from reservations import availability
from reservations.booking import amendments, approval
from reservations.booking.amendments import ChangeRequest
from reservations.demo.accounts import STAFF
from reservations.models import Reservation
from tests.browser import accessibility
from tests.browser.day import open_day, request_for, room
from tests.browser.person import Person, go_to
from tests.browser.ways import DESKTOP, PHONE, Way, in_ways

TIMELINE = "/admin/reservations/reservation/timeline/"
HOUR = dt.timedelta(hours=1)
# An object around the promise, which would be waited for otherwise.
WAIT_FOR_REFRESH = """() => ({promise: new Promise(resolve =>
  document.addEventListener("timeline:refreshed", resolve, {once: true}))})"""


def get_bar(page: Page, reservation: Reservation) -> Locator:
    return page.locator(f".timeline-booking[href$='/reservation/{reservation.pk}/change/']")


def get_track(page: Page, name: str) -> Locator:
    return page.locator(f".timeline-row[aria-label='{name}'] .timeline-track")


def get_x(track: Locator, hour: float) -> float:
    """Where a local hour is on the screen."""
    box, first = track.bounding_box(), track.get_attribute("data-clock")
    assert box is not None
    assert first is not None
    begins = int(first.split("T")[1][:2])
    hours = int(track.get_attribute("data-minutes") or 0) / 60
    return box["x"] + box["width"] * (hour - begins) / hours


def drag(page: Page, start: tuple[str, float], end: tuple[str, float]) -> None:
    """Drag a booking from one room and local hour to another."""
    with expect_refresh(page):
        select(page, start, end)


def select(page: Page, start: tuple[str, float], end: tuple[str, float]) -> None:
    places = []
    for name, hour in (start, end):
        track = get_track(page, name)
        box = track.bounding_box()
        assert box is not None
        places.append((get_x(track, hour), box["y"] + box["height"] / 2))
    move_mouse(page, *places)


@contextmanager
def expect_refresh(page: Page) -> Iterator[None]:
    """Wait at the end for the rows that the page loads after a drop, whatever it shows before."""
    refresh = page.evaluate_handle(WAIT_FOR_REFRESH)
    yield
    refresh.evaluate("refresh => refresh.promise")


def move_mouse(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()


def drag_to_day(page: Page, reservation: Reservation, days: dt.timedelta) -> None:
    """Drag a bar in the week of a center to the same time on another day."""
    box = get_bar(page, reservation).bounding_box()
    track = get_track(page, reservation.room.name).first.bounding_box()
    assert box is not None
    assert track is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    with expect_refresh(page):
        move_mouse(page, (x, y), (x + days.days * track["width"], y))


def find_other_day(reservation: Reservation) -> tuple[dt.date, dt.date]:
    """The day of a reservation, and another of that week on which its room is available then."""
    day = reservation.start.astimezone(reservation.room.center.zone).date()
    monday = day - dt.timedelta(days=day.weekday())
    now = timezone.now()
    for number in range(7):
        by = monday + dt.timedelta(days=number) - day
        span = Span(reservation.start + by, reservation.end + by)
        if by and availability.evaluate(reservation.room, span, now=now).is_available:
            return day, day + by
    raise AssertionError("The room is booked all week.")


def get_place(reservation: Reservation) -> tuple[str, int, float]:
    """The room, the local hour of the start, and the hours."""
    now = Reservation.objects.select_related("room__center").get(pk=reservation.pk)
    local = now.start.astimezone(now.room.center.zone)
    return now.room.name, local.hour, (now.end - now.start) / HOUR


@pytest.fixture
def booking(demo: None) -> Reservation:
    """A booking of the boardroom from 9 to 11, on a day with a request from 15 to 17."""
    boardroom = room("Boardroom")
    day = open_day(boardroom)
    request_for(boardroom, day, 15)
    request = request_for(boardroom, day, 9)
    return approval.approve(
        Act(User.objects.get(email=STAFF), timezone.now(), is_staff=True), request.pk
    )


def open_timeline(page: Page, host: str, booking: Reservation) -> None:
    day = booking.start.astimezone(booking.room.center.zone).date()
    page.goto(f"{host}{TIMELINE}?date={day}")
    expect(get_bar(page, booking)).to_be_visible()


@in_ways(DESKTOP, without=("tablet", "phone", "keyboard"))
def test_booking_is_moved_by_one_drag_and_one_click(desk, live_server, booking, way):
    page = desk("desk", way)
    person = Person(page, way)
    open_timeline(page, live_server.url, booking)
    notice, panel = page.locator("#timeline-notice"), page.locator("#timeline-panel")

    # The price stays the same: saved at once, and undone with a click.
    drag(page, ("Boardroom", 10), ("Boardroom", 12))
    expect(notice).to_contain_text("Rescheduled to Boardroom")
    assert get_place(booking) == ("Boardroom", 11, 2)
    assert person.clicks == 1
    expect(get_bar(page, booking)).to_contain_text("11:00-13:00")
    page.get_by_role("button", name="Undo").click()
    expect(notice).to_contain_text("09:00 - 11:00")
    assert get_place(booking) == ("Boardroom", 9, 2)

    # A conflict is named, and moves nothing.
    drag(page, ("Boardroom", 10), ("Boardroom", 15))
    expect(panel).to_contain_text("Not possible")
    assert accessibility.scan(panel) == []
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()
    assert get_place(booking) == ("Boardroom", 9, 2)

    # A cheaper room, and a shorter meeting: one click confirms that money moves.
    person.clicks = 0
    drag(page, ("Boardroom", 10), ("Aspen", 13))
    expect(panel).to_contain_text("Refund")
    assert get_place(booking) == ("Boardroom", 9, 2)
    panel.get_by_role("button", name="Reschedule").click()
    expect(notice).to_contain_text("will be refunded")
    assert person.clicks == 2
    assert get_place(booking) == ("Aspen", 12, 2)
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    drag(page, ("Aspen", 13.98), ("Aspen", 13))
    expect(get_bar(page, booking)).to_contain_text("12:00-13:00")
    assert get_place(booking) == ("Aspen", 12, 1)

    # In the week of the center, to another day.
    other = Reservation.objects.select_related("room__center").exclude(pk=booking.pk).latest("pk")
    day, target = find_other_day(other)
    page.goto(f"{live_server.url}{TIMELINE}center/?date={day}")
    drag_to_day(page, other, target - day)
    expect(notice).to_contain_text(
        f"Rescheduled to Boardroom at Union Station, {target:%a %Y-%m-%d}"
    )
    assert get_place(other) == ("Boardroom", 15, 2)

    # Free time that is selected is filled in.
    open_timeline(page, live_server.url, booking)
    select(page, ("Aspen", 15), ("Aspen", 17.5))
    page.wait_for_url("**/reservation/add/**")
    expect(page.locator("[name=start_1]")).to_have_value("15:00")
    expect(page.locator("[name=end_1]")).to_have_value("17:30")


def test_stale_timeline_moves_nothing_and_refreshes(desk, live_server, booking):
    page = desk("manager")
    page.clock.install()
    polls = []
    page.on("request", lambda request: polls.append("if-none-match" in request.headers))
    open_timeline(page, live_server.url, booking)
    get_bar(page, booking).click()
    panel = page.locator("#timeline-panel")
    expect(panel).to_contain_text(f"Reservation {booking.pk}")
    panel.get_by_role("button", name="Close").click()
    expect(get_bar(page, booking)).to_be_focused()

    move_elsewhere(booking)
    drag(page, ("Boardroom", 10), ("Boardroom", 12))
    expect(panel).to_contain_text("It was changed meanwhile")
    expect(get_bar(page, booking)).to_contain_text("12:00-14:00")
    assert get_place(booking) == ("Boardroom", 12, 2)

    # After half a minute the page asks for changes; the open panel and the focus stay.
    get_bar(page, booking).click()
    expect(panel).to_contain_text(f"Reservation {booking.pk}")
    get_bar(page, booking).focus()
    move_elsewhere(booking, back=True)
    page.clock.run_for(31_000)
    expect(get_bar(page, booking)).to_contain_text("09:00-11:00")
    expect(get_bar(page, booking)).to_be_focused()
    expect(panel).to_be_visible()
    # While it is hidden, it does not.
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    polls.clear()
    page.clock.run_for(120_000)
    assert not any(polls)

    # A longer meeting costs more. The panel asks who pays, or the difference is waived.
    panel.get_by_role("button", name="Close").click()
    for hour, label in ((12, "If it costs more"), (13, "Waive the additional price")):
        drag(page, ("Boardroom", hour - 1.05), ("Boardroom", hour))
        expect(panel).to_contain_text("Not possible")
        field = panel.get_by_label(label)
        if hour == 12:
            field.select_option("cash")
        else:
            field.fill("Leak")
        page.clock.run_for(1_000)
        panel.get_by_role("button", name="Reschedule").click()
        expect(get_bar(page, booking)).to_contain_text(f"09:00-{hour}:00")
        assert get_place(booking) == ("Boardroom", 9, hour - 9)
    assert sorted(booking.payments.values_list("gateway", flat=True)) == ["cash", "sandbox"]


def move_elsewhere(booking: Reservation, *, back: bool = False) -> None:
    """Move the booking by three hours in another window."""
    by = 0 if back else 3
    start, end = booking.start + by * HOUR, booking.end + by * HOUR
    now = booking.created_at + dt.timedelta(minutes=1)
    amendments.amend(
        Act(booking.user, now, is_staff=True),
        booking.pk,
        ChangeRequest(booking.room_id, start, end),
    )


@in_ways(Way(hand="keyboard"), without=("mouse",))
def test_booking_is_moved_by_keyboard_and_shown_on_a_phone(desk, live_server, booking, way):
    page = desk("desk", way)
    open_timeline(page, live_server.url, booking)
    live = page.locator("#timeline-live")
    get_bar(page, booking).focus()

    page.keyboard.press("m")
    expect(live).to_contain_text("Boardroom")
    page.keyboard.press("ArrowRight")
    expect(live).to_contain_text("09:15 - 11:15")
    page.keyboard.press("Escape")
    expect(live).to_have_text("Not moved.")

    page.keyboard.press("m")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#timeline-notice")).to_contain_text("Rescheduled to Boardroom")
    expect(get_bar(page, booking)).to_be_focused()
    assert get_place(booking) == ("Boardroom", 10, 2)

    # To another room, where the price has to be confirmed.
    page.keyboard.press("m")
    for _ in range(page.locator(".timeline-row").count()):
        if (live.text_content() or "").startswith("Aspen"):
            break
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")
    button = page.locator("#timeline-panel").get_by_role("button", name="Reschedule")
    go_to(page, button)
    page.keyboard.press("Enter")
    expect(page.locator("#timeline-notice")).to_contain_text("will be refunded")
    assert get_place(booking) == ("Aspen", 10, 1.75)

    page = desk("desk", PHONE)
    open_timeline(page, live_server.url, booking)
    get_bar(page, booking).click()
    panel = page.locator("#timeline-panel")
    expect(panel).to_contain_text("Customer")
    expect(panel).to_be_in_viewport()
    assert accessibility.scan(panel) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    panel.get_by_role("link", name="Reschedule").click()
    page.wait_for_url("**/step/move/")

    # The week of the center fits, too.
    page.goto(f"{live_server.url}{TIMELINE}center/")
    expect(page.locator(".timeline--center-week")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
