"""Accounts in the back office: customers and staff, their roles, e-mails, and the audit log."""

from accounts.admin import audit_log, emails, role_admin, staff  # noqa: F401  (they register)
