"""Invites members of staff by e-mail."""

from datetime import datetime

from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts import emails
from accounts.models import User
from accounts.models.outbox_message import INVITATION_KIND
from roombook.db.transactions import in_transaction


@in_transaction
def send_invitation(user: User, *, base_url: str, invited_by: User, now: datetime) -> None:
    """E-mail a member of staff a link where they choose a password.

    The link is valid for ``PASSWORD_RESET_TIMEOUT`` (three days), and until a password is set.
    """
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    path = reverse("admin:accounts_invitation", args=[uid, token])
    service = emails.get_service_name()
    paragraphs = [
        f"{invited_by.get_full_name()} invites you to the back office of {service}.",
        f"Your user name is {user.email}.",
        "Choose a password within three days:",
        f"{base_url}{path}",
    ]
    emails.enqueue_email(
        user_id=user.pk,
        to=user.email,
        kind=INVITATION_KIND,
        about=f"account {user.pk}",
        heading=f"Your access to {service}",
        paragraphs=paragraphs,
        button="Choose a password",
        now=now,
    )
