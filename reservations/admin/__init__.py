"""Reservations, allowances, promo codes and partners in the back office.

Status and money are never typed: buttons call the same functions as the API.
"""

from reservations.admin import (  # noqa: F401  (register)
    closure_warnings,
    customers,
    promo_codes_and_allowances,
    reservation_admin,
)
