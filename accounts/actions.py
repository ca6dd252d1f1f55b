"""What an account can do with itself: sign in and out, change its password and its profile."""

import logging
from datetime import datetime
from typing import Any

from auditlog.context import disable_auditlog
from django.contrib.auth.hashers import make_password, verify_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from accounts import emails, limits
from accounts.models import ApiToken, User, canonicalize_email
from accounts.names import contains_card_number, phone_contains_card_number
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidCredentials, InvalidRequest

logger = logging.getLogger(__name__)


def sign_in(*, email: str, password: str, network_address: str, now: datetime) -> tuple[User, str]:
    """Sign a device in: its account, and the secret that it will send as Token."""
    user, hash_is_old = verify_credentials(
        email=email, password=password, network_address=network_address, now=now
    )
    return _issue_token(user, make_password(password) if hash_is_old else None, now)


def verify_credentials(
    *, email: str, password: str, network_address: str, now: datetime
) -> tuple[User, bool]:
    """The account that a password belongs to, and whether its hash should be made anew.

    Unknown address, wrong password and disabled account are the same failure after the same work.
    The admin's own form asks here too, so that there is no second door to try passwords at.
    """
    tries = SignInAttempts(email, network_address)
    tries.check(now)
    user = User.objects.filter(email=canonicalize_email(email)).first()
    if user is None:
        # Hash once all the same: the answer must not come sooner where there is no account.
        make_password(password)
        is_right, hash_is_old = False, False
    else:
        is_right, hash_is_old = verify_password(password, user.password)
    if user is None or not is_right or not user.is_active:
        tries.count(now)
        raise InvalidCredentials
    # Rivals may have filled the window meanwhile: then the right guess came too late as well.
    tries.check(now)
    return user, hash_is_old


class SignInAttempts:
    """The two limits that a try to sign in counts towards."""

    def __init__(self, email: str, network_address: str) -> None:
        self.network = limits.get_network_key(network_address)
        self.address = f"{limits.hash_email(email)} {self.network}"

    def check(self, now: datetime) -> None:
        limits.SIGN_IN_BY_EMAIL.check(self.address, now=now)
        limits.SIGN_IN_BY_NETWORK.check(self.network, now=now)

    def count(self, now: datetime) -> None:
        limits.SIGN_IN_BY_EMAIL.count(self.address, now=now)
        limits.SIGN_IN_BY_NETWORK.count(self.network, now=now)


@in_transaction
def _issue_token(user: User, new_hash: str | None, now: datetime) -> tuple[User, str]:
    locked = lock_user(user)
    # A password that was changed since it was checked signs nobody in any more.
    if locked.password != user.password or not locked.is_active:
        raise InvalidCredentials
    if new_hash:
        locked.password = new_hash
    locked.last_login = now
    locked.save(update_fields=["password", "last_login"])
    return locked, ApiToken.issue(locked, now=now)


def sign_out(token: ApiToken) -> None:
    """Sign this one device out."""
    ApiToken.objects.filter(pk=token.pk).delete()


