"""An accountant's tasks in a browser, with as few clicks as possible."""

import csv
import io
from pathlib import Path

from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from payments.models import Payment, Refund
from reservations.admin.reports.periods import DAY
from tests.browser import accessibility
from tests.browser.person import Person
from tests.browser.ways import DESKTOP, PHONE, Way, in_ways


def open_as_accountant(desk, way: Way) -> Person:
    viewer = User.objects.get(email="viewer@roombook.example")
    viewer.center_roles.all().delete()
    viewer.groups.set([Group.objects.get(name="Accountant")])
    return Person(desk("viewer", way), way)


def download(person: Person, section: str) -> list[list[str]]:
    """Download the CSV file of a table; return its rows."""
    region = person.page.get_by_role("region", name=section, exact=True)
    with person.page.expect_download() as downloading:
        person.click(region.get_by_role("link"))
    text = Path(downloading.value.path()).read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


@in_ways(DESKTOP)
def test_month_is_closed_with_three_clicks(desk, way):
    # On the same day in all time zones.
    last_month = timezone.now().replace(day=1, hour=12) - DAY
    Payment.objects.filter(captured_at__isnull=False).update(captured_at=last_month)
    person = open_as_accountant(desk, way)
    page = person.page

    person.click(page.get_by_role("link", name="Month's end"))
    cash = download(person, "Cash by day, center and way")
    revenue = download(person, "Revenue by center")

    assert person.clicks <= 3
    assert cash[1][0] == f"{last_month:%Y-%m-%d}"
    assert float(cash[-1][-1]) > 0
    assert revenue[0][:3] == ["Center", "Bookings", "Billed"]
    figures = page.locator("dl.report")
    expect(figures.locator("div", has_text="Unexplained")).to_contain_text("$0.00")
    total = f"${float(cash[-1][-1]):,.2f}"
    expect(page.get_by_role("region", name="From revenue to cash")).to_contain_text(total)


@in_ways(PHONE)
def test_refused_refund_is_settled_with_proof_with_three_clicks(desk, way):
    payment = Payment.objects.filter(state="captured").latest("reservation__start")
    refund = Refund.objects.create(
        payment=payment, amount=1, state="refused", reason="Rain", created_at=payment.created_at
    )
    person = open_as_accountant(desk, way)
    page = person.page

    person.click(page.get_by_role("link", name="Refund of $1.00"))
    expect(page.get_by_role("button", name="Retry the refund")).to_be_visible()
    assert accessibility.scan(page) == []
    person.click(page.get_by_role("button", name="Mark as refunded manually"))
    person.fill(page.get_by_label("How the money was returned"), "Bank transfer")
    person.fill(page.get_by_label("Reference"), "TX-77")
    assert accessibility.scan(page) == []
    person.click(page.get_by_role("button", name="Mark as refunded manually"))

    expect(page.get_by_text("refunded manually.")).to_be_visible()
    assert person.clicks <= 3
    refund.refresh_from_db()
    assert (refund.state, refund.reason) == ("outside", "Bank transfer, TX-77 (Rain)")
