"""An owner's first day: from an empty database to a paid booking by a client of the API."""

import datetime as dt

from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from accounts.models import StaffMember
from reservations.models import Reservation
from reservations.models.status import Status
from tests.browser import chromium
from tests.browser.person import Person
from tests.factories_people import PASSWORD, AdministratorFactory, UserFactory
from tests.factories_reservations import CARD

MAX_CLICKS = 26
# Opening a select box, and choosing.
CHOICE = 2


def test_owner_sets_up_everything_and_a_client_books_and_pays(
    browser, transactional_db, live_server
):
    owner = AdministratorFactory()
    page = chromium.open_page(browser)
    watch = chromium.Watch(page, live_server.url)
    page.goto(f"{live_server.url}/admin/")
    person = Person(page)
    person.fill(page.locator("#id_username"), owner.email)
    person.fill(page.locator("#id_password"), PASSWORD)
    person.click(page.locator("#login-form button[type=submit]"))
    expect(page.locator(".dashboard-steps")).to_be_visible()

    step(person, "The company")
    person.fill_fields(
        legal_name="Riverside Rooms LLC", legal_address="1 Main Street\nPortland, OR 97204"
    )
    save(person)

    dashboard(person)
    person.click(page.get_by_role("button", name="Add the usual types"))
    expect(page.get_by_text("Added: Meeting room")).to_be_visible()

    step(person, "A center")
    person.fill_fields(
        name="Riverside",
        street1="1 Main Street",
        city="Portland",
        state="Oregon",
        postal_code="97204",
        country="USA",
        latitude="45.515",
        longitude="-122.678",
        tax_rate="0",
    )
    expect(page.locator("[name=time_zone_id]")).to_have_value("America/Los_Angeles")
    tab(person, "Opening hours")
    person.click(page.get_by_role("button", name="Add hours").first)
    monday = page.get_by_role("group", name="Monday")
    person.fill(monday.get_by_label("Opens"), "8")
    person.fill(monday.get_by_label("Closes"), "18")
    person.click(page.get_by_role("button", name="Copy to all days"))
    tab(person, "Rates")
    person.click(page.get_by_role("link", name="Add another Rate"))
    person.fill_fields(**{"rates-0-name": "Standard", "rates-0-hourly": "40"})
    person.click(page.get_by_role("button", name="Save and continue editing"))
    expect(page.get_by_text("successfully").first).to_be_visible()

    tab(person, "Meeting rooms")
    person.click(page.get_by_role("link", name="Add another Meeting room"))
    person.fill_fields(**{"rooms-0-name": "Boardroom", "rooms-0-capacity": "12"})
    # Its type is made in place, in a window of its own.
    kind = page.locator("[name=rooms-0-resource_type]")
    with page.expect_popup() as opened:
        person.click(page.locator("#add_id_rooms-0-resource_type"))
    opened.value.locator("[name=name]").fill("Studio")
    with opened.value.expect_event("close"):
        opened.value.get_by_role("button", name="Save", exact=True).click()
    person.clicks += 1
    expect(kind.locator(":checked")).to_have_text("Studio")
    choose(person, page.locator("[name=rooms-0-rate]"), "Standard ($40.00/hour)")
    save(person)

    step(person, "Staff")
    person.fill_fields(email="dana@example.com", first_name="Dana", last_name="Desk")
    person.click(page.get_by_label("Desk", exact=True))
    save(person)

    dashboard(person)
    links = page.locator(".dashboard-steps a")
    expect(links).to_have_text(["The first booking"])

    assert StaffMember.objects.filter(email="dana@example.com").exists()
    book_and_pay(page, live_server.url)
    page.reload()
    expect(page.get_by_role("heading", name="Needs attention")).to_be_visible()
    expect(links).to_have_count(0)
    booked = Reservation.objects.get()
    assert (booked.status, booked.total_cost) == (Status.CONFIRMED, 80)
    page.close()
    assert person.clicks <= MAX_CLICKS
    assert watch.complaints == []


def dashboard(person: Person) -> None:
    person.click(person.page.get_by_role("link", name="Dashboard"))
    expect(person.page.get_by_role("heading", name="Needs attention")).to_be_visible()


def step(person: Person, name: str) -> None:
    """Open a step on the dashboard, after what shows that the page before it is there."""
    person.page.wait_for_load_state()
    if not person.page.locator(".dashboard-steps").count():
        dashboard(person)
    person.click(person.page.locator(".dashboard-steps").get_by_role("link", name=name))
    expect(person.page.get_by_role("button", name="Save", exact=True)).to_be_visible()


def choose(person: Person, field: Locator, label: str) -> None:
    field.select_option(label=label)
    person.clicks += CHOICE


def tab(person: Person, name: str) -> None:
    person.click(person.page.locator("#tabs-items a").get_by_text(name))


def save(person: Person) -> None:
    """Save, which leads to the list."""
    person.click(person.page.get_by_role("button", name="Save", exact=True))
    expect(person.page.locator("#changelist")).to_be_visible()


def book_and_pay(page: Page, host: str) -> None:
    """What the app of a customer does."""
    customer = UserFactory()
    signed_in = {"EmailAddress": customer.email, "Password": PASSWORD}
    token = {"Token": call(page, f"{host}/api/sign-in", signed_in)["Token"]}
    found = call(page, f"{host}/api/locations/search", {**token, "Query": "Portland, OR"})
    [room] = found["Centers"][0]["MeetingRooms"]
    day = timezone.now().date() + dt.timedelta(days=7)
    wanted = {"MeetingRoomId": room["Id"], "StartDate": f"{day}T09:00", "EndDate": f"{day}T11:00"}
    draft = call(page, f"{host}/api/reservations/create", {**token, **wanted})["Reservation"]
    paid = {**token, "PaymentInfo": CARD, "ReservationId": draft["Id"]}
    assert call(page, f"{host}/api/reservations/checkout", paid)["Status"] == "Confirmed"


def call(page: Page, url: str, body: dict[str, object]) -> dict:
    answer: dict = page.request.post(url, data=body).json()
    assert answer["Success"], answer
    return answer
