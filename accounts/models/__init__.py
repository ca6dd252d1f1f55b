"""Accounts, roles at centers, API tokens, counted attempts and the outbox of e-mails."""

from accounts.models.api_token import ApiToken
from accounts.models.attempt_window import AttemptWindow
from accounts.models.center_role import CenterRole
from accounts.models.outbox_message import OutboxMessage, OutboxState
from accounts.models.user import User, UserType, canonicalize_email

__all__ = [
    "ApiToken",
    "AttemptWindow",
    "CenterRole",
    "OutboxMessage",
    "OutboxState",
    "User",
    "UserType",
    "canonicalize_email",
]
