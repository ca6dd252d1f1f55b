"""Erases what identifies the owner of an account; bookings stay under a pseudonym (B22).

reservations/booking/account_erasure.py decides whether an account may be erased. One transaction
then erases everything in the database, as accounts/personal_data.py says. What the storage of files
and gateways have is deleted after it; if that fails, or if the process dies, `erase_expired` does
it later.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError

from accounts.models import AccountErasure, User
from accounts.models.account_erasure import PSEUDONYM_DOMAIN
from accounts.personal_data import erase_rows
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction

logger = logging.getLogger(__name__)

# A request that began before an erasure can write what it had read. After this time, none is left.
LONGEST_REQUEST = timedelta(hours=1)
# An erasure that is unfinished for this long is reported.
OVERDUE_AFTER = timedelta(days=1)
# Functions of other apps that delete what is outside the database, by the account's id. They raise
# an error if that fails, and are then called again later.
external_deletions: list[Callable[[int], None]] = []


def is_erased(user: User) -> bool:
    return user.email.endswith(f"@{PSEUDONYM_DOMAIN}")


def erase(user: User, *, by: User | None, now: datetime) -> AccountErasure:
    """Erase an account in the database. The caller is in a transaction and has locked the account.

    Call `finish` after it.
    """
    erasure, is_new = AccountErasure.objects.get_or_create(user=user, defaults={"begun_at": now})
    if erasure.finished_at is not None:
        # The account was in use again, such as after a restore of the database.
        is_new, erasure.begun_at, erasure.finished_at = True, now, None
    erasure.picture = user.thumbnail.name or erasure.picture
    erasure.save()
    with audit_log.recording(is_paused=True):
        erase_rows(user)
    if is_new:
        user.refresh_from_db()
        audit_log.record_change(user, {}, by=by, note="The account was erased.")
    return erasure


def finish(erasure: AccountErasure, *, now: datetime) -> bool:
    """Delete what is outside the database; return False if that has failed.

    The erasure is finished if no request from before it can still be at work.
    """
    try:
        if erasure.picture:
            User._meta.get_field("thumbnail").storage.delete(erasure.picture)
            erasure.picture = ""
            erasure.save(update_fields=["picture"])
        for delete in external_deletions:
            delete(erasure.pk)
    except Exception:
        logger.exception("The %s is not finished. erase_expired tries it again.", erasure)
        return False
    if erasure.begun_at <= now - LONGEST_REQUEST:
        erasure.finished_at = now
        erasure.save(update_fields=["finished_at"])
    return True


def finish_erasures(*, now: datetime) -> list[AccountErasure]:
    """Finish the erasures that are unfinished; return those that have been for over a day.

    If one fails, the others are still finished.
    """
    overdue = []
    for each in AccountErasure.objects.filter(finished_at=None).order_by("begun_at"):
        try:
            begun = _erase_again(each.pk, now=now)
            is_finished = begun is None or finish(begun, now=now)
        except DatabaseError:
            logger.exception("The %s is not finished. erase_expired tries it again.", each)
            is_finished = False
        if not is_finished and each.begun_at <= now - OVERDUE_AFTER:
            overdue.append(each)
    return overdue


@in_transaction
def _erase_again(user_id: int, *, now: datetime) -> AccountErasure | None:
    """Erase what requests that began before the erasure have written since.

    Returns None if another process has finished the erasure meanwhile.
    """
    user = User.objects.lock(user_id)
    if not AccountErasure.objects.filter(pk=user_id, finished_at=None).exists():
        return None
    return erase(user, by=None, now=now)
