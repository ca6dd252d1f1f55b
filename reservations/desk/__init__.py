"""Reservations, allowances, promo codes, partners and webhooks in the back office.

Staff never edit a status or an amount: actions call the same functions as the API.
"""

from reservations.desk import (  # noqa: F401  (they register models)
    closure_warnings,
    customers,
    promo_codes_and_allowances,
    receipts,
    reservation_admin,
    webhooks,
)
