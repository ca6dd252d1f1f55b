"""Customers create accounts themselves (B22.1)."""

from datetime import datetime

from django.conf import settings

from accounts import email_codes, emails, password_reset
from accounts.limits import SignInAttempts
from accounts.models import CodePurpose, User, canonicalize_email
from accounts.passwords import make_password
from accounts.profile import PROFILE_FIELDS, find_problems
from accounts.sign_in import find_password_problem
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, NotFound


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
    _send_code(user, attempts.network_digest, now)


@in_transaction
def _send_code(new: User, network: str, now: datetime) -> None:
    existing = User.objects.filter(email=new.email).first()
    if existing:
        password_reset.send_code(new.email, existing, network=network, is_for_sign_up=True, now=now)
        return
    # The account is created with the code only: nobody can take an address that is not theirs.
    fields = {field: getattr(new, field) for field in (*PROFILE_FIELDS, "password")}
    code = email_codes.issue(
        CodePurpose.SIGN_UP, new.email, None, network=network, new_account=fields, now=now
    )
    emails.send_sign_up_code(new.email, code, expires_at=now + email_codes.LIFETIME, now=now)
