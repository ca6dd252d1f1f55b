"""The pages of the sandbox that play a card form and a bank: by keyboard, on a phone."""

import datetime as dt
import re

from django.utils import timezone
from playwright.sync_api import expect

from accounts.act import Act
from accounts.models import OutboxMessage
from payments import setups
from payments.models import PaymentSetup
from reservations.booking import payment_links
from tests.browser import accessibility, chromium
from tests.factories_people import UserFactory
from tests.factories_reservations import make_draft


def test_customer_saves_a_card_with_the_keyboard_on_a_phone(browser, transactional_db, live_server):
    ada, now = UserFactory(), timezone.now()
    setup = setups.create_setup(ada, return_url="", now=now)
    own_page = f"{live_server.url}/payments/return"
    url = live_server.url + setups.open_setup(setup, own_page=own_page).at_gateway.url
    # The scan adds a style to the page, which its policy does not allow.
    page = chromium.open_page(browser, viewport=chromium.PHONE, bypass_csp=True)
    watch = chromium.Watch(page, live_server.url)

    violations = accessibility.open_and_scan(page, url)
    for text in ("4111 1111 1111 1111", "12/40", "123"):
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Card number")).to_have_accessible_description(
        "This is a sandbox: it takes only test cards, such as 4242 4242 4242 4242."
        " You were not charged."
    )
    expect(page.get_by_label("Card number")).to_have_value("")
    violations += accessibility.scan(page.get_by_label("Card number"))
    page.get_by_role("button", name="Refuse").click()
    expect(page.get_by_role("alert")).to_contain_text("The card was not confirmed at its bank.")
    assert page.evaluate("document.documentElement.scrollWidth") == chromium.PHONE["width"]
    page.get_by_label("Card number").fill("4242 4242 4242 4242")
    page.get_by_label("Expires").fill("12/40")
    page.get_by_label("Security code").fill("123")
    page.get_by_role("button", name="Confirm").click()

    violations += accessibility.scan(page.get_by_role("heading", name="Thank you"))
    page.close()
    assert setups.complete_setup(ada, str(setup.key), now=now).last4 == "4242"
    assert PaymentSetup.objects.get().state == "succeeded"
    assert violations == []
    assert watch.complaints == []


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
    violations += accessibility.open_and_scan(scanned, opened.value.url)
    expect(opened.value.get_by_text("$75.00")).to_be_visible()
    opened.value.get_by_role("button", name="Confirm").press("Enter")

    # The page repeats its request until the bank has answered.
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    expect(page.locator("main")).to_contain_text("You have booked")
    violations += accessibility.open_and_scan(scanned, url)
    for each in (page, scanned, opened.value):
        each.close()
    assert draft.payments.get().state == "captured"
    assert violations == []
    assert watch.complaints == []