def sign_out_everywhere(user: User) -> int:
    """Sign every device of an account out; says how many there were."""
    count, _ = ApiToken.objects.filter(user=user).delete()
    return count


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

    A wrong current password counts as a failed sign-in, so that a stolen phone is no better place
    to guess it.
    """
    tries = SignInAttempts(user.email, network_address)
    tries.check(now)
    if not verify_password(current_password, user.password)[0]:
        tries.count(now)
        raise InvalidRequest({"current_password": "This is not your current password."})
    tries.check(now)
    if new_password != confirm_new_password:
        raise InvalidRequest({"confirm_new_password": "The two new passwords differ."})
    if new_password == current_password:
        raise InvalidRequest({"new_password": "The new password must differ from the current one."})
    try:
        validate_password(new_password, user)
    except ValidationError as error:
        raise InvalidRequest({"new_password": " ".join(error.messages)}) from None
    _hash_and_set_password(user, new_password, keep=token, now=now)


def _hash_and_set_password(user: User, new_password: str, *, keep: ApiToken, now: datetime) -> None:
    # Hashed before the row is locked: it takes long.
    new_hash = make_password(new_password)
    _set_password_hash(user, new_hash, keep, now)


@in_transaction
def _set_password_hash(user: User, new_hash: str, keep: ApiToken, now: datetime) -> None:
    locked = lock_user(user)
    if locked.password != user.password:
        raise InvalidRequest({"current_password": "The password was changed elsewhere meanwhile."})
    locked.password = new_hash
    locked.save(update_fields=["password"])
    locked.tokens.exclude(pk=keep.pk).delete()
    emails.send_password_changed(locked, now=now)


@in_transaction
def create_customer(*, email: str, first_name: str, last_name: str, company_name: str = "") -> User:
    """An account that staff make for a customer, who has no password and so cannot sign in yet.

    Nobody is told by mail: the account's first mail is about its first booking. Raises
    InvalidRequest, naming the field.
    """
    told = {
        "email": canonicalize_email(email),
        "first_name": first_name.strip(),
        "last_name": last_name.strip(),
        "company_name": company_name.strip(),
    }
    user = User(**told)
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["password"], validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        problems = {field: " ".join(words) for field, words in error.message_dict.items()}
    else:
        problems = {}
    for field in ("first_name", "last_name", "company_name"):
        if contains_card_number(told[field]):
            problems[field] = "This looks like a card number, not a name."
    if User.objects.filter(email=told["email"]).exists():
        problems["email"] = EMAIL_TAKEN
    if problems:
        raise InvalidRequest(problems)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:
        # Somebody else was quicker.
        raise InvalidRequest({"email": EMAIL_TAKEN}) from None
    return user


EMAIL_TAKEN = "There is an account with this e-mail address already."


def update_profile(user: User, **new: str) -> User:
    """Change the profile: what is not given stays, an empty text clears, but not a name."""
    problems: dict[str, str] = {}
    changed: dict[str, str] = {}
    for field in ("first_name", "last_name", "company_name", "phone_number"):
        text = new.get(f"new_{field}")
        if text is None:
            continue
        text = text.strip()
        if not text and field in {"first_name", "last_name"}:
            problems[f"new_{field}"] = "A name is needed."
        elif field == "phone_number" and phone_contains_card_number(text):
            problems[f"new_{field}"] = "This looks like a card number, not a telephone."
        elif field != "phone_number" and contains_card_number(text):
            problems[f"new_{field}"] = "This looks like a card number, not a name."
        changed[field] = text
    if problems:
        raise InvalidRequest(problems)
    before = {field: getattr(user, field) for field in changed}
    for field, text in changed.items():
        setattr(user, field, text)
    if changed:
        _save_profile(user, before)
    return user


@in_transaction
def _save_profile(user: User, before: dict[str, str]) -> None:
    # Read by this request already: the history need not read the row again.
    with disable_auditlog():
        user.save(update_fields=list(before))
    audit_log.record_change(
        user, {field: (old, getattr(user, field)) for field, old in before.items()}, by=user
    )


def remove_thumbnail(user: User) -> User:
    """Take the picture off the account, and its file out of the storage; none there is fine."""
    name = _clear_thumbnail(user)
    user.thumbnail = None
    if name:
        transaction.on_commit(lambda: delete_file(User._meta.get_field("thumbnail").storage, name))
    return user


@in_transaction
def _clear_thumbnail(user: User) -> str:
    locked = lock_user(user)
    name = locked.thumbnail.name
    if name:
        locked.thumbnail = None
        locked.save(update_fields=["thumbnail"])
    return name or ""


def delete_file(storage: Any, name: str) -> None:
    """Delete a file that no row names any more; the work is done even if that fails."""
    try:
        storage.delete(name)
    except Exception:
        logger.exception("The file %s could not be deleted.", name)


def lock_user(user: User) -> User:
    """The account's row as it is now, kept from others until the transaction ends."""
    # NO KEY: rows that only point at the account can still be written meanwhile.
    return User.objects.select_for_update(no_key=True).get(pk=user.pk)
