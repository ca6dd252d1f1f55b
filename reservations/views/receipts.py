"""Receipts as PDF: the operation that returns their addresses, and the files (B28.5)."""

import datetime as dt

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.limits import RECEIPT
from accounts.models import User
from reservations.models import Receipt, ReceiptType
from reservations.models.reservation import get_own_reservation
from reservations.receipts import sending
from reservations.receipts.issuing import issue_documents
from reservations.receipts.rendering import build_pdf_response
from reservations.serializers import OwnReservationInput
from roombook.api.fields import ChoiceField, DateTimeField, DecimalField, TextField, UrlField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import NotFound, ReceiptNotAvailable, TooManyRequests
from roombook.middleware import secret_page


class ReceiptInfo(ContractSerializer):
    """A receipt or a credit note. Responses only."""

    Number = TextField(help_text="Unique. It never changes.")
    Type = ChoiceField(
        ReceiptType,
        contract_type="string",
        help_text="`Receipt`, or `CreditNote` for what was refunded of earlier receipts.",
    )
    IssuedAt = DateTimeField(help_text="When it was issued.")
    Total = DecimalField(help_text="The amount paid, or refunded.")
    Currency = TextField(help_text="ISO 4217.")
    Url = UrlField(help_text="The PDF. Absolute; it needs no Token, so keep it secret.")
    ExpiresAt = DateTimeField(help_text="Until then Url is valid.")


class GetReceipts(Operation):
    """Return all receipts and credit notes of a reservation, the oldest first.

    What was paid and has no receipt yet gets one now. Later calls return the same documents, with
    new addresses.
    """

    returns_secret = True
    csv_rows_field = "Receipts"
    errors = (NotFound, ReceiptNotAvailable, TooManyRequests)
    example = {"ReservationId": 1}
    Input = OwnReservationInput

    class Output(ContractSerializer):
        Receipts = ReceiptInfo(many=True, help_text="At least one.")

    def perform(self, user: User, *, reservation_id: int) -> dict[str, object]:
        now = timezone.now()
        reservation = get_own_reservation(reservation_id, user)
        RECEIPT.attempt(user.pk, now=now)
        issue_documents(reservation, by=None, now=now)
        documents = reservation.receipts.exclude(content={}).order_by("pk")
        expires_at = now + sending.ADDRESS_LIFETIME
        return {"receipts": [_describe(each, expires_at) for each in documents]}


def _describe(receipt: Receipt, expires_at: dt.datetime) -> dict[str, object]:
    return {
        "number": receipt.number,
        "type": receipt.type,
        "issued_at": receipt.issued_at,
        "total": receipt.total,
        "currency": receipt.currency,
        "url": reverse("receipt-file", args=[sending.sign_receipt(receipt)]),
        "expires_at": expires_at,
    }


@secret_page
@require_safe
def show_receipt(request: HttpRequest, secret: str) -> HttpResponse:
    """Return the PDF of an address that Get receipts returned; 404 once it has expired."""
    receipt = sending.find_signed_receipt(secret)
    if receipt is None:
        raise Http404
    RECEIPT.attempt(receipt.reservation.user_id, now=timezone.now())
    return build_pdf_response(receipt, is_download=True)
