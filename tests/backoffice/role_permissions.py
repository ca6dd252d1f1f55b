"""The permissions of each role, as the migrations grant them."""

import importlib

RESERVATIONS, PAYMENTS = "reservations.migrations", "payments.migrations"
ROLES = importlib.import_module(f"{RESERVATIONS}.0002_roles").ROLES


def granted_by(migration):
    return importlib.import_module(migration).PERMISSIONS


UNKNOWN_PAYMENTS = granted_by(f"{RESERVATIONS}.0005_accountants_handle_unknown_payments")
WEBHOOKS = granted_by(f"{RESERVATIONS}.0011_managers_set_up_webhooks")
REFUNDS = granted_by(f"{RESERVATIONS}.0018_managers_override_refunds")
MANUAL_PAYMENTS = granted_by(f"{PAYMENTS}.0012_roles_take_payments_on_account")
NOTES = granted_by(f"{RESERVATIONS}.0020_roles_write_notes")
RECEIPTS = granted_by(f"{RESERVATIONS}.0022_receipts_are_issued_by_staff_and_never_changed")
MAY = {
    **ROLES,
    "Desk": ROLES["Desk"].union(NOTES["Desk"], RECEIPTS["Desk"]),
    "Accountant": ROLES["Accountant"].union(
        UNKNOWN_PAYMENTS, MANUAL_PAYMENTS["Accountant"], NOTES["Accountant"], RECEIPTS["Accountant"]
    ),
    "Manager": ROLES["Manager"].union(
        WEBHOOKS, REFUNDS, MANUAL_PAYMENTS["Manager"], NOTES["Manager"], RECEIPTS["Manager"]
    ),
}
