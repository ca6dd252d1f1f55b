"""A day at a center, in a browser: each role does its work."""

from decimal import Decimal

from playwright.sync_api import expect

from centers.models import Rate
from tests.browser.day import CENTER, room


def test_manager_changes_rate_and_examples_follow(desk, live_server):
    rate = room("Boardroom").rate
    page = desk("manager")

    page.goto(f"{live_server.url}/admin/centers/rate/{rate.pk}/change/")
    examples = page.locator("table", has_text="2.5 hours")
    expect(examples).to_contain_text(f"${rate.hourly * 5 / 2:.2f}")
    page.fill("#id_hourly", "50.00")
    page.fill("#id_half_day", "")
    page.fill("#id_full_day", "")

    expect(page.locator("table", has_text="2.5 hours")).to_contain_text("$125.00")
    rate.refresh_from_db()
    assert rate.hourly != 50
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/admin/centers/rate/")
    rate.refresh_from_db()
    assert (rate.hourly, rate.half_day) == (50, None)


def test_manager_import_with_one_bad_row_imports_nothing(desk, live_server):
    rates = Rate.objects.filter(center__name=CENTER).order_by("pk")[:2]
    before = {rate.pk: rate.hourly for rate in rates}
    good, bad = (f"{rate.pk},{CENTER},{rate.name}" for rate in rates)
    page = desk("manager")

    def send(*rows: str) -> None:
        page.goto(f"{live_server.url}/admin/centers/rate/")
        page.get_by_role("link", name="Import").click()
        text = "\n".join(["id,center,name,hourly", *rows])
        page.set_input_files(
            "input[type=file]",
            {"name": "rates.csv", "mimeType": "text/csv", "buffer": text.encode()},
        )
        page.get_by_role("button", name="Submit").click()

    send(f"{good},31.00", f"{bad},12.345")
    expect(page.get_by_text("Some rows failed to validate")).to_be_visible()
    expect(page.get_by_text("no more than 2 decimal places")).to_be_visible()
    expect(page.get_by_role("button", name="Confirm import")).to_have_count(0)
    assert {rate.pk: rate.hourly for rate in Rate.objects.filter(pk__in=before)} == before

    send(f"{good},31.00", f"{bad},12.34")
    page.get_by_role("button", name="Confirm import").click()
    expect(page.get_by_text("Imported: 0 new, 2 changed")).to_be_visible()
    assert [Rate.objects.get(pk=pk).hourly for pk in before] == [31, Decimal("12.34")]
