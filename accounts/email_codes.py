"""Codes by e-mail: signing up, new passwords and new addresses (B22.1 to B22.5).

Requests do the same work whether or not there is an account, so they say nothing to strangers.
"""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.contrib.auth import hashers
from django.db import IntegrityError
from django.db.models import F, Q

from accounts import emails
from accounts.invitations import may_reset_password
from accounts.limits import CODE_BY_ACCOUNT, SignInAttempts, hash_email
from accounts.models import (
    ApiToken,
    CodePurpose,
    EmailCode,
    OutboxMessage,
    User,
    UserType,
    canonicalize_email,
)
from accounts.models.outbox_message import EMAIL_CHANGE_KIND, PASSWORD_RESET_KIND, SIGN_UP_KIND
from accounts.passwords import make_password
from accounts.profile import EMAIL_TAKEN, PROFILE_FIELDS, canonicalize_valid_email, find_problems
from accounts.sign_in import (
    find_password_problem,
    lock_verified,
    require_password,
    require_same_passwords,
    set_password_hash,
)
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, NotFound

ResultT = TypeVar("ResultT")

CODE_DIGITS = 8
LIFETIME = timedelta(minutes=30)
REVOCATION_LIFETIME = timedelta(days=7)
# Codes of one purpose that are open for one account or address.
MAX_OPEN = 3
# 128 bits, with spaces or dashes.
REVOCATION_FORMAT = re.compile(r"\s*([0-9a-fA-F][\s-]*){32}")


# --- Codes, and who may try them -----------------------------------------------------------------


