"""Signs accounts in, and changes passwords."""

from datetime import datetime

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from accounts import emails
from accounts.limits import SignInAttempts
from accounts.models import ApiToken, CodePurpose, User, canonicalize_email
from accounts.passwords import make_password, normalize_password, verify_password
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidCredentials, InvalidRequest
from roombook.metrics.counters import SIGN_IN_FAILURES


def sign_in(*, email: str, password: str, network_address: str, now: datetime) -> tuple[User, str]:
    """Sign a device in; returns the account and the secret that the device sends as Token."""
    user, is_hash_outdated = verify_credentials(
        email=email, password=password, network_address=network_address, now=now
    )
    attempts = SignInAttempts(email, network_address)
    return _issue_token(user, make_password(password) if is_hash_outdated else None, attempts, now)


def verify_credentials(
    *, email: str, password: str, network_address: str, now: datetime
) -> tuple[User, bool]:
    """Return the account, and whether its password hash should be upgraded.

    The back office's sign-in form calls this too, so that both share one rate limit.

    Raises:
        InvalidCredentials: for an unknown address, a wrong password and a disabled account alike,
            after the same amount of work.
        TooManyRequests: too many failed attempts.
    """
    attempts = SignInAttempts(email, network_address)
    attempts.check(now)
    user = User.objects.filter(email=canonicalize_email(email)).first()
    if user is None:
        # Hash the password here too, so that the response is not faster for a missing account.
        make_password(password)
        is_correct, is_hash_outdated = False, False
    else:
        is_correct, is_hash_outdated = verify_password(password, user.password)
    if user is None or not is_correct or not user.is_active:
        SIGN_IN_FAILURES.inc()
        attempts.count(now)
        raise InvalidCredentials
    # Concurrent attempts may have filled the window: then the correct password came too late too.
    attempts.check(now)
    return user, is_hash_outdated


@in_transaction
def _issue_token(
    user: User, new_hash: str | None, attempts: SignInAttempts, now: datetime
) -> tuple[User, str]:
    locked = User.objects.lock(user.pk)
    # The password may have been changed since it was verified.
    if locked.password != user.password or not locked.is_active:
        raise InvalidCredentials
    if new_hash:
        locked.password = new_hash
    locked.last_login = now
    locked.save(update_fields=["password", "last_login"])
    attempts.record_right_password(locked, now)
    return locked, ApiToken.issue(locked, now=now)


def change_password(
    user: User,
    *,
    current_password: str,
    new_password: str,
    confirm_new_password: str,
    token: ApiToken,
    network_address: str,
    now: datetime,
) -> None:
    """Change the password and sign out every other device.

    A wrong current password counts as a failed sign-in, so that guesses on a stolen phone are
    limited too.

    Raises:
        InvalidRequest: names the wrong field; nothing was changed.
        TooManyRequests: too many failed attempts.
    """
    require_password(
        user,
        current_password,
        field="current_password",
        network_address=network_address,
        now=now,
    )
    require_same_passwords(new_password, confirm_new_password)
    if normalize_password(new_password) == normalize_password(current_password):
        raise InvalidRequest({"new_password": "The new password must differ from the current one."})
    if problem := find_password_problem(new_password, user):
        raise InvalidRequest({"new_password": problem})
    # Hashed before the row is locked, because hashing takes long.
    _replace_password_hash(user, make_password(new_password), token, now)


def require_password(
    user: User, password: str, *, field: str, network_address: str, now: datetime
) -> None:
    """Verify the password of a signed-in account. A wrong one counts as a failed sign-in.

    Raises:
        InvalidRequest: names ``field``.
        TooManyRequests: too many failed attempts.
    """
    attempts = SignInAttempts(user.email, network_address)
    attempts.check(now)
    if not verify_password(password, user.password)[0]:
        attempts.count(now)
        raise InvalidRequest({field: "This is not your current password."})
    # Concurrent attempts may have filled the window: then the right password came too late too.
    attempts.check(now)


def lock_verified(user: User, *, field: str) -> User:
    """Lock an account whose password was just verified, and return its current row.

    Raises InvalidRequest: the password was changed or the account disabled since; names ``field``.
    """
    locked = User.objects.lock(user.pk)
    if locked.password != user.password or not locked.is_active:
        raise InvalidRequest({field: "The password was changed elsewhere meanwhile."})
    return locked


def require_same_passwords(new_password: str, confirm_new_password: str) -> None:
    """Raise InvalidRequest if the two differ."""
    if normalize_password(new_password) != normalize_password(confirm_new_password):
        raise InvalidRequest({"confirm_new_password": "The two new passwords differ."})


def find_password_problem(password: str, user: User) -> str:
    """Return what is wrong with a new password of the account (B7.4), or an empty text."""
    try:
        validate_password(normalize_password(password), user)
    except ValidationError as error:
        return " ".join(error.messages)
    return ""


@in_transaction
def _replace_password_hash(user: User, new_hash: str, kept_token: ApiToken, now: datetime) -> None:
    locked = lock_verified(user, field="current_password")
    set_password_hash(locked, new_hash, kept_token=kept_token, now=now)


def set_password_hash(
    locked: User, new_hash: str, *, kept_token: ApiToken | None, now: datetime
) -> None:
    """Save the hash of a locked account, sign out all other devices and notify the owner.

    A pending change of the e-mail address ends, but can still be revoked.
    """
    locked.password = new_hash
    locked.save(update_fields=["password"])
    locked.email_codes.exclude(purpose=CodePurpose.REVOCATION).delete()
    tokens = locked.tokens.all()
    (tokens.exclude(pk=kept_token.pk) if kept_token else tokens).delete()
    emails.send_password_changed(locked.pk, locked.email, now=now)
