"""Accounts in the back office: customers and staff, their roles, mails, the history of all."""

from accounts.admin import audit_log, emails, role_admin  # noqa: F401  (they register)
