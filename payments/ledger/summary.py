"""What the lines of a reservation add up to, in the words of customers."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from payments.ledger.accounts import BILL, MONEY_ACCOUNTS, Account
from payments.models import LedgerLine
from roombook.money import from_hundredths


@dataclass(frozen=True, slots=True)
class Summary:
    """The bill, including tax; what was paid and not returned; and what is still owed.

    `owed` is below zero if the customer gets money back.
    """

    bill: Decimal
    paid: Decimal
    owed: Decimal


def summarize(lines: Iterable[LedgerLine]) -> Summary:
    """Add up lines of one reservation. What the gateway keeps as its fees is paid nevertheless."""
    totals = dict.fromkeys(Account, 0)
    for line in lines:
        for account, amount in line.amounts:
            totals[account] += amount
    costs = totals[Account.GATEWAY_FEES] + totals[Account.DISPUTES_LOST]
    return Summary(
        bill=from_hundredths(-sum(totals[account] for account in BILL)),
        paid=from_hundredths(sum(totals[account] for account in MONEY_ACCOUNTS) + costs),
        owed=from_hundredths(totals[Account.RECEIVABLES] + totals[Account.REFUNDS_PAYABLE]),
    )
