"""Accounts, their roles, tokens, codes, calendars and networks, counted attempts, the outbox, and
erasures."""

from accounts.models.account_erasure import AccountErasure
from accounts.models.attempts import AttemptWindow, KnownNetwork
from accounts.models.outbox_message import OutboxMessage
from accounts.models.tokens import ApiToken, CalendarAddress, CodePurpose, EmailCode
from accounts.models.user import CenterRole, StaffMember, User, UserType, canonicalize_email

__all__ = [
    "AccountErasure",
    "ApiToken",
    "AttemptWindow",
    "CalendarAddress",
    "CenterRole",
    "CodePurpose",
    "EmailCode",
    "KnownNetwork",
    "OutboxMessage",
    "StaffMember",
    "User",
    "UserType",
    "canonicalize_email",
]
