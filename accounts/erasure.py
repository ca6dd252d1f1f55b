"""Erases what identifies the owner of an account; bookings stay under a pseudonym (B22).

Everything in the database is erased by one transaction. The picture's file is deleted after it, and
again by `erase_expired` if that fails. reservations/booking/account_erasure.py decides whether an
account may be erased.
"""

from datetime import datetime, timedelta

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session

from accounts.models import AccountErasure, User
from accounts.models.account_erasure import PSEUDONYM_DOMAIN
from accounts.models.search_text import build_search_text
from roombook.backoffice import audit_log
from roombook.personal_data import ErasedAccount, erase_account_data

# A request that began before an erasure can write what it had read. After this time, none is left.
LONGEST_REQUEST = timedelta(hours=1)


def erase(user: User, *, by: User | None, now: datetime) -> AccountErasure:
    """Erase an account in the database. The caller is in a transaction and has locked the account.

    Call `delete_picture` and then `finish` after it.
    """
    erasure, is_new = AccountErasure.objects.get_or_create(user=user, defaults={"begun_at": now})
    if erasure.finished_at is not None:
        # The account was in use again, such as after a restore of the database.
        is_new, erasure.begun_at, erasure.finished_at = True, now, None
    erasure.picture = user.thumbnail.name or erasure.picture
    erasure.save()
    with audit_log.pause_signals():
        erase_account_data(ErasedAccount(user.pk, user.email))
    if is_new:
        user.refresh_from_db()
        audit_log.record_change(user, {}, by=by, note="The account was erased.")
    return erasure


def is_erased(user: User) -> bool:
    return user.email.endswith(f"@{PSEUDONYM_DOMAIN}")


def pseudonymize(account: ErasedAccount) -> None:
    """Replace what the account's row says of its owner. Nobody can sign in with it any more."""
    user = User(
        email=f"{account.pk}@{PSEUDONYM_DOMAIN}",
        first_name="Erased",
        last_name=f"customer {account.pk}",
    )
    User.objects.filter(pk=account.pk).update(
        email=user.email,
        first_name=user.first_name,
        last_name=user.last_name,
        company_name="",
        phone_number="",
        thumbnail="",
        search_text=build_search_text(user),
        # Not `set_unusable_password`, which tells the owner by e-mail.
        password=make_password(None),
        is_active=False,
        last_login=None,
        second_factor_since=None,
        second_factor_changed_at=None,
    )


def delete_sessions(account: ErasedAccount) -> None:
    """Delete the back office's sessions of an account that was one of staff."""
    for session in Session.objects.iterator():
        if session.get_decoded().get(SESSION_KEY) == str(account.pk):
            session.delete()


def delete_picture(erasure: AccountErasure) -> None:
    """Delete the file of the account's picture. Raises the errors of the storage."""
    if erasure.picture:
        User._meta.get_field("thumbnail").storage.delete(erasure.picture)
        erasure.picture = ""
        erasure.save(update_fields=["picture"])


def finish(erasure: AccountErasure, *, now: datetime) -> None:
    """Mark an erasure as finished, unless requests from before it can still be at work."""
    if erasure.begun_at <= now - LONGEST_REQUEST:
        erasure.finished_at = now
        erasure.save(update_fields=["finished_at"])
