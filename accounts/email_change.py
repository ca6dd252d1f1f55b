"""Changes the e-mail address of an account, and confirms addresses (B22.3, B22.5)."""

from datetime import datetime

from django.contrib.auth.hashers import make_password
from django.db import IntegrityError

from accounts import email_codes, emails
from accounts.limits import SignInAttempts
from accounts.models import ApiToken, CodePurpose, EmailCode, OutboxMessage, User, UserType
from accounts.profile import EMAIL_TAKEN, canonicalize_valid_email
from accounts.sign_in import lock_verified, require_password
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest


def request_email_change(
    user: User, *, new_email: str, password: str, network_address: str, now: datetime
) -> None:
    """E-mail a code to the new address for `confirm_email`, and a notice to the present one.

    The notice has a code that takes the account back. An address that another account has gets no
    code, but the same is done.

    Raises:
        InvalidRequest: names the wrong field.
        TooManyRequests: too many failed attempts, or too many requests.
    """
    require_password(user, password, field="password", network_address=network_address, now=now)
    new_email = canonicalize_valid_email(new_email, field="new_email_address")
    if user.type != UserType.ACCOUNT:
        raise InvalidRequest(
            {"new_email_address": "Ask an administrator to change the address of staff."}
        )
    if new_email == user.email:
        raise InvalidRequest({"new_email_address": "This is the address of your account already."})
    # Not for the present address too: requests of strangers would keep the owner from leaving it.
    attempts = SignInAttempts(new_email, network_address)
    attempts.count_code(now)
    _send_codes(user, new_email, attempts.network_digest, now)


@in_transaction
def _send_codes(user: User, new_email: str, network: str, now: datetime) -> None:
    user = lock_verified(user, field="password")
    is_taken = User.objects.filter(email=new_email).exists()
    code = email_codes.issue(
        CodePurpose.EMAIL_CHANGE,
        new_email,
        None if is_taken else user,
        network=network,
        now=now,
    )
    revocation = email_codes.issue(
        CodePurpose.REVOCATION, user.email, user, network=network, now=now
    )
    emails.send_email_change_code(
        user.pk,
        new_email,
        None if is_taken else code,
        expires_at=now + email_codes.LIFETIME,
        now=now,
    )
    emails.send_email_change_notice(
        user.pk,
        user.email,
        new_email,
        revocation,
        expires_at=now + email_codes.REVOCATION_LIFETIME,
        now=now,
    )


def confirm_email(
    *, email: str, code: str, network_address: str, now: datetime
) -> tuple[User, str]:
    """Create the account that signed up, or change its address; sign the device in.

    Returns the account and the secret that the device sends as Token.

    Raises:
        InvalidRequest: names the wrong field; nothing was changed.
        TooManyRequests: too many failed attempts.
    """
    attempts = SignInAttempts(email, network_address)
    found = email_codes.verify(
        {CodePurpose.SIGN_UP, CodePurpose.EMAIL_CHANGE}, attempts, code=code, now=now
    )
    try:
        return _confirm(found, attempts, now)
    except IntegrityError:
        raise InvalidRequest({"email_address": EMAIL_TAKEN}) from None


@in_transaction
def _confirm(code: EmailCode, attempts: SignInAttempts, now: datetime) -> tuple[User, str]:
    user = User.objects.lock(code.user_id) if code.user_id else User(**code.new_account)
    if not user.pk and code.network != attempts.network_digest:
        # Somebody else may have chosen the password, and waits for the owner to confirm the code.
        user.password = make_password(None)
    email_codes.use(code, now)
    if not user.is_active:
        raise email_codes.build_wrong_code_error()
    user.email = code.email
    user.last_login = now
    with audit_log.acting_as(user):
        user.save(update_fields=["email", "last_login"] if user.pk else None)
    # The code was sent before the account existed.
    OutboxMessage.objects.filter(user=None, to=user.email).update(user=user)
    attempts.record_right_password(user, now)
    return user, ApiToken.issue(user, now=now)
