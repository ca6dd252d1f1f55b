"""Gives customers their receipts: by an address that is valid for minutes, or by e-mail (B28.5)."""

import datetime as dt

from django.core.signing import BadSignature, TimestampSigner

from accounts.emails import render_email
from accounts.models import OutboxMessage
from accounts.models.outbox_message import RECEIPT_KIND
from reservations.models import Receipt
from reservations.notifications.confirmation import describe_booking
from reservations.notifications.emails import get_subject_key
from reservations.receipts.rendering import get_file_name, render_receipt
from roombook.db.transactions import in_transaction

ADDRESS_LIFETIME = dt.timedelta(minutes=15)


def sign_receipt(receipt: Receipt) -> str:
    """Return the secret part of an address of the document."""
    return _get_signer().sign_object(receipt.pk)


def find_signed_receipt(secret: str) -> Receipt | None:
    """Return the document of an address that is still valid, unless the account is disabled."""
    try:
        pk = _get_signer().unsign_object(secret, max_age=ADDRESS_LIFETIME)
    except BadSignature:
        return None
    rows = Receipt.objects.filter(reservation__user__is_active=True).exclude(content={})
    return rows.select_related("reservation").filter(pk=pk).first()


@in_transaction
def send_receipt(receipt: Receipt, *, now: dt.datetime) -> None:
    """E-mail the document to the customer of the reservation, whose room and center are loaded."""
    user = receipt.reservation.user
    heading = f"Your {receipt.get_type_display().lower()} {receipt.number}"
    booking = describe_booking(receipt.reservation)
    message = OutboxMessage.enqueue(
        user_id=user.pk,
        to=user.email,
        kind=RECEIPT_KIND,
        about=get_subject_key(receipt.reservation),
        subject=heading,
        now=now,
        **render_email(
            "base", {"heading": heading, "paragraphs": [f"It is attached. It is for {booking}."]}
        ),
    )
    message.attachment = render_receipt(receipt)
    message.attachment_name = get_file_name(receipt)
    message.save(update_fields=["attachment", "attachment_name"])


def _get_signer() -> TimestampSigner:
    return TimestampSigner(salt="reservations.receipts")
