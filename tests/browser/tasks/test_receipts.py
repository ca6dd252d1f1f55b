"""A customer wants a receipt: the desk's task in a browser, with as few clicks as possible."""

from django.utils import timezone
from playwright.sync_api import expect

from reservations.booking import approval
from reservations.models import Receipt
from tests.browser import accessibility
from tests.browser.day import open_day, request_for, room
from tests.browser.person import Person
from tests.browser.ways import PHONE, in_ways
from tests.reservations.receipts.helpers import read_pdf


@in_ways(PHONE)
def test_desk_opens_a_receipt_with_two_clicks(desk, live_server, way):
    boardroom = room("Boardroom")
    request = request_for(boardroom, open_day(boardroom), 9)
    booking = approval.approve(request.pk, now=timezone.now())
    page = desk("desk", way)
    person = Person(page, way)
    page.goto(f"{live_server.url}/admin/reservations/reservation/{booking.pk}/change/")

    person.click(page.get_by_role("link", name="Receipt", exact=True))
    issue = page.get_by_role("button", name=f"Issue receipt of ${booking.total_cost}")
    expect(issue).to_be_visible()
    assert accessibility.scan(page) == []
    with page.expect_event("response", lambda each: each.url.endswith(".pdf")) as response:
        person.click(issue)

    assert person.clicks == 2
    receipt = Receipt.objects.get()
    # A browser without windows does not show it, and forgets what it downloaded.
    text = read_pdf(page.context.request.get(response.value.url).body())
    assert f"Receipt {receipt.number}" in text
    assert "Roombook Demo Centers Inc." in text

    page.goto(f"{live_server.url}/admin/reservations/reservation/{booking.pk}/receipts/")
    link = page.get_by_role("link", name=f"Receipt {receipt.number}")
    expect(link).to_be_visible()
    assert accessibility.scan(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= way.viewport["width"]
    # The same by keyboard.
    page.get_by_role("button", name="Send by e-mail").press("Enter")
    expect(page.get_by_text(f"will be sent to {booking.user.email}")).to_be_visible()
    with page.expect_event("response", lambda each: each.url.endswith(".pdf")):
        link.press("Enter")
    assert person.clicks == 2
