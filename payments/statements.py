"""What the ledger says: of one reservation, and as a journal for programs of accountants.

In journals of hledger and beancount, income and tax of a later meeting are deferred: a second
transaction on the day of the meeting moves them to their accounts.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db.models import Max, QuerySet, Sum

from payments.ledger.accounts import BILL, INCOME, MONEY_ACCOUNTS, Account
from payments.models import LedgerLine
from roombook.backoffice.spreadsheets import CellValue
from roombook.money import ZERO, format_amount, from_hundredths

DEFERRED = "Liabilities:Deferred"
# The first accounts are opened before every transaction.
OPENED_ON = "1970-01-01"
COLUMNS = (
    *("Line", "At", "Day", "Recognized on", "Event", "Cause", "Reservation", "Center", "Currency"),
    *("Test", *(str(account.label) for account in Account)),
)


@dataclass(frozen=True, slots=True)
class Summary:
    """The bill, including tax; what was paid and not returned; and what is still owed.

    `owed` is below zero if the customer gets money back.
    """

    bill: Decimal
    paid: Decimal
    owed: Decimal


def summarize(lines: Iterable[LedgerLine]) -> Iterator[tuple[LedgerLine, Summary]]:
    """Yield each line of one reservation, and what all lines add up to after its event.

    What the gateway keeps as its fees, and what a dispute takes back, is paid nevertheless.
    """
    totals = Counter[Account]()
    for _, event in groupby(lines, attrgetter("at", "kind", "cause")):
        found = list(event)
        for line in found:
            totals.update(dict(line.amounts))
        costs = totals[Account.GATEWAY_FEES] + totals[Account.DISPUTES_LOST]
        after = Summary(
            bill=from_hundredths(-sum(totals[account] for account in BILL)),
            paid=from_hundredths(sum(totals[account] for account in MONEY_ACCOUNTS) + costs),
            owed=from_hundredths(totals[Account.RECEIVABLES] + totals[Account.REFUNDS_PAYABLE]),
        )
        yield from ((line, after) for line in found)


def get_refunds_payable(lines: QuerySet[LedgerLine]) -> QuerySet[Any]:
    """Return what each reservation's customer must get back: `owed`, last changed at `since`."""
    rows = lines.filter(refunds_payable__isnull=False).order_by().values("reservation")
    return rows.annotate(owed=-Sum("refunds_payable"), since=Max("at")).exclude(owed=0)


def describe_accounts(line: LedgerLine) -> str:
    """Describe what a line adds to which accounts: debits are above zero, credits below."""
    return ", ".join(
        f"{account.label} {format_amount(from_hundredths(amount), line.currency)}"
        for account, amount in line.amounts
    )


# --- Files ----------------------------------------------------------------------------------------


def build_row(line: LedgerLine) -> tuple[CellValue, ...]:
    """A line as a row of a spreadsheet, in the order of COLUMNS."""
    return (
        *(line.pk, line.at.isoformat(), line.day, line.recognized_on, line.get_kind_display()),
        *(line.cause, line.reservation_id, line.center.name, line.currency),
        "yes" if line.is_test else "no",
        *(
            from_hundredths(amount) if (amount := getattr(line, account)) else None
            for account in Account
        ),
    )


def render_journal(
    lines: Iterable[LedgerLine], since: dt.date, until: dt.date, *, is_beancount: bool
) -> Iterator[str]:
    """Yield the transactions of these days as a journal; each center has accounts of its own."""
    opened = set[str]()
    for line in lines:
        if line.currency not in opened and not is_beancount:
            opened.add(line.currency)
            yield f"commodity 1000.00 {line.currency}\n"
        for day, postings in _split(line):
            if not since <= day <= until:
                continue
            names = {f"{name}:Center-{line.center_id}" for name in postings}
            for name in sorted(names - opened):
                yield f"{OPENED_ON} open {name}\n" if is_beancount else f"account {name}\n"
            opened |= names
            title = f"{line.get_kind_display()}, reservation {line.reservation_id}"
            yield f'{day} * "{title}"\n' if is_beancount else f"{day} {title}\n"
            for name, amount in postings.items():
                yield f"    {name}:Center-{line.center_id}  {amount:.2f} {line.currency}\n"
            yield "\n"


def _split(line: LedgerLine) -> Iterator[tuple[dt.date, dict[str, Decimal]]]:
    """Yield the transactions of a line: what counts on its day, and what counts later."""
    now: dict[str, Decimal] = {}
    later: dict[str, Decimal] = {}
    for account, hundredths in line.amounts:
        amount = from_hundredths(hundredths)
        if account in BILL and line.recognized_on > line.day:
            now[DEFERRED] = now.get(DEFERRED, ZERO) + amount
            later[get_name(account)] = amount
        else:
            now[get_name(account)] = amount
    if now:
        yield line.day, now
    if later:
        later[DEFERRED] = -sum(later.values(), ZERO)
        yield line.recognized_on, later


def get_name(account: Account) -> str:
    """The name of an account, by its type: `Assets:Card-terminal`."""
    name = account.label.replace(" ", "-").capitalize()
    if account in MONEY_ACCOUNTS or account in {Account.RECEIVABLES, Account.BETWEEN_CENTERS}:
        return f"Assets:{name}"
    if account in INCOME:
        return f"Income:{name}"
    if account in {Account.GATEWAY_FEES, Account.DISPUTES_LOST}:
        return f"Expenses:{name}"
    return f"Liabilities:{name}"
