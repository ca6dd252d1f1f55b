"""Gives customers their receipts: by an address that is valid for minutes, or by e-mail (B28.5)."""

import datetime as dt

from django.core import signing

from accounts import emails
from accounts.models.outbox_message import RECEIPT_KIND
from reservations.models import Receipt
from reservations.notifications.confirmation import describe_booking
from reservations.notifications.emails import get_subject_key
from reservations.receipts.rendering import get_file_name, render_receipt
from roombook.db.transactions import in_transaction

ADDRESS_LIFETIME = dt.timedelta(minutes=15)
SALT = "reservations.receipts"


def sign_receipt(receipt: Receipt) -> str:
    """Return the secret part of an address of the document."""
    return signing.dumps(receipt.pk, salt=SALT)


def find_signed_receipt(secret: str) -> Receipt | None:
    """Return the document of an address that is still valid, unless the account is disabled."""
    try:
        pk = signing.loads(secret, salt=SALT, max_age=ADDRESS_LIFETIME)
    except signing.BadSignature:
        return None
    rows = Receipt.objects.filter(reservation__user__is_active=True).exclude(content={})
    return rows.select_related("reservation").filter(pk=pk).first()


@in_transaction
def send_receipt(receipt: Receipt, *, now: dt.datetime) -> None:
    """E-mail the document to the customer of the reservation, whose room and center are loaded."""
    user = receipt.reservation.user
    user.require_email()
    heading = f"Your {receipt.get_type_display().lower()} {receipt.number}"
    booking = describe_booking(receipt.reservation)
    emails.enqueue_email(
        user_id=user.pk,
        to=user.email,
        kind=RECEIPT_KIND,
        about=get_subject_key(receipt.reservation_id),
        heading=heading,
        paragraphs=[f"It is attached. It is for {booking}."],
        attachment=(get_file_name(receipt), render_receipt(receipt)),
        now=now,
    )
