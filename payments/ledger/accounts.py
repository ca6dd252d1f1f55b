"""The accounts of the ledger, and the events that change them."""

from django.db import models


class Account(models.TextChoices):
    """An account, which is a column of the ledger. Debits are positive, credits are negative."""

    RECEIVABLES = "receivables"
    # What a center has received for a booking that is at another center.
    BETWEEN_CENTERS = "between_centers", "Between centers"
    GATEWAY = "gateway"
    CASH = "cash"
    TERMINAL = "terminal", "Card terminal"
    BANK = "bank"
    REFUNDS_PAYABLE = "refunds_payable", "Refunds payable"
    TAX_PAYABLE = "tax_payable", "Tax payable"
    ROOM = "room", "Room income"
    SERVICES = "services", "Service income"
    SETUP = "setup", "Set-up income"
    CANCELLATION = "cancellation", "Cancellation income"
    PROMOTIONS = "promotions"
    INCLUDED_HOURS = "included_hours", "Included hours"
    ADJUSTMENTS = "adjustments"
    WAIVED = "waived", "Waived differences"
    GOODWILL = "goodwill", "Goodwill refunds"
    GATEWAY_FEES = "gateway_fees", "Fees of the gateway"
    DISPUTES_LOST = "disputes_lost", "Disputes lost"


A = Account
# What lowers the income.
REDUCTIONS = frozenset({A.PROMOTIONS, A.INCLUDED_HOURS, A.ADJUSTMENTS, A.WAIVED, A.GOODWILL})
INCOME = REDUCTIONS | {A.ROOM, A.SERVICES, A.SETUP, A.CANCELLATION}
# What is on a bill: its lines have the day of the meeting.
BILL = INCOME | {A.TAX_PAYABLE}
MONEY_ACCOUNTS = frozenset({A.GATEWAY, A.CASH, A.TERMINAL, A.BANK})
# What customers and centers owe, and are owed.
OWED = frozenset({A.RECEIVABLES, A.REFUNDS_PAYABLE, A.BETWEEN_CENTERS})
# The account of the money of a payment without a gateway.
MONEY_BY_WAY = {"cash": A.CASH, "terminal": A.TERMINAL, "account": A.BANK}


class EventKind(models.TextChoices):
    """What has happened."""

    BOOKED = "booked"
    CHANGED = "changed"
    ADJUSTED = "adjusted", "Price adjusted"
    CANCELLED = "cancelled"
    ENDED = "ended", "Declined or expired"
    PAID = "paid", "Payment captured"
    RECEIVED = "received", "Received on account"
    PROMISED = "promised", "Refund promised"
    RETURNED = "returned", "Refunded"
    FEES = "fees", "Fees of the gateway"
    DISPUTE = "dispute"
    # An event has found a difference on accounts that it cannot change: an earlier event was not
    # posted, or rows were changed by SQL.
    CORRECTED = "corrected"


# The accounts that each kind of event can change.
CHANGES: dict[EventKind, frozenset[Account]] = {
    EventKind.BOOKED: (BILL - {A.GOODWILL, A.CANCELLATION}) | OWED,
    EventKind.CHANGED: (BILL - {A.CANCELLATION}) | OWED,
    EventKind.ADJUSTED: (BILL - {A.CANCELLATION}) | OWED,
    EventKind.CANCELLED: BILL | OWED,
    EventKind.ENDED: OWED,
    EventKind.PAID: MONEY_ACCOUNTS | OWED,
    EventKind.RECEIVED: frozenset({A.BANK, A.RECEIVABLES, A.BETWEEN_CENTERS}),
    EventKind.PROMISED: OWED | {A.GOODWILL, A.CANCELLATION, A.TAX_PAYABLE},
    EventKind.RETURNED: MONEY_ACCOUNTS | OWED | {A.GOODWILL, A.CANCELLATION, A.TAX_PAYABLE},
    EventKind.FEES: frozenset({A.GATEWAY, A.GATEWAY_FEES}),
    EventKind.DISPUTE: frozenset({A.GATEWAY, A.GATEWAY_FEES, A.DISPUTES_LOST}),
    EventKind.CORRECTED: frozenset(A),
}
