"""The accounts that an accountant keeps manually, and their comparison with the reports.

The accounts know only what staff and customers can see, and add it up with rules of their own:
nothing of them comes from the product.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

from centers.models import Center
from payments.ledger.accounts import BILL
from payments.ledger.accounts import Account as LedgerAccount
from reservations.booking import integrity
from reservations.local_days import LocalDays
from reservations.reports import month_end
from reservations.reports.selection import ReportSelection
from roombook.dates import add_months

# By center: 18:00 UTC is noon of the same day in Denver, and the next day in Tokyo.
ZONES = {
    "Denver": ZoneInfo("America/Denver"),
    "Boulder": ZoneInfo("America/Denver"),
    "Tokyo": ZoneInfo("Asia/Tokyo"),
    "Osaka": ZoneInfo("Asia/Tokyo"),
}
LABELS = {
    "sandbox": "Card",
    "cash": "Cash",
    "terminal": "Card terminal",
    "account": "Bank",
    "manual": "Bank",
}


def round_cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


@dataclass
class Money:
    """An amount that came in or went out; ``at`` is None as long as it has not."""

    way: str
    amount: Decimal
    at: dt.datetime | None
    # The center whose cash it is: money that was given back belongs to the center of its payment.
    center: str
    # What of it was or will be returned.
    given: Decimal = Decimal(0)


@dataclass
class Account:
    """What the accounts know of one reservation."""

    pk: int
    center: str
    sold_at: dt.datetime
    start: dt.datetime
    hours: int
    net: Decimal
    tax: Decimal
    status: str = "booked"
    received: list[Money] = field(default_factory=list)
    returned: list[Money] = field(default_factory=list)
    lost: list[Money] = field(default_factory=list)
    dispute_fees: list[Money] = field(default_factory=list)
    # What the gateway refused to refund.
    refused: Decimal = Decimal(0)
    fee: Decimal = Decimal(0)
    # What a no-show costs, in percent of the price, and what came back of it.
    no_show_percent: int = 100
    goodwill: Decimal = Decimal(0)

    @property
    def zone(self) -> ZoneInfo:
        return ZONES[self.center]

    @property
    def price(self) -> Decimal:
        return self.net + self.tax

    @property
    def revenue(self) -> Decimal:
        kept = {
            "booked": self.price,
            "cancelled": self.fee,
            "missed": self.price - self.goodwill,
        }
        return kept.get(self.status, Decimal(0))

    @property
    def left(self) -> Decimal:
        """What the customer has paid or owes, less what was or will be returned."""
        given = sum(each.amount for each in self.returned) + self.refused
        return sum((each.amount for each in self.received), Decimal(0)) - given

    @property
    def gateway_fees(self) -> list[Money]:
        """2.9 percent and 30 cents of each payment by card, and what the disputes cost."""
        by_card = [each for each in self.received if each.way == "sandbox"]
        return self.dispute_fees + [
            replace(paid, amount=round_cents(paid.amount * 29 / 1000) + Decimal("0.30"))
            for paid in by_card
        ]

    def give_back(self, amount: Decimal, *, at: dt.datetime | None) -> None:
        """Return money, the latest payment first. What is not received is credited instead."""
        for paid in reversed(self.received):
            part = min(amount, paid.amount - paid.given)
            amount -= part
            if paid.way == "account" and paid.at is None:
                paid.amount -= part
            elif part:
                paid.given += part
                by_hand = paid.way != "sandbox"
                self.returned.append(Money(paid.way, part, None if by_hand else at, paid.center))


def find_disagreements(
    accounts: Collection[Account], *, since: dt.date, now: dt.datetime
) -> Iterator[str]:
    """Compare the database, and the three tables of each month in question, with the accounts."""
    refused = [
        f"reservation {account.pk}: {account.refused} is owed to its customer,"
        " and 0.00 is being refunded"
        for account in accounts
        if account.refused
    ]
    for finding in integrity.find_problems(now=now):
        # Nothing completes the meetings here.
        if finding.detail not in refused and finding.check != "statuses off their times":
            yield f"verify_integrity: {finding}"
    month = since.replace(day=1)
    # All centers together, and a single one: each day another.
    one = list(ZONES)[now.toordinal() % len(ZONES)]
    always = LocalDays(month, (now + dt.timedelta(days=400)).date())
    yield from _compare_balances(accounts, always, set(ZONES))
    yield from _compare_balances(accounts, always, {one})
    while month <= (now + dt.timedelta(days=10)).date():
        period = LocalDays.from_month(month)
        yield from _compare_month(accounts, period, set(ZONES))
        yield from _compare_month(accounts, period, {one})
        month = add_months(month, 1)


def _compare_month(
    accounts: Collection[Account], period: LocalDays, names: set[str]
) -> Iterator[str]:
    centers = frozenset(Center.objects.filter(name__in=names).values_list("pk", flat=True))
    report = month_end.build_report(ReportSelection(period, centers))
    tables = {table.key: table for table in report.tables}
    lines = dict(tables["difference"].rows)
    _, cash = tables["difference"].total or ()
    if sum(Decimal(str(row[-1])) for row in tables["account"].rows):
        yield f"{period.first}: the accounts do not add up to zero"
    if sum(lines.values()) != cash:
        yield f"{period.first}: the lines add up to {sum(lines.values())}, cash is {cash}"
    reported = {(row[0], str(row[1]), str(row[2])): tuple(row[4:]) for row in tables["cash"].rows}
    for cell, sums in _get_expected_cash(accounts, period, names).items():
        if reported.pop(cell, (0, 0, 0, 0, 0)) != sums:
            yield f"{cell}: the cash report does not have {sums}"
    if reported:
        yield f"{period.first}: there was no cash of {reported}"


def _compare_balances(
    accounts: Collection[Account], period: LocalDays, names: set[str]
) -> Iterator[str]:
    """Compare what has been earned, and what is owed, with the balances of the ledger."""
    centers = frozenset(Center.objects.filter(name__in=names).values_list("pk", flat=True))
    found = month_end.measure_balances(ReportSelection(period, centers))
    at_centers = [account for account in accounts if account.center in names]
    expected = {
        "revenue": -sum(account.revenue for account in at_centers),
        # Whoever has paid for a request is owed its price until that is approved.
        "receivables": sum(
            -each.amount if account.status == "request" else each.amount
            for account in at_centers
            for each in account.received
            if (each.at is None) != (account.status == "request")
        ),
        "refunds_payable": -sum(
            each.amount
            for account in accounts
            for each in account.returned
            if each.at is None and each.center in names
        )
        - sum(
            account.refused
            for account in accounts
            if account.received[-1:] and account.received[-1].center in names
        ),
    }
    reported = {
        "revenue": sum(month_end.CHANGE.read(found[account]) for account in BILL),
        **{
            account.value: month_end.CLOSING.read(found[account])
            for account in (LedgerAccount.RECEIVABLES, LedgerAccount.REFUNDS_PAYABLE)
        },
    }
    for name, amount in expected.items():
        if reported[name] != amount:
            yield f"{names}: {name} is {reported[name]}, and should be {amount}"


Cell = tuple[dt.date, str, str]


def _get_expected_cash(
    accounts: Collection[Account], period: LocalDays, names: set[str]
) -> dict[Cell, tuple[Decimal, ...]]:
    """What was received, refunded and lost on each day, the gateway's fees, and the sum."""
    cells: dict[Cell, list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 4)
    for account in accounts:
        columns = (account.received, account.returned, account.lost, account.gateway_fees)
        for column, moved in enumerate(columns):
            for each in moved:
                day = each.at and each.at.astimezone(ZONES[each.center]).date()
                is_here = each.center in names
                if is_here and day and each.amount and period.first <= day <= period.last:
                    cells[day, each.center, LABELS[each.way]][column] += each.amount
    return {
        cell: (received, returned, lost, fees, received - returned - lost - fees)
        for cell, (received, returned, lost, fees) in cells.items()
    }
