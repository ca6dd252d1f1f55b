"""Resets forgotten passwords with a code by e-mail (B22.4)."""

from datetime import datetime

from django.db import IntegrityError

from accounts import email_codes, emails
from accounts.limits import SignInAttempts
from accounts.models import CodePurpose, EmailCode, User
from accounts.passwords import make_password
from accounts.profile import EMAIL_TAKEN, canonicalize_valid_email
from accounts.sign_in import find_password_problem, require_same_passwords, set_password_hash
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest


def request_password_reset(*, email: str, network_address: str, now: datetime) -> None:
    """E-mail a code for `reset_password`. Without an account, the same is done but nothing sent.

    Raises:
        InvalidRequest: this is no e-mail address.
        TooManyRequests: too many requests of the network, or for this address.
    """
    email = canonicalize_valid_email(email, field="email_address")
    attempts = SignInAttempts(email, network_address)
    attempts.count_code(now)
    _find_account_and_send_code(email, attempts.network_digest, now)


@in_transaction
def _find_account_and_send_code(email: str, network: str, now: datetime) -> None:
    user = User.objects.filter(email=email).first()
    send_code(email, user, network=network, is_for_sign_up=False, now=now)


def send_code(
    email: str, user: User | None, *, network: str, is_for_sign_up: bool, now: datetime
) -> None:
    """Write an e-mail with a code, if the account may use one.

    The same rows are written otherwise, so that the time of a request says nothing to strangers.
    """
    is_allowed = user is not None and _may_reset(user)
    code = email_codes.issue(
        CodePurpose.PASSWORD_RESET,
        email,
        user if is_allowed else None,
        network=network,
        now=now,
    )
    is_active = user is not None and user.is_active
    emails.send_password_reset_code(
        user.pk if user else None,
        email,
        code if is_allowed else None,
        is_for_sign_up=is_for_sign_up,
        is_active=is_active,
        # Nobody can make the service write to strangers by asking for a new password.
        expires_at=now + email_codes.LIFETIME if is_active or is_for_sign_up else now,
        now=now,
    )


def _may_reset(user: User) -> bool:
    """Whether a code by e-mail is enough.

    An account of staff opens the back office. Without a second factor, anybody who
    reads the e-mails could enter it.
    """
    is_staff = user.is_staff or user.is_superuser
    return user.is_active and (not is_staff or user.second_factor_since is not None)


def reset_password(
    *,
    email: str,
    code: str,
    new_password: str,
    confirm_new_password: str,
    network_address: str,
    now: datetime,
) -> None:
    """Set a new password and sign out all devices. The second factor of staff stays.

    With the code of a notice about a change of the address, also restore the former address.

    Raises:
        InvalidRequest: names the wrong field; nothing was changed.
        TooManyRequests: too many failed attempts.
    """
    require_same_passwords(new_password, confirm_new_password)
    attempts = SignInAttempts(email, network_address)
    found = email_codes.verify(
        {CodePurpose.PASSWORD_RESET, CodePurpose.REVOCATION}, attempts, code=code, now=now
    )
    assert found.user is not None
    if problem := find_password_problem(new_password, found.user):
        raise InvalidRequest({"new_password": problem})
    # Hashed before rows are locked, because hashing takes long.
    new_hash = make_password(new_password)
    try:
        _set_password(found, new_hash, attempts, now)
    except IntegrityError:
        raise InvalidRequest({"email_address": EMAIL_TAKEN}) from None


@in_transaction
def _set_password(code: EmailCode, new_hash: str, attempts: SignInAttempts, now: datetime) -> None:
    assert code.user_id is not None
    user = User.objects.lock(code.user_id)
    email_codes.use(code, now)
    is_revocation = code.purpose == CodePurpose.REVOCATION
    # The account may have changed since the code was sent.
    if not _may_reset(user) or (user.email != code.email and not is_revocation):
        raise email_codes.build_wrong_code_error()
    note = "The password was reset with a code by e-mail."
    with audit_log.acting_as(user):
        if is_revocation:
            user.email_codes.all().delete()
            note = "A change of the e-mail address was revoked, and the password reset."
        if user.email != code.email:
            user.email = code.email
            user.save(update_fields=["email"])
        audit_log.record_change(user, {}, note=note)
    if user.second_factor_since is None:
        # Somebody else who knew the old password may have made them known.
        user.known_networks.all().delete()
    attempts.record_right_password(user, now)
    set_password_hash(user, new_hash, kept_token=None, now=now)
