"""Codes by e-mail: which are issued, and who may try them (B22.2)."""

import re
import secrets
from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import F, Q

from accounts.limits import CODE_BY_ACCOUNT, SignInAttempts, hash_email
from accounts.models import CodePurpose, EmailCode, User
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest

CODE_DIGITS = 8
LIFETIME = timedelta(minutes=30)
REVOCATION_LIFETIME = timedelta(days=7)
# Codes of one purpose that are open for one account or address.
MAX_OPEN = 3
# 128 bits, with spaces or dashes.
REVOCATION_FORMAT = re.compile(r"\s*([0-9a-fA-F][\s-]*){32}")


def issue(
    purpose: CodePurpose,
    email: str,
    user: User | None,
    *,
    network: str,
    new_account: dict[str, str] | None = None,
    now: datetime,
) -> str:
    """Create a code for a canonical address, requested from a network (its digest); return it.

    Up to MAX_OPEN stay valid, so that nobody's request ends somebody else's. Without an account,
    new or existing, nothing fits the code. Call it in a transaction.
    """
    is_revocation = purpose == CodePurpose.REVOCATION
    if is_revocation:
        code = secrets.token_hex(16)
    else:
        code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
        _make_room(purpose, email, user, network, now)
    row = EmailCode(
        purpose=purpose,
        email=email,
        user=user,
        network=network,
        new_account=new_account or {},
        expires_at=now + (REVOCATION_LIFETIME if is_revocation else LIFETIME),
    )
    if user or new_account:
        row.set_code(code)
    row.save(force_insert=True)
    return code


def _make_room(
    purpose: CodePurpose, email: str, user: User | None, network: str, now: datetime
) -> None:
    """End codes of the account, or of the address, so that another one fits into MAX_OPEN.

    The oldest of the network with the most go first: otherwise a stranger who requests codes would
    end the one that the owner waits for.
    """
    # Requests for the same address take turns.
    CODE_BY_ACCOUNT.lock(hash_email(email), now=now)
    # Several accounts may want to have one address.
    by_user = purpose == CodePurpose.EMAIL_CHANGE
    owner = Q(user=user.pk if user else 0) if by_user else Q(email=email)
    codes = list(EmailCode.objects.open(now).filter(owner, purpose=purpose).order_by("pk"))
    while len(codes) >= MAX_OPEN:
        requests = Counter([network, *(each.network for each in codes)])
        ended = max(codes, key=lambda each: requests[each.network])
        codes.remove(ended)
        ended.delete()


def verify(
    purposes: Collection[CodePurpose], attempts: SignInAttempts, *, code: str, now: datetime
) -> EmailCode:
    """Return the row of the right code, which is not used up yet (`use`).

    A wrong code counts as a failed sign-in, and as a try of each code that it could have been.

    Raises:
        InvalidRequest: names the code.
        TooManyRequests: too many failed attempts.
    """
    if CodePurpose.REVOCATION in purposes:
        revocation = _find_revocation(attempts.email, code, now)
        if revocation is not None:
            return revocation
    attempts.check(now)
    found = _find_or_count_try(purposes, attempts, code, now)
    if found is None:
        attempts.count(now)
        raise build_wrong_code_error()
    # Concurrent attempts may have filled the window: then the right code came too late too.
    attempts.check(now)
    return found


def _find_revocation(email: str, code: str, now: datetime) -> EmailCode | None:
    """Return the row of a revocation.

    It is too long to be guessed, so no failed attempts keep the owner from using it.
    """
    if not REVOCATION_FORMAT.fullmatch(code):
        return None
    rows = EmailCode.objects.open(now).filter(email=email, purpose=CodePurpose.REVOCATION)
    return next((row for row in rows if row.has_code(code)), None)


@in_transaction
def _find_or_count_try(
    purposes: Collection[CodePurpose], attempts: SignInAttempts, code: str, now: datetime
) -> EmailCode | None:
    rows = EmailCode.objects.open(now).filter(
        email=attempts.email, purpose__in={*purposes} - {CodePurpose.REVOCATION}
    )
    # Locked, so that parallel guesses get no more tries.
    for row in rows.select_for_update().order_by("pk"):
        if row.has_code(code):
            return row
    is_same_network = Q(network=attempts.network_digest)
    rows.filter(is_same_network).update(tries=F("tries") + 1)
    rows.exclude(is_same_network).update(tries_elsewhere=F("tries_elsewhere") + 1)
    return None


def use(code: EmailCode, now: datetime) -> None:
    """Use a code up, with the others of its address and account; revocations stay valid.

    Raises:
        InvalidRequest: another request was faster.
    """
    related = Q(email=code.email)
    if code.user_id:
        related |= Q(user=code.user_id)
    rows = EmailCode.objects.filter(related)
    # Locked in one order, so that accounts that want the same address do not deadlock.
    if code not in list(rows.open(now).select_for_update().order_by("pk")):
        raise build_wrong_code_error()
    rows.exclude(~Q(pk=code.pk), purpose=CodePurpose.REVOCATION).delete()


def build_wrong_code_error() -> InvalidRequest:
    return InvalidRequest({"code": "This code is wrong, or no longer valid."})
