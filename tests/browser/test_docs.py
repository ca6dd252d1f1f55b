"""The page /docs, as a client developer uses it."""

import pytest
from playwright.sync_api import expect

from reservations.models import Reservation
from reservations.serializers import EXAMPLE_DRAFT
from tests.browser import accessibility, chromium


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_developer_signs_in_searches_and_books_with_the_examples(demo, browser, live_server):
    page = chromium.open_page(browser)
    watch = chromium.Watch(page, live_server.url)
    page.goto(f"{live_server.url}/docs")
    state = page.get_by_role("status")

    def run(name):
        """Send the example of an operation, and return the part of the page with the response."""
        operation = page.locator(f"#operations-{name}")
        operation.locator(".opblock-summary-control").click()
        operation.get_by_role("button", name="Execute").click()
        return operation.locator(".live-responses-table")

    expect(state).to_contain_text("Not signed in.")
    expect(run("Accounts-signIn")).to_contain_text("demo@roombook.example")
    expect(state).to_contain_text("Requests are sent with the Token")
    page.reload()
    expect(run("Centers-searchLocations")).to_contain_text("Union Station")
    expect(run("Reservations-createReservation")).to_contain_text(f'"Id": {EXAMPLE_DRAFT}')
    expect(run("Reservations-checkout")).to_contain_text('"Status": "Confirmed"')
    assert Reservation.objects.get(pk=EXAMPLE_DRAFT).status == "Confirmed"
    expect(run("Accounts-signOut")).to_contain_text('"Success": true')
    expect(state).to_contain_text("Not signed in.")
    page.close()
    assert watch.complaints == []


def test_docs_have_no_violations_with_a_response(browser, live_server):
    # The scan adds a style, which the policy of the page forbids.
    page = chromium.open_page(browser, bypass_csp=True)
    page.goto(f"{live_server.url}/docs")
    sign_in = page.locator("#operations-Accounts-signIn")
    sign_in.locator(".opblock-summary-control").click()
    sign_in.get_by_role("button", name="Execute").click()
    response = sign_in.locator(".live-responses-table", has_text="InvalidCredentials")
    assert accessibility.scan(response, ["light"]) == []
    page.close()
