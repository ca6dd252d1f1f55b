"""The personal data of accounts, and of Django's and the libraries' tables about them (B22.10)."""

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db.models import Q
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import erasure
from accounts.limits import hash_email
from accounts.models import (
    AccountErasure,
    ApiToken,
    AttemptWindow,
    CalendarAddress,
    CenterRole,
    EmailCode,
    KnownNetwork,
    OutboxMessage,
    OutboxState,
    User,
)
from roombook.backoffice.models import AuditEntry
from roombook.imports.models import RunningCheck
from roombook.models import SavedResponse
from roombook.personal_data import (
    DELETED,
    Expiry,
    FindRows,
    clear_rows,
    delete_rows,
    find_by_user,
    register,
    register_owned,
    setting_days,
)


def _by_user_or_own_email(column: str) -> FindRows:
    """Return what finds the rows of an account, and those of nobody with its address.

    Other accounts may have had the address before.
    """
    return lambda account: find_by_user(account) | Q(user=None, **{column: account.email})


WITH_ACCOUNT = "As long as the account."

register(
    User,
    "id password last_login is_superuser email first_name last_name company_name phone_number"
    " thumbnail search_text is_staff is_active date_joined second_factor_since"
    " second_factor_changed_at credit_limit",
    purpose="To sign in, to book, and to reach the customer.",
    kept=WITH_ACCOUNT,
    at_erasure="Replaced by a pseudonym: the id, and when the account was created, stay.",
    erase=erasure.pseudonymize,
)
register(
    AccountErasure,
    "user picture",
    purpose="To finish an erasure: the picture that is left to delete.",
    kept="For ever, without the picture.",
    at_erasure="Created; the name of the picture's file is deleted with the file.",
)
register_owned(
    ApiToken,
    "user digest created_at expires_at last_used_at",
    purpose="The devices that are signed in.",
    kept="Until it expires (`TOKEN_IDLE_DAYS`, `TOKEN_MAX_DAYS`); `prune_tokens` deletes it.",
)
register(
    EmailCode,
    "email user digest network new_account",
    purpose="To prove that somebody reads the e-mails to an address.",
    kept="30 minutes, or seven days for the former address; `prune_tokens` deletes it.",
    at_erasure=DELETED,
    erase=delete_rows(EmailCode, _by_user_or_own_email("email")),
)
register_owned(
    CalendarAddress,
    "user salt digest",
    purpose="To find the calendar feed by its secret address.",
    kept=WITH_ACCOUNT,
)
register_owned(
    KnownNetwork,
    "user digest last_sign_in_at",
    purpose="To keep an attacker from locking the owner out. A keyed hash of the network.",
    kept="90 days after the last sign-in; `prune_tokens` deletes it.",
)
register(
    AttemptWindow,
    "key",
    purpose="To limit attempts, by network address, account or a keyed hash of an e-mail address.",
    kept="One hour; `prune_tokens` deletes it.",
    at_erasure="Deleted, but for those of a network address, which belong to no account.",
    erase=delete_rows(
        AttemptWindow,
        lambda account: Q(key=str(account.pk)) | Q(key__startswith=hash_email(account.email)),
    ),
)
register(
    OutboxMessage,
    "user to about subject text html calendar attachment attachment_name last_error",
    purpose="To send e-mails, and to see what a customer was sent.",
    kept="`EMAIL_DAYS`. Texts with a code or a link that opens an account: until they are sent.",
    at_erasure=DELETED,
    erase=delete_rows(OutboxMessage, _by_user_or_own_email("to")),
    expiries=[
        Expiry(
            setting_days("EMAIL_DAYS"),
            lambda until: OutboxMessage.objects.filter(created_at__lt=until).exclude(
                state=OutboxState.WAITING
            ),
        )
    ],
)
register_owned(
    SavedResponse,
    "user content",
    purpose="To answer a repeated request (B23).",
    kept="24 hours; `prune_tokens` deletes it.",
)
register(
    AuditEntry,
    "object_id object_name changes note actor actor_email network_address",
    purpose="To see who changed or viewed what. Personal data is recorded without its value.",
    kept="`AUDIT_LOG_DAYS`.",
    at_erasure="Stays, under the pseudonym. An e-mail or network address in it is deleted.",
    erase=clear_rows(
        AuditEntry,
        lambda account: Q(actor=account.pk),
        actor_email="",
        network_address=None,
    ),
    expiries=[
        Expiry(
            setting_days("AUDIT_LOG_DAYS"),
            lambda until: AuditEntry.objects.filter(
                timestamp__lt=until, unpublished_event__isnull=True
            ),
        )
    ],
)
register_owned(
    CenterRole,
    "user",
    purpose="The roles of staff at centers.",
    kept=WITH_ACCOUNT,
)
for relation in (User.groups.through, User.user_permissions.through):
    register_owned(
        relation,
        "user",
        purpose="The roles and permissions of staff.",
        kept=WITH_ACCOUNT,
    )
register_owned(
    RunningCheck,
    "user",
    purpose="Staff check one file at a time.",
    kept="Until the check ends.",
)
register(
    Session,
    "session_key session_data",
    purpose="The sessions of staff in the back office.",
    kept="Until it expires; `clearsessions` deletes it.",
    at_erasure=DELETED,
    erase=erasure.delete_sessions,
)
for device, columns in ((TOTPDevice, "user name key"), (StaticDevice, "user name")):
    register_owned(
        device,
        columns,
        purpose="The second factor of staff.",
        kept="Until two-step sign-in is turned off.",
    )
register(
    StaticToken,
    "token",
    purpose="The recovery codes of staff.",
    kept="Until it is used, or replaced.",
    at_erasure="Deleted with the second factor.",
)
register_owned(
    LogEntry,
    "user object_id object_repr change_message",
    purpose="Django's own log of the back office, in which the service writes nothing.",
    kept="For ever.",
)
