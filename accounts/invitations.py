"""Links by e-mail with which staff choose a password: invitations, and forgotten passwords."""

from datetime import datetime
from typing import Any

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
    context = {"invited_by": invited_by.get_full_name()}
    _send_link("invitation", user, INVITATION_KIND, base_url=base_url, now=now, **context)


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
        _send_link("forgotten_password", user, PASSWORD_RESET_KIND, base_url=base_url, now=now)


@in_transaction
def _send_link(
    template: str, user: User, kind: str, *, base_url: str, now: datetime, **context: Any
) -> None:
    """The link is valid for ``PASSWORD_RESET_TIMEOUT``, and until a password is set."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    path = reverse("admin:accounts_invitation", args=[uid, token])
    emails.send(
        template,
        user_id=user.pk,
        to=user.email,
        kind=kind,
        button="Choose a password",
        now=now,
        url=f"{base_url}{path}",
        **context,
    )
