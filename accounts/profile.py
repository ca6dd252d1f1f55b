"""Creates customers' accounts and changes their profiles."""

import uuid
from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from accounts.models import User, canonicalize_email
from accounts.models.account_erasure import NO_ADDRESS_DOMAIN
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest
from roombook.images import delete_after_commit

PROFILE_FIELDS = ("first_name", "last_name", "company_name", "phone_number")
EMAIL_TAKEN = "An account with this e-mail address already exists."


@in_transaction
def create_customer(
    *,
    email: str = "",
    first_name: str,
    last_name: str,
    company_name: str = "",
    phone_number: str = "",
) -> User:
    """Create an account for a customer on behalf of staff.

    It has no password: the customer sets one with a code by e-mail (accounts/email_codes.py). Who
    gives only a telephone number gets no e-mails and cannot sign in (B22.14).
    No e-mail is sent: the first one is about the first booking.

    Raises:
        InvalidRequest: names the wrong fields.
    """
    if not email and not phone_number:
        raise InvalidRequest({"email": "Enter an e-mail address or a telephone number."})
    user = User(
        email=canonicalize_email(email or f"{uuid.uuid4().hex}@{NO_ADDRESS_DOMAIN}"),
        first_name=first_name.strip(),
        last_name=last_name.strip(),
        company_name=company_name.strip(),
        phone_number=phone_number.strip(),
    )
    user.set_unusable_password()
    problems = find_problems(user, ("email", *PROFILE_FIELDS))
    if User.objects.filter(email=user.email).exists():
        problems["email"] = EMAIL_TAKEN
    if problems:
        raise InvalidRequest(problems)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:
        # Another request was faster.
        raise InvalidRequest({"email": EMAIL_TAKEN}) from None
    return user


def update_profile(user: User, **new_fields: str) -> User:
    """Change the profile. Fields that are not given stay; an empty text clears all but names.

    Raises:
        InvalidRequest: names the wrong fields; nothing was changed.
    """
    changed = [field for field in PROFILE_FIELDS if f"new_{field}" in new_fields]
    old = {field: getattr(user, field) for field in changed}
    for field in changed:
        setattr(user, field, new_fields[f"new_{field}"].strip())
    if problems := find_problems(user, changed):
        raise InvalidRequest({f"new_{field}": text for field, text in problems.items()})
    if changed:
        _save_profile(user, old)
    return user


def canonicalize_valid_email(email: str, *, field: str) -> str:
    """Return the canonical form of an address. Raises InvalidRequest that names ``field``."""
    user = User(email=canonicalize_email(email))
    if problems := find_problems(user, ("email",)):
        raise InvalidRequest({field: problems["email"]})
    return user.email


def find_problems(user: User, fields: Iterable[str]) -> dict[str, str]:
    """Validate these fields of the account, and return what is wrong with each."""
    try:
        user.clean_fields(exclude={field.name for field in user._meta.fields} - set(fields))
    except ValidationError as error:
        return {field: " ".join(texts) for field, texts in error.message_dict.items()}
    return {}


@in_transaction
def _save_profile(user: User, old: dict[str, str]) -> None:
    User.objects.lock_active(user.pk)
    # This request has read the row already; the audit log need not read it again.
    with audit_log.recording(is_paused=True):
        user.save(update_fields=list(old))
    changes = {field: (value, getattr(user, field)) for field, value in old.items()}
    audit_log.record_change(user, changes, by=user)


@in_transaction
def remove_thumbnail(user: User) -> User:
    """Remove the picture from the account and delete its file. Succeeds without a picture too."""
    locked = User.objects.lock(user.pk)
    if locked.thumbnail:
        delete_after_commit(locked.thumbnail)
        locked.thumbnail = None
        locked.save(update_fields=["thumbnail"])
    user.thumbnail = None
    return user
