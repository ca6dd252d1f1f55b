"""A day at a center, in a browser: each role does its work."""

import re
from decimal import Decimal

from playwright.sync_api import Page, expect

from centers.models import Rate
from reservations.models import Reservation
from reservations.models.status import Status
from tests.browser.day import CENTER, Phone, open_day, request_for, room


def status_of(reservation_id: int) -> str:
    return Reservation.objects.get(pk=reservation_id).status


def confirm(page: Page, word: str) -> None:
    page.locator("#preview").get_by_role("button", name=word, exact=True).click()


def test_desk_answers_requests_from_dashboard(desk):
    boardroom = room("Boardroom")
    day = open_day(boardroom)
    first, second = request_for(boardroom, day, 9), request_for(boardroom, day, 13)
    page = desk("desk")

    page.get_by_role("link", name=f"Approve reservation {first.pk}").click()
    expect(page.locator("#preview")).to_contain_text("Approve this request?")
    expect(page.locator("#preview")).to_contain_text(f"${first.total_cost}")
    assert status_of(first.pk) == Status.PENDING
    confirm(page, "Approve")
    expect(page.locator(".reservation-head")).to_contain_text("Confirmed")

    page.goto(page.url.split("/admin/")[0] + "/admin/")
    page.get_by_role("link", name=f"Decline reservation {second.pk}").click()
    confirm(page, "Decline")
    expect(page.locator(".reservation-head")).to_contain_text("Declined")

    assert (status_of(first.pk), status_of(second.pk)) == (Status.CONFIRMED, Status.DECLINED)
    assert {each.payments.get().state for each in (first, second)} == {"captured", "voided"}


def test_draft_from_timeline_is_paid_and_cancelled_with_refund(desk, live_server):
    aspen = room("Aspen")
    day = open_day(aspen)
    page = desk("desk")

    page.goto(f"{live_server.url}/admin/reservations/reservation/timeline/")
    page.fill("input[name=date]", f"{day}")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("region").get_by_role(
        "link", name=re.compile(r"Aspen, .*, 10:00")
    ).first.click()
    page.locator("summary", has_text="New customer").click()
    page.fill("input[name=email]", "guest@roombook.example")
    expect(page.locator("#draft-preview")).to_contain_text("Available")
    expect(page.locator("#draft-preview tfoot")).to_contain_text("$")
    total = page.locator("#draft-preview tfoot .number").inner_text()
    page.get_by_role("button", name="Save draft and hold room").click()
    expect(page.locator(".reservation-head")).to_contain_text("Draft")

    made = Reservation.objects.latest("pk")
    assert (made.room, made.status, f"${made.total_cost}") == (aspen, Status.NEW, total)
    assert made.start.astimezone(aspen.center.zone).hour == 10
    assert made.created_by.email == "desk@roombook.example"
    assert Phone(live_server.url).pay(made.pk)["Status"] == "Confirmed"

    page.reload()
    expect(page.locator(".reservation-head")).to_contain_text("Confirmed")
    page.get_by_role("link", name="Cancel").click()
    expect(page.locator("#preview")).to_contain_text(total)
    assert status_of(made.pk) == Status.CONFIRMED
    confirm(page, "Cancel the reservation")
    expect(page.locator(".reservation-head")).to_contain_text("Cancelled")
    assert made.payments.get().refunds.get().amount == made.total_cost


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
    expect(page.get_by_text("At most 2 places after the point.")).to_be_visible()
    expect(page.get_by_role("button", name="Confirm import")).to_have_count(0)
    assert {rate.pk: rate.hourly for rate in Rate.objects.filter(pk__in=before)} == before

    send(f"{good},31.00", f"{bad},12.34")
    page.get_by_role("button", name="Confirm import").click()
    expect(page.get_by_text("Imported: 0 new, 2 changed")).to_be_visible()
    assert [Rate.objects.get(pk=pk).hourly for pk in before] == [31, Decimal("12.34")]
