"""POST /api/reservations/receipt, and the files at its addresses"""

import datetime as dt

import pytest

from accounts.act import Act
from accounts.limits import RECEIPT
from accounts.personal_data import erase_expired_rows
from payments.models import Payment
from reservations.booking.cancellation import cancel
from reservations.models import Receipt
from tests.factories_reservations import NOW, make_booking, make_draft
from tests.operations.helpers import refused
from tests.reservations.receipts.helpers import make_seller, make_taxed_booking, read_pdf

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

PATH = "/api/reservations/receipt"


@pytest.fixture
def booking(ada):
    make_seller()
    return make_taxed_booking(user=ada)


@pytest.fixture
def get_receipts(get, booking):
    return lambda: get(PATH, ReservationId=booking.pk)["Receipts"]


def test_receipt_and_credit_note_are_issued_once_and_their_addresses_need_no_token(
    client, get_receipts, booking, settings
):
    settings.PUBLIC_URL = "https://rooms.example.com"
    [receipt] = get_receipts()
    [again] = get_receipts()

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
    assert response["Content-Disposition"] == 'attachment; filename="receipt-2027-000001.pdf"'
    assert (response["Cache-Control"], response["Content-Type"]) == ("no-store", "application/pdf")
    assert "Receipt 2027-000001" in read_pdf(response.content)
    assert client.post(url).status_code == 405
    cancel(Act(None, NOW), booking.pk)
    _, note = get_receipts()
    assert (note["Number"], note["Type"], note["Total"]) == ("CN-2027-000001", "CreditNote", 82.5)
    assert "Takes back a part of: 2027-000001" in read_pdf(client.get(note["Url"]).content)


def test_receipt_without_payment_is_refused(call, ada):
    make_seller()
    free = make_booking(ada)
    Payment.objects.filter(reservation=free).update(captured_at=None, state="voided", closed_at=NOW)
    for row in (make_draft(ada), free):
        refused(call(PATH, ReservationId=row.pk), 409, "ReceiptNotAvailable")
    assert not Receipt.objects.exists()


def test_address_ends_after_15_minutes_and_with_the_account(client, get_receipts, booking, clock):
    [receipt] = get_receipts()
    path = receipt["Url"]
    for forged in (path.replace(".pdf", "x.pdf"), path.replace("file/", "file/x")):
        assert client.get(forged).status_code == 404
    clock.shift(dt.timedelta(minutes=14, seconds=59))
    assert client.get(path).status_code == 200
    clock.shift(dt.timedelta(seconds=2))
    assert client.get(path).status_code == 404

    [receipt] = get_receipts()
    booking.user.is_active = False
    booking.user.save()
    assert client.get(receipt["Url"]).status_code == 404


def test_lists_and_files_of_an_account_are_limited(client, call, get_receipts, booking):
    [receipt] = get_receipts()
    for _ in range(RECEIPT.maximum - 1):
        RECEIPT.attempt(booking.user_id, now=NOW)

    answers = client.get(receipt["Url"]), call(PATH, ReservationId=booking.pk)

    assert [each.status_code for each in answers] == [429, 429]
    assert all("Retry-After" in each.headers for each in answers)


def test_receipt_is_emptied_after_the_years_of_bookkeeping(client, get_receipts, booking, settings):
    settings.BOOKS_YEARS = 10
    [receipt] = get_receipts()
    erase_expired_rows(now=NOW + dt.timedelta(days=3659))
    assert Receipt.objects.get().content
    counts, failed = erase_expired_rows(now=NOW + dt.timedelta(days=3661))

    assert (counts["receipts"], failed) == (1, [])
    stored = Receipt.objects.get()
    assert (stored.number, stored.total, stored.content) == ("2027-000001", booking.total_cost, {})
    assert client.get(receipt["Url"]).status_code == 404
