"""The PDF of a receipt, read with another library."""

import io

import pytest
from pypdf import PdfReader
from pypdf.generic import IndirectObject

from reservations.models import Receipt
from reservations.receipts.rendering import render_receipt
from tests.factories_people import SavedCardFactory
from tests.reservations.receipts.helpers import (
    issue,
    make_seller,
    make_taxed_booking,
    read_text,
    refund,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def booking(db):
    make_seller()
    return make_taxed_booking()


def rename(booking, **names):
    for name, value in names.items():
        setattr(booking.user, name, value)
    booking.user.save()


def test_document_shows_seller_buyer_lines_tax_and_payment(booking):
    rename(booking, first_name="Ada", last_name="Lovelace", company_name="Engines Ltd")
    issue(booking)
    refund(booking.payments.get(), "33.00", reason="Projector broken")
    receipt, note = issue(booking)

    text = read_text(receipt)
    for part in (
        *("Glenarm Rooms Inc.", "1600 Glenarm Place", "EIN 12-3456789", "Receipt 2027-000001"),
        *("Issued on Mon, Mar 1, 2027", f"Reservation {booking.pk}: Boardroom at Glenarm"),
        *("Ada Lovelace", "Engines Ltd", "Tax, 10%", "$7.50", "$75.00", "$82.50"),
        *("Visa ending 4242, Mon, Mar 1, 2027", "Test: no money was moved."),
    ):
        assert part in text
    text = read_text(note)
    for part in (
        "Credit note CN-2027-000001",
        "2027-000001",
        "Projector broken",
        "$33.00",
        "$3.00",
    ):
        assert part in text


def test_buyer_has_the_billing_address_of_the_time_of_issue(booking):
    rename(booking, first_name="Ada", last_name="Lovelace", company_name="")
    address = {"street1": "1 Main Street", "street2": "Floor 2", "state": ""}
    card = SavedCardFactory(user=booking.user, company_name="Engines Ltd", **address)
    [receipt] = issue(booking)
    buyer = ["Engines Ltd", "Ada Lovelace", "1 Main Street", "Floor 2", "Denver, 80202", "US"]
    assert receipt.content["buyer"] == buyer
    assert "\n".join(buyer) in read_text(receipt)

    card.delete()
    refund(booking.payments.get(), "33.00")
    receipt, note = issue(booking)
    assert receipt.content["buyer"] == note.content["buyer"] == buyer


def test_same_row_gives_the_same_bytes(booking):
    [receipt] = issue(booking)
    first = render_receipt(receipt)

    rename(booking, first_name="Somebody", last_name="Else")

    assert render_receipt(Receipt.objects.get()) == first


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Đặng Žofie Ærø", "Đặng Žofie Ærø"),
        ("Ελένη Юлия თამარ", "Ελένη Юлия თამარ"),
        ("王小明 東京 カナ 김민수", "王小明 東京 カナ 김민수"),
        ("שלום", "שלום"),
        ("ਸਿੰਘ Singh", "▯▯▯▯ Singh"),
    ],
)
def test_names_in_any_script_are_shown_or_visibly_replaced(booking, name, shown):
    rename(booking, first_name=name, last_name="", company_name="محمد हिन्दी \u202e(x) \\) /AA ไทย")

    [receipt] = issue(booking)
    text = read_text(receipt)

    assert shown in text
    assert ("this document cannot show: U+0A38, U+0A3F, U+0A70, U+0A18" in text) == ("▯" in shown)


def test_document_contains_no_actions_or_links_whatever_the_texts_say(booking):
    rename(booking, first_name="https://evil.example", last_name="<a>(/URI)</a> **x** /JavaScript")

    reader = PdfReader(io.BytesIO(render_receipt(issue(booking)[0])))

    names = {name for each in _iterate(reader.trailer["/Root"]) for name in each}
    # Which part of the first page is shown first.
    assert reader.trailer["/Root"]["/OpenAction"][1] == "/FitH"
    assert not names & {"/AA", "/Annots", "/URI", "/JS", "/JavaScript", "/Names"}
    assert "/Contents" in names


def _iterate(value, seen=None):
    """All dictionaries of a PDF."""
    seen = set() if seen is None else seen
    if isinstance(value, IndirectObject):
        if value.idnum in seen:
            return
        seen.add(value.idnum)
        value = value.get_object()
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _iterate(each, seen)
    elif isinstance(value, list):
        for each in value:
            yield from _iterate(each, seen)


def test_long_bill_continues_on_another_page_with_its_number(booking):
    [receipt] = issue(booking)
    receipt.content["lines"] *= 60

    pages = PdfReader(io.BytesIO(render_receipt(receipt))).pages

    assert len(pages) > 1
    for number, page in enumerate(pages, start=1):
        assert f"Receipt 2027-000001, page {number}" in page.extract_text()
