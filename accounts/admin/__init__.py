"""Accounts in the back office: customers and staff, their roles, mails, the history of all."""

from accounts.admin import history, mails, powers  # noqa: F401  (they register)
