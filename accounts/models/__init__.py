"""Accounts, their roles, tokens, codes, calendars and networks, counted attempts, the outbox, and
erasures."""

from accounts.models.account_erasure import AccountErasure
from accounts.models.api_token import ApiToken
from accounts.models.attempt_window import AttemptWindow
from accounts.models.calendar_address import CalendarAddress
from accounts.models.center_role import CenterRole
from accounts.models.email_code import CodePurpose, EmailCode
from accounts.models.known_network import KnownNetwork
from accounts.models.outbox_message import OutboxMessage
from accounts.models.staff_member import StaffMember
from accounts.models.user import User, UserType, canonicalize_email

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
