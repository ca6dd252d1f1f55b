"""The pages of the sandbox that play a card form and a bank: by keyboard, on a phone."""

from decimal import Decimal
from uuid import uuid4

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from payments import setups
from payments.gateways.sandbox import SandboxGateway
from payments.models import PaymentSetup
from tests.browser import accessibility, chromium
from tests.factories_people import SandboxCardFactory, UserFactory


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


@pytest.mark.usefixtures("transactional_db")
def test_payment_is_confirmed_by_keyboard_without_violations(browser, live_server):
    card = SandboxCardFactory.create(outcome="requires_action")
    payment = SandboxGateway().authorize(
        key=uuid4(),
        amount=Decimal("48.96"),
        currency="USD",
        source=card.reference,
        description="Reservation 13",
        on_session=True,
    )
    page = chromium.open_page(browser, viewport=chromium.PHONE, bypass_csp=True)
    watch = chromium.Watch(page, live_server.url)

    page.goto(f"{live_server.url}{payment.action.url}")

    assert accessibility.scan(page.get_by_text("$48.96"), ["light"]) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Confirm")).to_be_focused()
    page.keyboard.press("Enter")
    assert accessibility.scan(page.get_by_role("heading", name="Thank you"), ["light"]) == []
    page.close()
    assert watch.complaints == []
