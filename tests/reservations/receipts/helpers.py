"""Bookings with receipts, and what the PDF of a receipt says."""

import io
from decimal import Decimal

from django.db import transaction
from pypdf import PdfReader

from payments import refunds
from payments.models import Payment
from reservations.models import Receipt, Reservation, Seller
from reservations.receipts.issuing import issue_documents
from reservations.receipts.rendering import render_receipt
from tests.factories_reservations import NOW, make_booking, make_room


def make_seller(**fields) -> Seller:
    defaults = {"legal_name": "Glenarm Rooms Inc.", "legal_address": "1600 Glenarm Place\nDenver"}
    return Seller.objects.create(**{**defaults, "tax_number": "EIN 12-3456789", **fields})


def make_taxed_booking(rate="10", *, includes_tax=False, **fields) -> Reservation:
    """Three hours for 75 and 7.50 of tax, or for 75 that contain it, paid by card."""
    room = make_room()
    room.center.tax_rate = Decimal(rate)
    room.center.prices_include_tax = includes_tax
    room.center.save()
    return load(make_booking(room=room, **fields))


def load(reservation: Reservation) -> Reservation:
    return Reservation.objects.select_related("user", "room__center").get(pk=reservation.pk)


def issue(reservation: Reservation, *, now=NOW) -> list[Receipt]:
    """Issue what is due; return all documents of the reservation."""
    issue_documents(load(reservation), by=None, now=now)
    return list(reservation.receipts.order_by("pk"))


def refund(payment: Payment, amount, *, reason="Cancelled", now=NOW):
    """Refund a part of a payment, to the end."""
    with transaction.atomic():
        made = refunds.create_refund(payment, amount=Decimal(amount), reason=reason, now=now)
    return refunds.execute_refund(made, now=now)


def read_text(receipt: Receipt) -> str:
    return read_pdf(render_receipt(receipt))


def read_pdf(content: bytes) -> str:
    """The text of a PDF, each line of a page a line."""
    reader = PdfReader(io.BytesIO(content), strict=True)
    return "\n".join(page.extract_text() for page in reader.pages)
