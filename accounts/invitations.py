"""Links by e-mail with which staff choose a password: invitations, and forgotten passwords."""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts import emails
from accounts.limits import SignInAttempts
from accounts.models import User
from accounts.models.outbox_message import INVITATION_KIND, PASSWORD_RESET_KIND
from accounts.profile import canonicalize_valid_email
from roombook.db.transactions import in_transaction


def send_invitation(user: User, *, base_url: str, invited_by: User, now: datetime) -> None:
    """E-mail a member of staff a link where they choose a password."""
    service = emails.get_service_name()
    paragraphs = [
        f"{invited_by.get_full_name()} invites you to the back office of {service}.",
        f"Your user name is {user.email}.",
    ]
    heading = f"Your access to {service}"
    _send_link(user, INVITATION_KIND, heading, paragraphs, base_url=base_url, now=now)


def send_forgotten_password(
    email: str, *, network_address: str, base_url: str, now: datetime
) -> None:
    """E-mail a member of staff with two-step sign-in a link where they choose a new password.

    Nobody else gets one: without the second factor, anybody who reads the e-mails could sign in.

    Raises:
        InvalidRequest: this is no e-mail address.
        TooManyRequests: too many requests of the network, or for this address.
    """
    email = canonicalize_valid_email(email, field="email_address")
    SignInAttempts(email, network_address).count_code(now)
    staff = User.objects.filter(is_staff=True, is_active=True, second_factor_since__isnull=False)
    if user := staff.filter(email=email).first():
        paragraphs = [f"Somebody, probably you, requested a new password of {user.email}."]
        heading = f"Reset your {emails.get_service_name()} password"
        _send_link(user, PASSWORD_RESET_KIND, heading, paragraphs, base_url=base_url, now=now)


@in_transaction
def _send_link(
    user: User, kind: str, heading: str, paragraphs: Sequence[str], *, base_url: str, now: datetime
) -> None:
    """The link is valid for ``PASSWORD_RESET_TIMEOUT``, and until a password is set."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    path = reverse("admin:accounts_invitation", args=[uid, token])
    emails.enqueue_email(
        user_id=user.pk,
        to=user.email,
        kind=kind,
        about=f"account {user.pk}",
        heading=heading,
        paragraphs=[*paragraphs, "Choose a password within three days:", f"{base_url}{path}"],
        button="Choose a password",
        now=now,
    )
