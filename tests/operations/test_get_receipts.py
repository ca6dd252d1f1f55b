"""POST /api/reservations/receipt, and the files at its addresses"""

import datetime as dt

import pytest
import time_machine

from accounts.limits import RECEIPT
from payments.models import Payment
from reservations.booking.cancellation import cancel
from reservations.models import Receipt
from roombook.personal_data import erase_expired_data
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import NOW, make_booking, make_draft
from tests.http import jsonp, post, post_csv, table
from tests.reservations.receipts.helpers import make_seller, make_taxed_booking, read_pdf

pytestmark = pytest.mark.django_db

PATH = "/api/reservations/receipt"


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False) as clock:
        yield clock


@pytest.fixture
def booking(ada):
    make_seller()
    return make_taxed_booking(user=ada)


def call(client, token, booking, suffix=""):
    return post(client, PATH + suffix, {"Token": token, "ReservationId": booking.pk})


def get_receipts(client, token, booking):
    response = call(client, token, booking)
    assert response.status_code == 200, response.content
    return response.json()["Receipts"]


def test_receipt_is_issued_once_and_its_address_needs_no_token(client, token, booking, settings):
    settings.PUBLIC_URL = "https://rooms.example.com"
    [receipt] = get_receipts(client, token, booking)
    [again] = get_receipts(client, token, booking)

    url = receipt.pop("Url")
    assert again == {**receipt, "Url": url}
    assert receipt == {
        "Number": "2027-000001",
        "Type": "Receipt",
        "IssuedAt": "2027-03-01T16:00:00+00:00",
        "Total": 82.5,
        "Currency": "USD",
        "ExpiresAt": "2027-03-01T16:15:00+00:00",
    }
    assert url.startswith("https://rooms.example.com/receipt-file/")
    response = client.get(url)
    assert response.headers["Content-Disposition"] == (
        'attachment; filename="receipt-2027-000001.pdf"'
    )
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Content-Type"] == "application/pdf"
    assert "Receipt 2027-000001" in read_pdf(response.content)
    assert client.post(url).status_code == 405


def test_receipts_answer_csv_and_jsonp(client, token, booking):
    head, row = table(
        post_csv(client, PATH + ".csv", {"Token": token, "ReservationId": booking.pk})
    )
    assert dict(zip(head, row, strict=True))["Receipts.Number"] == "2027-000001"
    assert jsonp(call(client, token, booking, "?callback=go"), "go")["Receipts"]


def test_refund_adds_a_credit_note(client, token, booking):
    get_receipts(client, token, booking)
    cancel(booking.pk, now=NOW)

    _, note = get_receipts(client, token, booking)

    assert (note["Number"], note["Type"], note["Total"]) == ("CN-2027-000001", "CreditNote", 82.5)
    assert "Takes back a part of: 2027-000001" in read_pdf(client.get(note["Url"]).content)


def test_receipt_of_others_and_without_payment_is_refused(client, token, booking, ada):
    stranger = issue_token(UserFactory())
    assert call(client, stranger, booking).status_code == 404
    draft = make_draft(ada)
    response = call(client, token, draft)
    assert (response.status_code, response.json()["Error"]["Summary"]) == (
        *(409, "ReceiptNotAvailable"),
    )
    free = make_booking(ada)
    Payment.objects.filter(reservation=free).update(captured_at=None, state="voided")
    assert call(client, token, free).status_code == 409
    assert not Receipt.objects.exists()


def test_address_ends_after_15_minutes_and_with_the_account(client, token, booking, clock):
    [receipt] = get_receipts(client, token, booking)
    path = receipt["Url"]
    for forged in (
        path.replace(".pdf", "x.pdf"),
        path.replace("file/", "file/x"),
        "/receipt-file/x.pdf",
    ):
        assert client.get(forged).status_code == 404
    clock.shift(dt.timedelta(minutes=14, seconds=59))
    assert client.get(path).status_code == 200
    clock.shift(dt.timedelta(seconds=2))
    assert client.get(path).status_code == 404

    [receipt] = get_receipts(client, token, booking)
    booking.user.is_active = False
    booking.user.save()
    assert client.get(receipt["Url"]).status_code == 404


def test_lists_and_files_of_an_account_are_limited(client, token, booking):
    [receipt] = get_receipts(client, token, booking)
    for _ in range(RECEIPT.maximum - 1):
        RECEIPT.attempt(booking.user_id, now=NOW)

    answers = client.get(receipt["Url"]), call(client, token, booking)

    assert [each.status_code for each in answers] == [429, 429]
    assert all("Retry-After" in each.headers for each in answers)


def test_receipt_is_emptied_after_the_years_of_bookkeeping(client, token, booking, clock, settings):
    settings.BOOKS_YEARS = 10
    [receipt] = get_receipts(client, token, booking)
    erase_expired_data(now=NOW + dt.timedelta(days=3659))
    assert Receipt.objects.get().content
    counts, failed = erase_expired_data(now=NOW + dt.timedelta(days=3661))

    assert (counts["receipts"], failed) == (1, [])
    stored = Receipt.objects.get()
    assert (stored.number, stored.total, stored.content) == ("2027-000001", booking.total_cost, {})
    assert client.get(receipt["Url"]).status_code == 404
