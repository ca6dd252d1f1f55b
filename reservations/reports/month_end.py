"""The report for the end of a month: the accounts of the ledger, and how income became cash (B18).

Each account has its balance before the period, what the period added, and its balance at the end.
Income and tax count on the day of the meeting; before that they are deferred. Everything else
counts on the day on which it happened, by the local time of its center.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from operator import attrgetter, itemgetter

from django.conf import settings
from django.db.models import Aggregate, Count, Q, Sum

from payments.ledger.accounts import BILL, INCOME, MONEY_ACCOUNTS, Account, EventKind
from reservations.reports.aggregates import (
    ZERO,
    Breakdown,
    SummableMixin,
    add_up,
    break_down_sums,
)
from reservations.reports.ledger import (
    TOO_LARGE,
    get_lines_url,
    select_lines,
    sum_accounts,
)
from reservations.reports.report import Report, ReportFigure, build_center_table
from reservations.reports.selection import MAX_GROUPS, ReportSelection, fetch_at_most
from reservations.reports.tables import (
    COUNT,
    DAY,
    MONEY,
    ReportColumn,
    ReportTable,
    build_table,
)
from roombook import money
from roombook.money import from_hundredths

DESCRIPTION = (
    "The accounts of the ledger in {}: debits are above zero, credits below. Income and tax count"
    " on the local day of the meeting, and are deferred until then; money on the local day on which"
    " it moved. A booking that moves to another center takes its income along, and Between centers"
    " holds what the other center received for it. Nothing of a period that is over changes."
)
ACCOUNT, AMOUNT = ReportColumn("Account"), ReportColumn("Amount", MONEY)
DEFERRED = "Deferred income and tax"
WAYS = {
    Account.GATEWAY: "Card",
    Account.CASH: "Cash",
    Account.TERMINAL: "Card terminal",
    Account.BANK: "Bank",
}
# Debts that nobody has settled for so many days, and the name of their column.
AGES = ((30, "Up to 30 days"), (60, "31 to 60"), (90, "61 to 90"), (None, "Over 90"))


@dataclass(frozen=True, slots=True)
class Balance:
    """An account before the period, and what the period added."""

    opening: Decimal
    change: Decimal

    @property
    def closing(self) -> Decimal:
        return self.opening + self.change


@dataclass(frozen=True, slots=True)
class Balances:
    """The balances of a selection. What a bill holds is recognized, or else deferred."""

    by_account: Mapping[Account, Balance]
    deferred: Balance

    def sum_changes(self, accounts: Iterable[Account]) -> Decimal:
        return sum((self.by_account[account].change for account in accounts), ZERO)


def measure_balances(selection: ReportSelection) -> Balances:
    """Measure the balances of the selection: four sums of the ledger."""
    rows, period = select_lines(selection), selection.period
    span = (period.first, period.last)
    recognized = rows.filter(meeting_day__isnull=False)
    posted_before = sum_accounts(rows.filter(day__lt=period.first))
    posted = sum_accounts(rows.filter(day__range=span))
    before = sum_accounts(recognized.filter(recognized_on__lt=period.first))
    within = sum_accounts(recognized.filter(recognized_on__range=span))
    return Balances(
        {
            account: Balance(before[account], within[account])
            if account in BILL
            else Balance(posted_before[account], posted[account])
            for account in Account
        },
        Balance(
            sum((posted_before[account] - before[account] for account in BILL), ZERO),
            sum((posted[account] - within[account] for account in BILL), ZERO),
        ),
    )


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    balances = measure_balances(selection)
    cash = balances.sum_changes(MONEY_ACCOUNTS)
    receivables, refunds = (
        balances.by_account[account] for account in (Account.RECEIVABLES, Account.REFUNDS_PAYABLE)
    )
    income = -balances.sum_changes(INCOME)
    cells = fetch_cash(selection)
    return Report(
        figures=[
            ReportFigure("Income", money.format_amount(income), "net of tax, of the period"),
            ReportFigure(
                "Tax", money.format_amount(-balances.by_account[Account.TAX_PAYABLE].change)
            ),
            ReportFigure("Cash", money.format_amount(cash), "received less returned and fees"),
            ReportFigure("Receivables", money.format_amount(receivables.closing), "at the end"),
            ReportFigure("Refunds payable", money.format_amount(-refunds.closing), "at the end"),
            ReportFigure(
                "Deferred", money.format_amount(-balances.deferred.closing), "for later meetings"
            ),
        ],
        tables=[
            _build_cash_flow(selection, balances, income, cash),
            _build_account_table(selection, balances),
            *_build_cash_tables(selection, cells),
            _build_age_table(selection),
        ],
        description=DESCRIPTION.format(settings.CURRENCY),
    )


def _build_cash_flow(
    selection: ReportSelection, balances: Balances, income: Decimal, cash: Decimal
) -> ReportTable:
    """From income to cash: what was earned and not received, or received and not earned yet."""
    change = {account: balance.change for account, balance in balances.by_account.items()}
    reasons = {
        Account.RECEIVABLES: "Receivables: change",
        Account.REFUNDS_PAYABLE: "Refunds payable: change",
        Account.TAX_PAYABLE: "Tax payable: change",
        Account.GATEWAY_FEES: "Fees of the gateway",
        Account.DISPUTES_LOST: "Disputes lost",
        Account.BETWEEN_CENTERS: "Between centers: change",
    }
    rows = [
        ("Income of the period, net of tax", income),
        (f"{DEFERRED}: change", -balances.deferred.change),
        *((reason, -change[account]) for account, reason in reasons.items()),
    ]
    links = [
        _get_links(selection, "income"),
        _get_deferred_links(selection),
        *(_get_links(selection, account) for account in reasons),
    ]
    return ReportTable(
        *("difference", "From income to cash", (ReportColumn("Reason"), AMOUNT), rows),
        ("Cash of the period", cash),
        links=[(first, "") for first, _ in links],
    )


def _build_account_table(selection: ReportSelection, balances: Balances) -> ReportTable:
    columns = (
        ACCOUNT,
        *(ReportColumn(name, MONEY) for name in ("Before", "Change", "At the end")),
    )
    rows = [
        (str(account.label), balance, _get_links(selection, account))
        for account, balance in balances.by_account.items()
    ]
    rows.append((DEFERRED, balances.deferred, _get_deferred_links(selection)))
    shown = [row for row in rows if row[1].opening or row[1].change]
    return ReportTable(
        *("account", "Accounts", columns),
        [(label, each.opening, each.change, each.closing) for label, each, _ in shown],
        note="Debits are above zero, credits below. All accounts together add up to zero."
        " The name of an account opens its lines of the period, and its balance all lines.",
        links=[links for *_, links in shown],
    )


def _get_links(selection: ReportSelection, account: str) -> tuple[str, str]:
    """The lists of the lines of the period, and of all until its end."""
    first, last = selection.period.first, selection.period.last
    is_recognized = account in {*BILL, "income"}
    since, until = (
        ("recognized_on__gte", "recognized_on__lte") if is_recognized else ("day_from", "day_to")
    )
    return (
        get_lines_url(selection, account, **{since: first, until: last}),
        get_lines_url(selection, account, **{until: last}),
    )


def _get_deferred_links(selection: ReportSelection) -> tuple[str, str]:
    """Twice the list of the lines that are deferred at the end of the period."""
    last = selection.period.last
    url = get_lines_url(
        selection, "bill", day_to=last, recognized_on__gte=last + dt.timedelta(days=1)
    )
    return url, url


# --- Cash ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CashSums(SummableMixin):
    """The sums of some movements of money."""

    payments: int = 0
    received: Decimal = ZERO
    refunded: Decimal = ZERO
    disputed: Decimal = ZERO
    fees: Decimal = ZERO

    @property
    def net(self) -> Decimal:
        return self.received - self.refunded - self.disputed - self.fees


CASH_COLUMNS = (
    ReportColumn("Payments", COUNT, "payments"),
    ReportColumn("Received", MONEY, "received"),
    ReportColumn("Refunded", MONEY, "refunded"),
    ReportColumn("Lost disputes", MONEY, "disputed"),
    ReportColumn("Fees", MONEY, "fees"),
    ReportColumn("Cash", MONEY, "net"),
)
# A day, a center (0 if centers are not listed) and an account.
CashCell = tuple[dt.date, int, Account]
RECEIPTS = Q(kind__in=[EventKind.PAID, EventKind.RECEIVED])


def fetch_cash(selection: ReportSelection) -> dict[CashCell, CashSums]:
    """What came in and went out by day, center and account. Raises ReportTooLarge."""
    period, cells = selection.period, dict[CashCell, CashSums]()
    keys = ["day", *(["center"] if selection.lists_centers else [])]
    sums: dict[str, Aggregate] = {"charged": Sum("gateway_fees"), "lost": Sum("disputes_lost")}
    for account in WAYS:
        sums[f"{account}_moved"] = Sum(account)
        sums[f"{account}_in"] = Sum(account, filter=RECEIPTS)
        sums[f"{account}_count"] = Count(account, filter=RECEIPTS)
    rows = select_lines(selection).filter(day__range=(period.first, period.last)).order_by()
    for group in fetch_at_most(MAX_GROUPS, rows.values(*keys).annotate(**sums), TOO_LARGE):
        for account in WAYS:
            moved, received = group[f"{account}_moved"], group[f"{account}_in"] or 0
            if moved is None:
                continue
            charged, lost = (
                (group[name] or 0) if account == Account.GATEWAY else 0
                for name in ("charged", "lost")
            )
            cells[group["day"], group.get("center", 0), account] = CashSums(
                payments=group[f"{account}_count"],
                received=from_hundredths(received),
                refunded=from_hundredths(received - moved - charged - lost),
                disputed=from_hundredths(lost),
                fees=from_hundredths(charged),
            )
    return cells


def _build_cash_tables(
    selection: ReportSelection, cells: Mapping[CashCell, CashSums]
) -> list[ReportTable]:
    summed = [(day.replace(day=1), center, sums) for (day, center, _), sums in cells.items()]
    cash: Breakdown[CashSums] = break_down_sums(selection, summed, CashSums())
    by_way = add_up((account, sums) for (_, _, account), sums in cells.items())
    by_day = add_up((day, sums) for (day, _, _), sums in cells.items())
    way, day = ReportColumn("Way of payment"), ReportColumn("Day", DAY)
    ways, days = [account for account in WAYS if account in by_way], sorted(by_day)
    return [
        replace(
            build_table(
                *("way", "Cash by way of payment", [way], CASH_COLUMNS),
                [([WAYS[account]], by_way[account]) for account in ways],
                cash.total,
            ),
            links=[(_get_links(selection, account)[0], "") for account in ways],
        ),
        replace(
            build_table(
                *("day", "Cash by day", [day], CASH_COLUMNS),
                [([key], by_day[key]) for key in days],
                cash.total,
            ),
            links=[
                (get_lines_url(selection, "money", day_from=key, day_to=key), "") for key in days
            ],
        ),
        build_center_table(cash, CASH_COLUMNS, attrgetter("net"), title="Cash by center"),
        build_table(
            *("cash", "Cash by day, center and way", [day, ReportColumn("Center"), way]),
            CASH_COLUMNS,
            sorted(
                (
                    ([each, cash.center_names.get(center, "All"), WAYS[account]], sums)
                    for (each, center, account), sums in cells.items()
                ),
                key=itemgetter(0),
            ),
            cash.total,
        ),
    ]


# --- What is owed --------------------------------------------------------------------------------


# What is owed is a debit of the first account, and a credit of the second.
OWED = {Account.RECEIVABLES: 1, Account.REFUNDS_PAYABLE: -1}


def _build_age_table(selection: ReportSelection) -> ReportTable:
    """Receivables and refunds payable at the end of the period, by the days since they arose."""
    names = (*(name for _, name in AGES), "In advance", "Amount")
    columns = (ACCOUNT, *(ReportColumn(name, MONEY) for name in names))
    rows: list[tuple[str | Decimal, ...]] = []
    for account, sign in OWED.items():
        *by_age, in_advance = [ZERO] * (len(AGES) + 1)
        for since, balance in _fetch_owed(selection, account):
            days = (selection.period.last - since).days
            index = next(i for i, (limit, _) in enumerate(AGES) if limit is None or days <= limit)
            owed = sign * balance
            by_age[index] += max(owed, ZERO)
            in_advance += min(owed, ZERO)
        rows.append((str(account.label), *by_age, in_advance, sum(by_age, in_advance)))
    return ReportTable(
        *("age", "Receivables and refunds payable by age", columns, rows),
        note="The age of what is owed for a booking counts from the day on which it began to owe."
        " In advance: what was paid for requests that are not approved yet.",
        links=[(_get_links(selection, account)[1], "") for account in OWED],
    )


def _fetch_owed(selection: ReportSelection, account: Account) -> Iterator[tuple[dt.date, Decimal]]:
    """Yield what each reservation owes at the end, and since when: it was settled before."""
    rows = select_lines(selection).order_by()
    rows = rows.filter(day__lte=selection.period.last, **{f"{account}__isnull": False})
    keys = ("reservation", "center")
    owing = rows.values(*keys).annotate(owed=Sum(account)).exclude(owed=0)
    days = rows.filter(reservation__in=owing.values("reservation")).order_by(*keys, "day")
    sums = days.values_list(*keys, "day").annotate(Sum(account))
    for _, group in groupby(fetch_at_most(MAX_GROUPS, sums, TOO_LARGE), itemgetter(0, 1)):
        balance = 0
        for *_, day, change in group:
            if balance * (balance + change) <= 0:
                since = day
            balance += change
        if balance:
            yield since, from_hundredths(balance)
