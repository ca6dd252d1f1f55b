"""A day of a receptionist, a manager, an owner and an accountant, by mouse and by keyboard."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import StaffMember
from centers.models import Center, Rate
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.receipts import issuing
from tests.browser import accessibility
from tests.browser.day import CENTER, open_day, request_for, room
from tests.browser.person import Person
from tests.browser.ways import Way, in_ways
from tests.factories_people import AdministratorFactory, StaffFactory

# The tasks together have each size, theme and hand.


def go(person: Person, way: Way, name: str) -> None:
    """Open a page by the menu."""
    if way.has_folded_menu:
        person.click(person.page.get_by_role("button", name="Menu"))
    menu = person.page.get_by_role("navigation", name="Back office")
    person.click(menu.get_by_role("link", name=name, exact=True))


@pytest.fixture
def open_now(demo) -> Center:
    """The center with all roles, open round the clock, and without a booking from now on."""
    Reservation.objects.filter(end__gt=timezone.now()).update(
        status=Status.CANCELLED, cancelled_at=F("created_at"), holds_slot=False, hold_until=None
    )
    Center.objects.filter(name=CENTER).update(is_after_hours_support_enabled=True)
    return Center.objects.get(name=CENTER)


@in_ways(Way("phone", hand="keyboard"))
def test_receptionist_seats_a_walk_in_in_ten_clicks(desk, open_now, way):
    page = desk("desk", way)
    person = Person(page, way)
    page.goto(f"{page.url}reservations/reservation/today/?center={open_now.pk}")

    person.fill(page.get_by_label("People", exact=True), "7")
    person.click(page.get_by_role("button", name="Find a room"))
    found = page.locator(".found-rooms")
    expect(found.get_by_role("rowheader").first).to_have_text("Juniper")
    assert accessibility.scan(found, [way.theme]) == []
    person.click(found.get_by_role("link", name="Juniper"))
    person.click(page.locator("summary", has_text="New customer"))
    person.fill_fields(phone_number="555 0177", first_name="Jo", last_name="Day")
    expect(page.locator("#draft-preview")).to_contain_text("Price for a new customer")
    person.take_payment_for_draft(reference="Slip 0043")
    person.click(page.get_by_role("button", name="Check in"))
    undo = page.get_by_role("button", name="Undo check-in")
    assert accessibility.scan(undo, [way.theme]) == []

    booked = Reservation.objects.latest("pk")
    assert (booked.status, booked.number_of_attendees) == (Status.CONFIRMED, 7)
    assert booked.is_checked_in
    assert 7 <= person.clicks <= 10


@in_ways(Way("laptop", "dark"))
def test_manager_approves_a_request_and_lowers_its_price_in_four_clicks(desk, demo, way):
    Reservation.objects.filter(status=Status.PENDING).update(
        status=Status.CANCELLED, cancelled_at=F("created_at"), holds_slot=False
    )
    boardroom = room("Boardroom")
    request = request_for(boardroom, open_day(boardroom), 9)
    page = desk("manager", way)
    person = Person(page, way)

    person.click(page.get_by_role("link", name="Approve").first)
    preview = page.locator("#preview")
    person.click(preview.get_by_role("button", name="Approve"))
    head = page.locator(".reservation-head")
    expect(head).to_contain_text("Confirmed")
    person.click(page.get_by_role("link", name="Adjust price"))
    person.fill(page.get_by_label("Amount"), "-10")
    person.fill(page.get_by_label("Reason"), "The projector was broken.")
    expect(preview).to_contain_text("The projector was broken.")
    adjust = preview.get_by_role("button", name="Adjust")
    assert accessibility.scan(adjust, [way.theme]) == []
    person.click(adjust)
    # The page of the form says Confirmed, too.
    page.wait_for_url("**/change/")

    lowered = Reservation.objects.get(pk=request.pk)
    assert lowered.total_cost < request.total_cost
    assert person.clicks == 4


@in_ways(Way("tablet"))
def test_owner_raises_a_price_and_invites_a_colleague_in_nine_clicks(desk, demo, way):
    AdministratorFactory(email="owner@roombook.example")
    rate = Rate.objects.filter(center__name=CENTER, hourly__isnull=False).earliest("pk")
    page = desk("owner", way)
    person = Person(page, way)

    go(person, way, "Rates")
    person.click(page.get_by_role("link", name=rate.name, exact=True).first)
    person.fill(page.locator("[name=hourly]"), "99")
    person.click(page.get_by_role("button", name="Save", exact=True))
    expect(page.locator("#changelist")).to_be_visible()
    go(person, way, "Staff")
    person.click(page.locator("a[href*='/staffmember/add/']"))
    person.fill_fields(email="new@example.com", first_name="N", last_name="Ew")
    person.click(page.get_by_label("Manager", exact=True), key="Space")
    person.click(page.get_by_role("button", name="Save", exact=True))
    expect(page.locator("#changelist")).to_be_visible()
    go(person, way, "Reports")
    heading = page.get_by_role("heading", name="By center")
    assert accessibility.scan(heading, [way.theme]) == []

    assert Rate.objects.filter(hourly=Decimal(99)).count() == 1
    assert StaffMember.objects.filter(email="new@example.com", groups__name="Manager").exists()
    assert person.clicks <= 9 + 3 * way.has_folded_menu


def export(person: Person, way: Way) -> str:
    page = person.page
    if way.has_folded_actions:
        person.click(page.get_by_role("link", name="More", exact=True))
    with page.expect_download() as started:
        person.click(page.get_by_role("link", name="Export CSV"))
    return started.value.path().read_text()


@in_ways(Way("tablet", "dark", "keyboard"))
def test_accountant_reads_a_figure_to_its_lines_and_gets_the_receipts_in_seven_clicks(
    desk, demo, way
):
    paid = Reservation.objects.filter(payments__state="captured").earliest("pk")
    issuing.issue_documents(paid, by=None, now=timezone.now())
    accountant = StaffFactory(email="accountant@roombook.example")
    accountant.groups.add(Group.objects.get(name="Accountant"))
    page = desk("accountant", way)
    person = Person(page, way)

    go(person, way, "Reports")
    person.click(page.get_by_role("link", name="Month's end"))
    person.click(page.get_by_role("link", name="Last month"))
    person.click(page.get_by_role("table").first.get_by_role("link").first)
    assert accessibility.scan(page.locator("#changelist"), [way.theme]) == []
    assert "Receivables" in export(person, way)
    go(person, way, "Receipts")
    assert "Gross" in export(person, way)

    assert person.clicks == 7 + 2 * way.has_folded_menu + 2 * way.has_folded_actions
