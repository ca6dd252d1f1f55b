"""The sandbox's page that plays the customer's bank, in the browser of a phone."""

from decimal import Decimal
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from payments.gateways.sandbox import SandboxGateway
from tests.browser import accessibility, chromium
from tests.factories_people import SandboxCardFactory


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
    page = browser.new_page(viewport=chromium.PHONE, bypass_csp=True)
    watch = chromium.Watch(page, live_server.url)

    page.goto(f"{live_server.url}{payment.action.url}")

    expect(page.get_by_text("$48.96")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert accessibility.scan(page, ["light"]) == []
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Confirm")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert accessibility.scan(page, ["light"]) == []
    page.close()
    assert watch.complaints == []
