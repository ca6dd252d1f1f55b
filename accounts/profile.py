"""Creates customers' accounts and changes their profiles."""

import logging

from django.core.exceptions import ValidationError
from django.core.files.storage import Storage
from django.db import IntegrityError, transaction

from accounts.models import User, canonicalize_email
from accounts.names import contains_card_number, phone_contains_card_number
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest

logger = logging.getLogger(__name__)

NAME_FIELDS = ("first_name", "last_name", "company_name")
EMAIL_TAKEN = "An account with this e-mail address already exists."
CARD_NUMBER_IN_NAME = "This looks like a card number, not a name."


@in_transaction
def create_customer(*, email: str, first_name: str, last_name: str, company_name: str = "") -> User:
    """Create an account for a customer on behalf of staff.

    It has no password, so the customer cannot sign in yet. No e-mail is sent: the first one is
    about the first booking.

    Raises:
        InvalidRequest: names the wrong fields.
    """
    fields = {
        "email": canonicalize_email(email),
        "first_name": first_name.strip(),
        "last_name": last_name.strip(),
        "company_name": company_name.strip(),
    }
    user = User(**fields)
    user.set_unusable_password()
    problems: dict[str, str] = {}
    try:
        user.full_clean(exclude=["password"], validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        problems = {field: " ".join(texts) for field, texts in error.message_dict.items()}
    for field in NAME_FIELDS:
        if contains_card_number(fields[field]):
            problems[field] = CARD_NUMBER_IN_NAME
    if User.objects.filter(email=fields["email"]).exists():
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
    problems: dict[str, str] = {}
    changes: dict[str, str] = {}
    for field in (*NAME_FIELDS, "phone_number"):
        text = new_fields.get(f"new_{field}")
        if text is None:
            continue
        text = text.strip()
        if not text and field in {"first_name", "last_name"}:
            problems[f"new_{field}"] = "A name is needed."
        elif field == "phone_number" and phone_contains_card_number(text):
            problems[f"new_{field}"] = "This looks like a card number, not a telephone."
        elif field != "phone_number" and contains_card_number(text):
            problems[f"new_{field}"] = CARD_NUMBER_IN_NAME
        changes[field] = text
    if problems:
        raise InvalidRequest(problems)
    old = {field: getattr(user, field) for field in changes}
    for field, text in changes.items():
        setattr(user, field, text)
    if changes:
        _save_profile(user, old)
    return user


@in_transaction
def _save_profile(user: User, old: dict[str, str]) -> None:
    # This request has read the row already; the audit log need not read it again.
    with audit_log.pause_signals():
        user.save(update_fields=list(old))
    changes = {field: (value, getattr(user, field)) for field, value in old.items()}
    audit_log.record_change(user, changes, by=user)


def remove_thumbnail(user: User) -> User:
    """Remove the picture from the account and delete its file. Succeeds without a picture too."""
    name = _clear_thumbnail(user)
    user.thumbnail = None
    if name:
        storage = User._meta.get_field("thumbnail").storage
        transaction.on_commit(lambda: delete_file(storage, name))
    return user


@in_transaction
def _clear_thumbnail(user: User) -> str:
    locked = User.objects.lock(user.pk)
    name = locked.thumbnail.name
    if name:
        locked.thumbnail = None
        locked.save(update_fields=["thumbnail"])
    return name or ""


def delete_file(storage: Storage, name: str) -> None:
    """Delete a file that no row refers to; errors are only logged, because the change is done."""
    try:
        storage.delete(name)
    except Exception:
        logger.exception("The file %s could not be deleted.", name)
