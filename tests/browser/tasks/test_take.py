"""Task 1: a walk-in, from a free slot on the timeline to a paid and confirmed booking."""

import datetime as dt
import re

from django.utils import timezone
from playwright.sync_api import expect

from accounts.act import Act
from accounts.models import OutboxMessage
from reservations.booking import payment_links
from reservations.models import Reservation
from tests.browser import accessibility, chromium
from tests.browser.day import open_day, room
from tests.browser.person import Person
from tests.browser.ways import DESKTOP, in_ways
from tests.factories_reservations import make_draft

MAX_CLICKS = 5


@in_ways(DESKTOP)
def test_walk_in_pays_at_the_terminal_and_is_confirmed(desk, live_server, way):
    page = desk("desk", way)
    person = Person(page, way)
    day = open_day(room("Aspen"))
    page.goto(f"{live_server.url}/admin/reservations/reservation/timeline/?date={day}")

    person.click_slot("Aspen", "10:00")
    person.click(page.locator("summary", has_text="New customer"))
    person.fill_fields(email="walk-in@example.com", first_name="Grace", last_name="Hopper")
    expect(page.locator("#draft-preview tfoot")).to_contain_text("$")
    person.take_payment_for_draft(reference="Slip 0042")

    expect(page.locator(".reservation-head")).to_contain_text("Confirmed")
    expect(page.locator("body")).to_contain_text("paid at the card terminal")
    booked = Reservation.objects.latest("pk")
    payment = booked.payments.get()
    assert (payment.gateway, payment.reference) == ("terminal", "Slip 0042")
    assert (payment.amount, payment.taken_by.email) == (booked.total_cost, "desk@roombook.example")
    assert person.clicks <= MAX_CLICKS


def test_payment_link_is_paid_on_a_phone_without_signing_in(browser, transactional_db, live_server):
    now = timezone.now()
    start = (now + dt.timedelta(days=2)).replace(hour=17, minute=0, second=0, microsecond=0)
    draft = make_draft(start=start, now=now)
    payment_links.send_link(Act(draft.user, now, is_staff=True), draft.pk, base_url=live_server.url)
    url = re.search(r"http://\S+/pay/\S+", OutboxMessage.objects.get().text)[0]
    # The scan adds a style to the page, which its policy does not allow.
    scanned = chromium.open_page(browser, viewport=chromium.PHONE, bypass_csp=True)
    violations = accessibility.open_and_scan(scanned, url)
    page = chromium.open_page(browser, viewport=chromium.PHONE)
    watch = chromium.Watch(page, live_server.url)

    page.goto(url)
    assert page.evaluate("document.documentElement.scrollWidth") == chromium.PHONE["width"]
    page.get_by_role("button", name="Pay $75.00").click()
    page.get_by_label("Card number").fill("4000 0027 6000 3184")
    page.get_by_label("Expires").fill("12/40")
    page.get_by_label("Security code").fill("123")
    page.get_by_role("button", name="Confirm").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the page of your bank").click()
    opened.value.get_by_role("button", name="Confirm").click()

    # The page repeats its request until the bank has answered.
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    expect(page.locator("main")).to_contain_text("You have booked")
    violations += accessibility.open_and_scan(scanned, url)
    for each in (page, scanned, opened.value):
        each.close()
    assert draft.payments.get().state == "captured"
    assert violations == []
    assert watch.complaints == []
