"""Payments, refunds, disputes and saved cards in the back office.

Staff move money by actions on reservations. Here everything is read-only except refunds that the
gateway refused: staff retry them or mark them as refunded manually.
"""

from payments.admin import disputes, payments, refunds, saved_cards  # noqa: F401 (registers them)