def issue_code(
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


def verify_code(
    purposes: Collection[CodePurpose], attempts: SignInAttempts, *, code: str, now: datetime
) -> EmailCode:
    """Return the row of the right code, which is not used up yet (`use_code`).

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


def use_code(code: EmailCode, now: datetime) -> None:
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


def refuse_taken_email(confirm: Callable[[], ResultT]) -> ResultT:
    """Raise InvalidRequest if another account has got the address since the code was sent."""
    try:
        return confirm()
    except IntegrityError:
        raise InvalidRequest({"email_address": EMAIL_TAKEN}) from None


# --- Signing up ----------------------------------------------------------------------------------


def sign_up(
    *, email: str, password: str, network_address: str, now: datetime, **profile: str
) -> None:
    """E-mail a code with which `confirm_email` creates the account.

    The owner of an account that exists gets another e-mail, after the same work.

    Raises:
        NotFound: only staff create accounts.
        InvalidRequest: names the wrong fields.
        TooManyRequests: too many requests of the network, or for this address.
    """
    if settings.SIGN_UP != "open":
        raise NotFound
    user = User(email=canonicalize_email(email))
    for field, text in profile.items():
        setattr(user, field, text.strip())
    problems = find_problems(user, ("email", *PROFILE_FIELDS))
    if "email" in problems:
        problems["email_address"] = problems.pop("email")
    if problem := find_password_problem(password, user):
        problems["password"] = problem
    if problems:
        raise InvalidRequest(problems)
    attempts = SignInAttempts(user.email, network_address)
    attempts.count_code(now)
    user.password = make_password(password)
    _send_sign_up_code(user, attempts.network_digest, now)


@in_transaction
def _send_sign_up_code(new: User, network: str, now: datetime) -> None:
    existing = User.objects.filter(email=new.email).first()
    if existing:
        _send_reset_code(new.email, existing, network=network, is_for_sign_up=True, now=now)
        return
    # The account is created with the code only: nobody can take an address that is not theirs.
    fields = {field: getattr(new, field) for field in (*PROFILE_FIELDS, "password")}
    code = issue_code(
        CodePurpose.SIGN_UP, new.email, None, network=network, new_account=fields, now=now
    )
    emails.send(
        "sign_up_code",
        user_id=None,
        to=new.email,
        kind=SIGN_UP_KIND,
        about="sign-up",
        code=code,
        expires_at=now + LIFETIME,
        now=now,
    )


# --- A new password ------------------------------------------------------------------------------


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
    _send_reset_code(email, user, network=network, is_for_sign_up=False, now=now)


def _send_reset_code(
    email: str, user: User | None, *, network: str, is_for_sign_up: bool, now: datetime
) -> None:
    """Write an e-mail with a code, if the account may use one.

    The same rows are written otherwise, so that the time of a request says nothing to strangers.
    """
    is_allowed = user is not None and may_reset_password(user)
    code = issue_code(
        CodePurpose.PASSWORD_RESET,
        email,
        user if is_allowed else None,
        network=network,
        now=now,
    )
    is_active = user is not None and user.is_active
    emails.send(
        "password_reset_code",
        user_id=user.pk if user else None,
        to=email,
        kind=PASSWORD_RESET_KIND,
        code=code if is_allowed else None,
        is_for_sign_up=is_for_sign_up,
        is_active=is_active,
        # Nobody can make the service write to strangers by asking for a new password.
        expires_at=now + LIFETIME if is_active or is_for_sign_up else now,
        now=now,
    )


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
    found = verify_code(
        {CodePurpose.PASSWORD_RESET, CodePurpose.REVOCATION}, attempts, code=code, now=now
    )
    assert found.user is not None
    if problem := find_password_problem(new_password, found.user):
        raise InvalidRequest({"new_password": problem})
    # Hashed before rows are locked, because hashing takes long.
    new_hash = make_password(new_password)
    refuse_taken_email(lambda: _set_password(found, new_hash, attempts, now))


@in_transaction
def _set_password(code: EmailCode, new_hash: str, attempts: SignInAttempts, now: datetime) -> None:
    assert code.user_id is not None
    user = User.objects.lock(code.user_id)
    use_code(code, now)
    is_revocation = code.purpose == CodePurpose.REVOCATION
    # The account may have changed since the code was sent.
    if not may_reset_password(user) or (user.email != code.email and not is_revocation):
        raise build_wrong_code_error()
    note = "The password was reset with a code by e-mail."
    with audit_log.recording(actor=user):
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


# --- A new address -------------------------------------------------------------------------------


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
    _send_change_codes(user, new_email, attempts.network_digest, now)


@in_transaction
def _send_change_codes(user: User, new_email: str, network: str, now: datetime) -> None:
    user = lock_verified(user, field="password")
    is_taken = User.objects.filter(email=new_email).exists()
    code = issue_code(
        CodePurpose.EMAIL_CHANGE,
        new_email,
        None if is_taken else user,
        network=network,
        now=now,
    )
    revocation = issue_code(CodePurpose.REVOCATION, user.email, user, network=network, now=now)
    emails.send(
        "email_change_code",
        # The recipient is not known to be the account's owner.
        user_id=None if is_taken else user.pk,
        to=new_email,
        kind=EMAIL_CHANGE_KIND,
        code=None if is_taken else code,
        expires_at=now + LIFETIME,
        now=now,
    )
    emails.send(
        "email_change_notice",
        user_id=user.pk,
        to=user.email,
        kind=EMAIL_CHANGE_KIND,
        new_email=new_email,
        code=revocation,
        expires_at=now + REVOCATION_LIFETIME,
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
    found = verify_code(
        {CodePurpose.SIGN_UP, CodePurpose.EMAIL_CHANGE}, attempts, code=code, now=now
    )
    return refuse_taken_email(lambda: _confirm(found, attempts, now))


@in_transaction
def _confirm(code: EmailCode, attempts: SignInAttempts, now: datetime) -> tuple[User, str]:
    user = User.objects.lock(code.user_id) if code.user_id else User(**code.new_account)
    if not user.pk and code.network != attempts.network_digest:
        # Somebody else may have chosen the password, and waits for the owner to confirm the code.
        user.password = hashers.make_password(None)
    use_code(code, now)
    if not user.is_active:
        raise build_wrong_code_error()
    user.email = code.email
    user.last_login = now
    with audit_log.recording(actor=user):
        user.save(update_fields=["email", "last_login"] if user.pk else None)
    # The code was sent before the account existed.
    OutboxMessage.objects.filter(user=None, to=user.email).update(user=user)
    attempts.record_right_password(user, now)
    return user, ApiToken.issue(user, now=now)
