"""The page of a reservation's receipts, the list of all, and the sellers."""

import io

import pytest
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone
from PIL import Image
from pypdf import PdfReader

from accounts import outbox
from accounts.models import User
from accounts.models.account_erasure import NO_ADDRESS_DOMAIN
from reservations.models import Receipt, Seller
from reservations.receipts.rendering import render_receipt
from tests.admin_forms import form_of
from tests.reservations.receipts.helpers import (
    issue,
    make_seller,
    make_taxed_booking,
    read_text,
    refund,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


@pytest.fixture
def booking():
    return make_taxed_booking()


@pytest.fixture
def page(booking):
    return reverse("admin:reservations_reservation_receipts", args=[booking.pk])


def test_desk_issues_a_receipt_opens_it_and_sends_it(client, staff, booking, page):
    make_seller()
    desk = staff("Desk", booking.room.center)
    client.force_login(desk)
    detail = reverse("admin:reservations_reservation_change", args=[booking.pk])
    assert f'href="{page}"' in client.get(detail).text
    assert "Issue receipt of $82.50" in client.get(page).text

    opened = client.post(page, follow=True)

    receipt = Receipt.objects.get()
    assert receipt.issued_by == desk
    assert opened["Content-Type"] == "application/pdf"
    assert "no-store" in opened["Cache-Control"]
    assert opened["Content-Disposition"] == 'inline; filename="receipt-2027-000001.pdf"'
    assert opened.content.startswith(b"%PDF")
    shown = client.get(page).text
    assert opened.request["PATH_INFO"] in shown
    assert "Issue receipt" not in shown

    sent = client.post(page, {"send": receipt.pk}, follow=True).text
    assert f"will be sent to {booking.user.email}" in sent
    list(outbox.send_due_messages(clock=timezone.now))
    [message] = [each for each in mail.outbox if "receipt" in each.subject]
    assert message.to == [booking.user.email]
    assert message.attachments == [("receipt-2027-000001.pdf", opened.content, "application/pdf")]

    User.objects.filter(pk=booking.user_id).update(email=f"1@{NO_ADDRESS_DOMAIN}")
    refused = client.post(page, {"send": receipt.pk}, follow=True).text
    assert "The customer has no e-mail address" in refused


def test_file_of_receipts_has_net_tax_and_gross_that_add_up(client, staff, booking):
    make_seller()
    issue(booking)
    refund(booking.payments.get(), "27.50")
    issue(booking)
    client.force_login(staff("Accountant", booking.room.center))
    lists = reverse("admin:reservations_receipt_changelist")
    export = reverse("admin:reservations_receipt_list_export", args=["csv"])
    assert export in client.get(lists).text

    lines = b"".join(client.get(export).streaming_content).decode("utf-8-sig").splitlines()

    name, center = booking.user.get_full_name(), booking.room.center.name
    assert lines[0].startswith("Number,Type,Day (local),Reservation,Customer,Center,Rate,Net,Tax")
    booked = f"2027-03-01,{booking.pk},{name},{center},"
    rate, card = '"Tax, 10%"', "Visa ending 4242, Mon, Mar 1, 2027"
    assert lines[1:] == [
        f'CN-2027-000001,Credit note,{booked}{rate},-25.00,-2.50,-27.50,USD,"Refund, {card}"',
        f'2027-000001,Receipt,{booked}{rate},75.00,7.50,82.50,USD,"{card}"',
    ]


def test_page_says_what_is_missing_without_a_seller(client, staff, booking, page):
    client.force_login(staff("Desk", booking.room.center))
    assert "Please ask a manager" in client.get(page).text
    assert "details are missing" in client.post(page, follow=True).text
    assert not Receipt.objects.exists()

    client.force_login(staff("Manager", booking.room.center))
    form = reverse("admin:reservations_seller_add")
    assert f'href="{form}"' in client.get(page).text
    fields = {"legal_name": "Glenarm Rooms Inc.", "legal_address": "Denver"}
    assert "This field is required" in client.post(form, fields).text
    client.post(form, {**fields, "center": booking.room.center.pk})
    assert Seller.objects.get().center == booking.room.center
    assert "Issue receipt" in client.get(page).text


def test_logo_of_the_seller_is_on_its_receipts_also_after_another_one_is_uploaded(
    client, staff, booking, page
):
    seller = make_seller(center=booking.room.center)
    client.force_login(staff("Manager", booking.room.center))
    form = reverse("admin:reservations_seller_change", args=[seller.pk])

    def upload(color):
        Image.new("RGB", (900, 300), color).save(picture := io.BytesIO(), "PNG")
        logo = ContentFile(picture.getvalue(), "logo.png")
        saved = client.post(form, {**form_of(client.get(form)), "logo": logo})
        assert saved.status_code == 302

    refused = client.post(form, {**form_of(client.get(form)), "logo": ContentFile(b"no", "a.png")})
    assert "logo" in refused.context["adminform"].form.errors
    upload("red")
    [receipt] = issue(booking)
    document = render_receipt(receipt)
    assert len(PdfReader(io.BytesIO(document)).pages[0].images) == 1

    upload("blue")
    assert render_receipt(receipt) == document
    refund(booking.payments.get(), "27.50")
    _, credit_note = issue(booking)
    assert credit_note.content["logo"] == receipt.content["logo"]
    default_storage.delete(receipt.content["logo"])
    assert "Glenarm Rooms Inc." in read_text(receipt)


def test_who_may_only_view_receipts_neither_issues_nor_sends_them(client, staff, booking, page):
    make_seller()
    [receipt] = issue(booking)
    client.force_login(staff("Desk", booking.room.center))
    may_add = Permission.objects.get(codename="add_receipt")
    may_add.group_set.clear()

    assert client.get(page).status_code == 200
    for data in ({}, {"send": receipt.pk}):
        assert client.post(page, data).status_code == 403
    assert (booking.receipts.count(), mail.outbox) == (1, [])


def test_list_finds_a_receipt_by_number_and_reservation_and_changes_none(office, booking, page):
    make_seller()
    [receipt] = issue(booking)
    listing = reverse("admin:reservations_receipt_changelist")

    for term in (receipt.number, booking.pk, f"{receipt.total:.2f}", "$4711.00"):
        shown = office.get(listing, {"q": term}).text
        assert (f"Open PDF of {receipt.number}" in shown) == (term != "$4711.00")
    change = reverse("admin:reservations_receipt_change", args=[receipt.pk])
    assert office.get(change).status_code == 200
    assert office.post(change, {"number": "X"}).status_code == 403
    delete = reverse("admin:reservations_receipt_delete", args=[receipt.pk])
    assert office.post(delete).status_code == 403
    # One that was emptied says so.
    Receipt.objects.update(content={})
    assert "need not be kept any longer" in office.get(page).text
    pdf = reverse("admin:reservations_receipt_file", args=[booking.pk, receipt.number])
    assert office.get(pdf).status_code == 404
    assert office.post(page, {"send": receipt.pk}).status_code == 404
