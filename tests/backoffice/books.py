"""The accounts that an accountant keeps manually, and their comparison with the reports.

The accounts know only what staff and customers can see, and add it up with rules of their own:
nothing of them comes from the product.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

from reservations.admin.reports import month_end
from reservations.admin.reports.periods import ReportPeriod, add_months
from reservations.admin.reports.selection import ReportSelection
from reservations.booking import integrity

LABELS = {
    "sandbox": "Card (sandbox)",
    "cash": "Cash",
    "terminal": "Card terminal",
    "account": "On account",
    "manual": "Refunded manually",
}


def round_cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


@dataclass
class Money:
    """An amount that came in or went out; ``at`` is None as long as it has not."""

    way: str
    amount: Decimal
    at: dt.datetime | None
    # What of it was or will be returned.
    given: Decimal = Decimal(0)


@dataclass
class Account:
    """What the accounts know of one reservation."""

    pk: int
    center: str
    time_zone_id: str
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

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone_id)

    @property
    def price(self) -> Decimal:
        return self.net + self.tax

    @property
    def revenue(self) -> Decimal:
        return {"booked": self.price, "cancelled": self.fee}.get(self.status, Decimal(0))

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
            Money(paid.way, round_cents(paid.amount * 29 / 1000) + Decimal("0.30"), paid.at)
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
                self.returned.append(Money(paid.way, part, None if by_hand else at))


def find_disagreements(
    accounts: Collection[Account], *, since: dt.date, now: dt.datetime
) -> Iterator[str]:
    """Compare the database, and the three tables of each month in question, with the accounts."""
    refused = [
        f"reservation {account.pk} is Cancelled: {account.refused} was promised,"
        " and less is refunded"
        for account in accounts
        if account.refused
    ]
    for finding in integrity.find_problems(now=now):
        if finding.detail not in refused:
            yield f"verify_integrity: {finding}"
    month = since.replace(day=1)
    while month <= (now + dt.timedelta(days=10)).date():
        yield from _compare_month(accounts, ReportPeriod.from_month(month))
        month = add_months(month, 1)


def _compare_month(accounts: Collection[Account], period: ReportPeriod) -> Iterator[str]:
    tables = {table.key: table for table in month_end.build_report(ReportSelection(period)).tables}
    lines = dict(tables["difference"].rows)
    expected = _get_expected_lines(accounts, period)
    for words, amount in expected.items():
        if lines[words] != amount:
            yield f"{period.first}: {words} is {lines[words]}, and should be {amount}"
    if "unexplained" in tables:
        yield f"{period.first}: {tables['unexplained'].rows} are unexplained"
    _, cash = tables["difference"].total or ()
    if sum(lines.values()) != cash:
        yield f"{period.first}: the lines add up to {sum(lines.values())}, cash is {cash}"
    reported = {tuple(row[:3]): tuple(row[4:]) for row in tables["cash"].rows}
    for cell, sums in _get_expected_cash(accounts, period).items():
        if reported.pop(cell, (0, 0, 0, 0, 0)) != sums:
            yield f"{cell}: the cash report does not have {sums}"
    if reported:
        yield f"{period.first}: there was no cash of {reported}"


def _get_expected_lines(accounts: Collection[Account], period: ReportPeriod) -> dict[str, Decimal]:
    expected = defaultdict[str, Decimal](Decimal)
    for account in accounts:
        zone = account.zone
        if not period.first <= account.start.astimezone(zone).date() <= period.last:
            continue
        expected["Revenue of the meetings of the period"] += account.revenue
        if account.status not in {"booked", "cancelled"}:
            continue
        prefix = "Meetings of the period: "
        for each in account.received:
            if each.at is None:
                expected[f"{prefix}on account, not received yet"] -= each.amount
        for each in account.returned:
            if each.at is None:
                expected[f"{prefix}refund due, not executed yet"] += each.amount
        expected[f"{prefix}refund owed, which the gateway refused"] += account.refused
    return {"Unexplained": Decimal(0), **expected}


Cell = tuple[dt.date, str, str]


def _get_expected_cash(
    accounts: Collection[Account], period: ReportPeriod
) -> dict[Cell, tuple[Decimal, ...]]:
    """What was received, refunded and lost on each day, the gateway's fees, and the sum."""
    cells: dict[Cell, list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 4)
    for account in accounts:
        zone = account.zone
        columns = (account.received, account.returned, account.lost, account.gateway_fees)
        for column, moved in enumerate(columns):
            for each in moved:
                day = each.at and each.at.astimezone(zone).date()
                if day and each.amount and period.first <= day <= period.last:
                    cells[day, account.center, LABELS[each.way]][column] += each.amount
    return {
        cell: (received, returned, lost, fees, received - returned - lost - fees)
        for cell, (received, returned, lost, fees) in cells.items()
    }
