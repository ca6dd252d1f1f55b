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
from roombook.models import SavedResponse
from roombook.personal_data import (
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


register(
    User,
    "id password last_login is_superuser email first_name last_name company_name phone_number"
    " thumbnail search_text is_staff is_active date_joined second_factor_since"
    " second_factor_changed_at credit_limit",
    erase=erasure.pseudonymize,
)
register(AccountErasure, "user picture")
register_owned(ApiToken, "user digest created_at expires_at last_used_at")
register(
    EmailCode,
    "email user digest network new_account",
    erase=delete_rows(EmailCode, _by_user_or_own_email("email")),
)
register_owned(CalendarAddress, "user salt digest")
register_owned(KnownNetwork, "user digest last_sign_in_at")
register(
    AttemptWindow,
    "key",
    erase=delete_rows(
        AttemptWindow,
        lambda account: Q(key=str(account.pk)) | Q(key__startswith=hash_email(account.email)),
    ),
)
register(
    OutboxMessage,
    "user to about subject text html calendar attachment attachment_name last_error",
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
register_owned(SavedResponse, "user content")
register(
    AuditEntry,
    "object_id object_name changes note actor actor_email network_address",
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
register_owned(CenterRole, "user")
for relation in (User.groups.through, User.user_permissions.through):
    register_owned(
        relation,
        "user",
    )
register(
    Session,
    "session_key session_data",
    erase=erasure.delete_sessions,
)
for device, columns in ((TOTPDevice, "user name key"), (StaticDevice, "user name")):
    register_owned(
        device,
        columns,
    )
register(StaticToken, "token")
register_owned(LogEntry, "user object_id object_repr change_message")
