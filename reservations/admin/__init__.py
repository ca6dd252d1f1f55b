"""Reservations, allowances, promo codes and partners in the back office.

Status and money are never typed: buttons call the same functions as the API.
"""

from reservations.admin import benefits, closures, customers, reservation  # noqa: F401  (register)
