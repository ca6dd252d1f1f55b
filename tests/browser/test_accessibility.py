"""Every page of the back office is accessible: axe-core finds nothing.

The long form (tests/browser/ways.py) looks at them in all sizes.
"""

from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlsafe_base64_encode
from playwright.sync_api import expect

from accounts.models import User
from reservations.integrations.events import create_test_event
from roombook.backoffice.model_admin import ModelAdmin
from tests.backoffice.second_factor_helpers import RECOVERY_CODES, TURN_OFF, compute_code
from tests.browser import accessibility, chromium
from tests.browser.day import complete_demo_data, open_day, request_for, room
from tests.browser.ways import DESKTOP, in_ways
from tests.factories_reservations import HOUR, ReservationFactory
from tests.webhooks.helpers import make_endpoint

# Each scan takes both themes.
in_sizes = in_ways(DESKTOP, without=("dark", "keyboard"))


@in_sizes
def test_pages_have_no_violations(desk, browser, live_server, monkeypatch, way):
    # More rows of a list are the same template once more.
    monkeypatch.setattr(ModelAdmin, "list_per_page", 15)
    boardroom = room("Boardroom")
    request_for(boardroom, open_day(boardroom), 9)
    now = timezone.now()
    ReservationFactory(
        room=boardroom, start=now, end=now + HOUR, status="Confirmed", booked_at=now - HOUR
    )
    complete_demo_data()
    found = {}

    anonymous = chromium.open_page(browser, viewport=way.viewport)
    for path in ("/admin/login/", get_invitation_path()):
        found[path] = accessibility.open_and_scan(anonymous, live_server.url + path)
    anonymous.close()

    page = desk("staff", way)
    selected = list(accessibility.select_pages(accessibility.find_pages(page)))
    assert len(selected) > 15
    for url in selected:
        found[url] = accessibility.open_and_scan(page, live_server.url + url)

    assert {url: violations for url, violations in found.items() if violations} == {}


@in_sizes
def test_open_widgets_have_no_violations(desk, live_server, way):
    boardroom = room("Boardroom")
    page = desk("staff", way)

    page.goto(f"{live_server.url}/admin/reservations/reservation/add/")
    page.click(".select2-selection")
    expect(page.locator(".select2-results__option").first).not_to_have_text("Searching…")
    assert accessibility.scan(page.locator(".select2-results")) == []

    for path in ("centers/meetingroom/", f"centers/meetingroom/{boardroom.pk}/change/"):
        page.goto(f"{live_server.url}/admin/{path}")
        page.get_by_role("button", name="Search").first.click()
        page.locator("#search-input-command").press_sequentially("boardr")
        result = page.locator("#command-results-list").get_by_text(boardroom.full_name).first
        expect(result).to_be_visible()
    assert accessibility.scan(result) == []


@in_sizes
def test_tabs_of_a_center_have_no_violations(desk, live_server, way):
    page = desk("staff", way)
    center = f"{live_server.url}/admin/centers/center/{room('Boardroom').center_id}/change/"
    names = ("openinghours", "rate", "meetingroom", "service", "terms", "closure", "centerimage")
    found = {each: accessibility.open_and_scan(page, f"{center}?tab={each}") for each in names}
    assert {name: violations for name, violations in found.items() if violations} == {}


@in_sizes
def test_pages_of_administrators_have_no_violations(desk, live_server, way):
    User.objects.filter(email="staff@roombook.example").update(is_superuser=True)
    clerk = User.objects.get(email="desk@roombook.example")
    webhook = create_test_event(make_endpoint(), now=timezone.now()).endpoint
    page = desk("staff", way)
    found = {}

    for path in (
        f"reservations/webhookendpoint/{webhook.pk}/change/",
        f"reservations/webhookendpoint/{webhook.pk}/credentials/",
        "reservations/webhookdelivery/",
        "accounts/staffmember/",
        f"accounts/staffmember/{clerk.pk}/change/",
        "accounts/staffmember/add/",
        f"auth/group/{clerk.center_roles.get().group_id}/change/",
        f"accounts/user/{clerk.pk}/change/",
        "accounts/user/second-factor/set-up/",
    ):
        found[path] = accessibility.open_and_scan(page, f"{live_server.url}/admin/{path}")
    page.get_by_label("Six-digit code").fill(compute_code(page.locator("#key").inner_text()))
    page.get_by_role("button", name="Turn on").click()
    codes = page.locator("#recovery-codes li")
    expect(codes).to_have_count(10)
    found["recovery codes"] = accessibility.scan(codes.first)
    for path in (RECOVERY_CODES, TURN_OFF):
        found[path] = accessibility.open_and_scan(page, live_server.url + path)

    assert {path: violations for path, violations in found.items() if violations} == {}


def get_invitation_path() -> str:
    user = User.objects.create_user("new@roombook.example", is_staff=True)
    uid = urlsafe_base64_encode(str(user.pk).encode())
    token = default_token_generator.make_token(user)
    return reverse("admin:accounts_invitation", args=[uid, token])


def test_axe_finds_violations_of_a_bad_page(browser):
    page = chromium.open_page(browser)
    page.set_content(
        "<html lang=en><title>Bad</title><main><h1>Bad</h1><input><p style='color:#ddd'>Grey</main>"
        "<p>Outside"
    )

    found = accessibility.scan(page.locator("body"))

    page.close()
    rules = {line.split(":")[0] for line in found}
    assert rules == {
        "light critical label",
        "light moderate region",
        "light serious color-contrast",
        "dark serious color-contrast",
    }
