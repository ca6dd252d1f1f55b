"""The page /docs, as a client developer uses it."""

import pytest
from playwright.sync_api import expect

from reservations.models import Reservation
from reservations.serializers import EXAMPLE_DRAFT
from tests.browser import accessibility, chromium


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_developer_signs_in_searches_and_books_with_the_examples(demo, browser, live_server):
    context = browser.new_context(viewport=chromium.DESKTOP)
    page = context.new_page()
    page.set_default_timeout(60_000)
    watch = chromium.Watch(page, live_server.url)
    page.goto(f"{live_server.url}/docs")
    state = page.get_by_role("status")

    def expect_text(part, text):
        expect(part).to_contain_text(text, timeout=60_000)

    def run(name):
        """Send the example of an operation, and return the part of the page with the response."""
        operation = page.locator(f"#operations-{name}")
        operation.locator(".opblock-summary-control").click()
        operation.get_by_role("button", name="Execute").click()
        return operation.locator(".live-responses-table")

    expect_text(state, "Not signed in.")
    expect_text(run("Accounts-signIn"), "demo@roombook.example")
    expect_text(state, "Requests are sent with the Token")
    page.reload()
    expect_text(run("Centers-searchLocations"), "Union Station")
    expect_text(run("Reservations-createReservation"), f'"Id": {EXAMPLE_DRAFT}')
    expect_text(run("Reservations-checkout"), '"Status": "Confirmed"')
    assert Reservation.objects.get(pk=EXAMPLE_DRAFT).status == "Confirmed"
    expect_text(run("Accounts-signOut"), '"Success": true')
    expect_text(state, "Not signed in.")
    context.close()
    assert watch.complaints == []


def test_docs_have_no_violations_with_a_response(browser, live_server):
    # The scan adds a style, which the policy of the page forbids.
    context = browser.new_context(viewport=chromium.DESKTOP, bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{live_server.url}/docs")
    sign_in = page.locator("#operations-Accounts-signIn")
    sign_in.locator(".opblock-summary-control").click()
    sign_in.get_by_role("button", name="Execute").click()
    response = sign_in.locator(".live-responses-table", has_text="InvalidCredentials")
    assert accessibility.scan(response, ["light"]) == []
    context.close()
