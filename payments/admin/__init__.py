"""Payments, refunds, disputes, saved cards and the ledger in the back office.

Staff move money by actions on reservations. Here everything is read-only except refunds that the
gateway refused, which staff retry or mark as refunded manually, and unknown payments, which they
release or keep.
"""

from payments.admin import ledger, payments, refunds  # noqa: F401 (registers them)
