"""Links by e-mail with which staff choose a password: invitations, and forgotten passwords."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator, default_token_generator
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts import emails
from accounts.limits import SignInAttempts
from accounts.models import User
from accounts.models.outbox_message import INVITATION_KIND, PASSWORD_RESET_KIND
from accounts.profile import canonicalize_valid_email
from roombook.db.transactions import in_transaction


class ForgottenPasswordTokens(PasswordResetTokenGenerator):
    """The tokens of links for forgotten passwords.

    With Django's own, such a link would also open the page of an invitation, which does not require
    two-step sign-in.
    """

    key_salt = "accounts.invitations.forgotten_password"


FORGOTTEN_PASSWORD_TOKENS = ForgottenPasswordTokens()


def may_reset_password(user: User) -> bool:
    """Return whether a message by e-mail is enough to set a new password.

    An account of staff opens the back office. Without a second factor, anybody who
    reads the e-mails could enter it.
    """
    is_staff = user.is_staff or user.is_superuser
    return user.is_active and (not is_staff or user.second_factor_since is not None)


def send_invitation(user: User, *, base_url: str, invited_by: User, now: datetime) -> None:
    """E-mail a member of staff a link where they choose a password."""
    _send_link(
        "invitation",
        user,
        INVITATION_KIND,
        url=_build_url(base_url, "accounts_invitation", user, default_token_generator),
        now=now,
        invited_by=invited_by.get_full_name(),
    )


def send_forgotten_password(
    email: str, *, network_address: str, base_url: str, now: datetime
) -> None:
    """E-mail a member of staff with two-step sign-in a link where they choose a new password.

    Nobody else gets one (`may_reset_password`).

    Raises:
        InvalidRequest: this is no e-mail address.
        TooManyRequests: too many requests of the network, or for this address.
    """
    email = canonicalize_valid_email(email, field="email_address")
    SignInAttempts(email, network_address).count_code(now)
    user = User.objects.filter(is_staff=True, email=email).first()
    if user is not None and may_reset_password(user):
        url = _build_url(base_url, "accounts_new_password", user, FORGOTTEN_PASSWORD_TOKENS)
        _send_link("forgotten_password", user, PASSWORD_RESET_KIND, url=url, now=now)


def _build_url(base_url: str, page: str, user: User, tokens: PasswordResetTokenGenerator) -> str:
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return base_url + reverse(f"admin:{page}", args=[uid, tokens.make_token(user)])


@in_transaction
def _send_link(
    template: str, user: User, kind: str, *, url: str, now: datetime, **context: str
) -> None:
    """The link is valid for ``PASSWORD_RESET_TIMEOUT``, and until a password is set."""
    emails.send(
        template,
        user_id=user.pk,
        to=user.email,
        kind=kind,
        button="Choose a password",
        expires_at=now + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
        now=now,
        url=url,
        **context,
    )
