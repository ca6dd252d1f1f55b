"""An accountant's tasks in a browser, with as few clicks as possible."""

import csv
import io
from pathlib import Path

from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from payments.models import Payment, Refund
from reservations.admin.reports.periods import DAY
from tests.browser import accessibility, chromium
from tests.browser.clicks import Clicks


def open_as_accountant(desk, **options) -> Page:
    viewer = User.objects.get(email="viewer@roombook.example")
    viewer.center_roles.all().delete()
    viewer.groups.set([Group.objects.get(name="Accountant")])
    return desk("viewer", **options)


def download(page: Page, section: str) -> list[list[str]]:
    """Download the CSV file of a table; return its rows."""
    with page.expect_download() as downloading:
        page.get_by_role("region", name=section, exact=True).get_by_role("link").click()
    text = Path(downloading.value.path()).read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


def test_month_is_closed_with_three_clicks(desk):
    # On the same day in all time zones.
    last_month = timezone.now().replace(day=1, hour=12) - DAY
    Payment.objects.filter(captured_at__isnull=False).update(captured_at=last_month)
    page = open_as_accountant(desk)
    clicks = Clicks(page)

    page.get_by_role("link", name="Month's end").click()
    cash = download(page, "Cash by day, center and way")
    revenue = download(page, "Revenue by center")

    assert clicks.count <= 3
    assert cash[1][0] == f"{last_month:%Y-%m-%d}"
    assert float(cash[-1][-1]) > 0
    assert revenue[0][:3] == ["Center", "Bookings", "Billed"]
    figures = page.locator("dl.report")
    expect(figures.locator("div", has_text="Unexplained")).to_contain_text("$0.00")
    total = f"${float(cash[-1][-1]):,.2f}"
    expect(page.get_by_role("region", name="From revenue to cash")).to_contain_text(total)


def test_refused_refund_is_settled_with_proof_with_three_clicks(desk):
    payment = Payment.objects.filter(state="captured").latest("reservation__start")
    refund = Refund.objects.create(
        payment=payment, amount=1, state="refused", reason="Rain", created_at=payment.created_at
    )
    page = open_as_accountant(desk, size=chromium.PHONE)
    clicks = Clicks(page)

    page.get_by_role("link", name="Refund of $1.00").click()
    expect(page.get_by_role("button", name="Retry the refund")).to_be_visible()
    assert accessibility.scan(page) == []
    page.get_by_role("button", name="Mark as refunded manually").click()
    page.get_by_label("How the money was returned").fill("Bank transfer")
    page.get_by_label("Reference").fill("TX-77")
    assert accessibility.scan(page) == []
    page.get_by_role("button", name="Mark as refunded manually").click()

    expect(page.get_by_text("refunded manually.")).to_be_visible()
    assert clicks.count <= 3
    refund.refresh_from_db()
    assert (refund.state, refund.reason) == ("outside", "Bank transfer, TX-77 (Rain)")
