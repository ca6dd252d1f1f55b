"""The report for the end of a month: the accounts of the ledger, and how income became cash (B18).

Each account has its balance before the period, what the period added, and its balance at the end.
Income and tax count on the day of the meeting; before that they are deferred. Everything else
counts on the day on which it happened, by the local time of its center.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, product
from operator import itemgetter
from typing import Any

from django.conf import settings
from django.db.models import Aggregate, BooleanField, Count, ExpressionWrapper, Q, QuerySet, Sum

from payments.ledger.accounts import BILL, INCOME, MONEY_ACCOUNTS, Account, EventKind
from payments.models import Payment
from reservations.local_days import group_zones
from reservations.reports.cube import (
    CENTER,
    DAY,
    Cube,
    Dimension,
    Member,
    Report,
    ReportFigure,
    ReportTable,
    Sums,
    count,
    credit,
    debit,
)
from reservations.reports.ledger import get_lines_url, select_lines
from reservations.reports.selection import (
    MAX_GROUPS,
    TOO_LARGE,
    ReportSelection,
    fetch_at_most,
)

DESCRIPTION = (
    "The accounts of the ledger in {}: debits are above zero, credits below. Income and tax count"
    " on the local day of the meeting, and are deferred until then; money on the local day on which"
    " it moved. A booking that moves to another center takes its income along, and Between centers"
    " holds what the other center received for it. Nothing of a period that is over changes."
)
ACCOUNT, WAY = Dimension("account", "Account"), Dimension("way", "Way of payment")
DEFERRED = "deferred"
LABELS: dict[str, str] = {
    **{account: str(account.label) for account in Account},
    DEFERRED: "Deferred income and tax",
}
WAYS = {
    Account.GATEWAY: Member("Card", Account.GATEWAY),
    **{each: Member(LABELS[each], each) for each in (Account.CASH, Account.TERMINAL, Account.BANK)},
}
# Before the period, what the period added, and the sum of both.
OPENING, CHANGE = debit("Before", "opening"), debit("Change", "change")
CLOSING = debit("At the end", "opening", "change")
EARNED, OWING = credit("Income", "change"), credit("", "opening", "change")
FIGURES = (
    ("Income", EARNED, INCOME, "net of tax, of the period"),
    ("Tax", EARNED, [Account.TAX_PAYABLE], ""),
    ("Cash", CHANGE, MONEY_ACCOUNTS, "received less returned and fees"),
    ("Receivables", CLOSING, [Account.RECEIVABLES], "at the end"),
    ("Refunds payable", OWING, [Account.REFUNDS_PAYABLE], "at the end"),
    ("Deferred", OWING, [DEFERRED], "for later meetings"),
)
# What makes cash differ from income.
LOSSES = (Account.GATEWAY_FEES, Account.DISPUTES_LOST)
REASONS = (
    *(DEFERRED, Account.RECEIVABLES, Account.REFUNDS_PAYABLE, Account.TAX_PAYABLE),
    *(*LOSSES, Account.BETWEEN_CENTERS),
)
# By account, or DEFERRED: what a bill holds is recognized, or else deferred.
Balances = Mapping[str, Sums]


def measure_balances(selection: ReportSelection) -> Balances:
    """Measure the balances of the selection, in one pass over the ledger."""
    first, last = selection.period.first, selection.period.last
    rows: QuerySet[Any] = select_lines(selection).filter(day__lte=last).order_by()
    # Groups of booleans take half the time of groups of texts.
    parts = (Q(day__lt=first), Q(recognized_on__lt=first), Q(recognized_on__lte=last))
    rows = rows.values_list(*(ExpressionWrapper(each, BooleanField()) for each in parts))
    balances = {account: Sums() for account in (*Account, DEFERRED)}
    for is_earlier, was_counted, is_counted, *sums in rows.annotate(
        **{f"sum_{account}": Sum(account) for account in Account}
    ):
        posted = "opening" if is_earlier else "change"
        counted = "opening" if was_counted else "change"
        for account, amount in zip(Account, map(int, (each or 0 for each in sums)), strict=True):
            if account not in BILL:
                balances[account][posted] += amount
                continue
            balances[DEFERRED][posted] += amount
            if is_counted:  # Otherwise it is still deferred at the end.
                balances[DEFERRED][counted] -= amount
                balances[account][counted] += amount
    return balances


def _sum_up(balances: Balances, accounts: Iterable[str]) -> Sums:
    return Cube([({}, balances[account]) for account in accounts]).total


def build_report(selection: ReportSelection) -> Report:
    """Build the report. Raises ReportTooLarge."""
    balances = measure_balances(selection)
    return Report(
        figures=[
            ReportFigure(label, measure.display(_sum_up(balances, accounts)), note)
            for label, measure, accounts, note in FIGURES
        ],
        tables=[
            _build_cash_flow(selection, balances),
            _build_account_table(selection, balances),
            *_build_cash_tables(selection, measure_cash(selection)),
            _build_age_table(selection),
        ],
        description=DESCRIPTION.format(settings.CURRENCY),
    )


def _build_cash_flow(selection: ReportSelection, balances: Balances) -> ReportTable:
    """From income to cash: what was earned and not received, or received and not earned yet."""
    income = Member("Income of the period, net of tax", "income")
    facts = [({"reason": income}, _sum_up(balances, INCOME))]
    for account in REASONS:
        label = LABELS[account] if account in LOSSES else f"{LABELS[account]}: change"
        facts.append(({"reason": Member(label, account)}, balances[account]))
    table = Cube(facts).tabulate(
        "difference",
        "From income to cash",
        [Dimension("reason", "Reason")],
        [credit("Amount", "change")],
        get_links=lambda reason: (_get_links(selection, reason.pk)[0], ""),
    )
    # Not the sum of the rows: it shows that they add up.
    cash = CHANGE.read(_sum_up(balances, MONEY_ACCOUNTS))
    return replace(table, total=("Cash of the period", cash))


def _build_account_table(selection: ReportSelection, balances: Balances) -> ReportTable:
    cube = Cube(
        [({"account": Member(LABELS[each], each)}, sums) for each, sums in balances.items()]
    )
    table = cube.tabulate(
        "account",
        "Accounts",
        [ACCOUNT],
        [OPENING, CHANGE, CLOSING],
        omits_zeros=True,
        note="Debits are above zero, credits below. All accounts together add up to zero."
        " The name of an account opens its lines of the period, and its balance all lines.",
        get_links=lambda account: _get_links(selection, account.pk),
    )
    return replace(table, total=None)


def _get_links(selection: ReportSelection, account: str) -> tuple[str, str]:
    """The lists of the lines of the period, and of all until its end."""
    first, last = selection.period.first, selection.period.last
    if account == DEFERRED:  # Twice the lines that are deferred at the end of the period.
        later = last + dt.timedelta(days=1)
        url = get_lines_url(selection, "bill", day_to=last, recognized_on__gte=later)
        return url, url
    is_recognized = account in {*BILL, "income"}
    since, until = (
        ("recognized_on__gte", "recognized_on__lte") if is_recognized else ("day_from", "day_to")
    )
    return (
        get_lines_url(selection, account, **{since: first, until: last}),
        get_lines_url(selection, account, **{until: last}),
    )


# --- Cash ----------------------------------------------------------------------------------------


CASH_MEASURES = (
    count("Payments", "payments"),
    debit("Received", "received"),
    debit("Refunded", "received", less=("moved", "fees", "disputed")),
    debit("Lost disputes", "disputed"),
    debit("Fees", "fees"),
    debit("Cash", "moved"),
)
RECEIPTS = Q(kind__in=[EventKind.PAID, EventKind.RECEIVED])


def measure_cash(selection: ReportSelection) -> Cube:
    """What came in and went out by day, center and way of payment. Raises ReportTooLarge."""
    sums: dict[str, Aggregate] = {"fees": Sum("gateway_fees"), "disputed": Sum("disputes_lost")}
    for account in WAYS:
        sums[f"{account}_moved"] = Sum(account)
        sums[f"{account}_received"] = Sum(account, filter=RECEIPTS)
        sums[f"{account}_payments"] = Count(account, filter=RECEIPTS)
    lines = select_lines(selection)
    lines = lines.filter(day__range=(selection.period.first, selection.period.last))
    cube = selection.add_up(lines, sums, center="center", day=("day",))
    columns = {
        account: {each: f"{account}_{each}" for each in ("payments", "received", "moved")}
        for account in WAYS
    }
    columns[Account.GATEWAY] |= {"fees": "fees", "disputed": "disputed"}
    facts = []
    for (members, found), (account, way) in product(cube.facts, WAYS.items()):
        moved = {name: found[key] for name, key in columns[account].items() if key in found}
        if moved:
            facts.append(({**members, "way": way}, Sums(moved)))
    facts.sort(key=lambda fact: tuple(fact[0].values()))
    return Cube([*(({"way": way}, Sums()) for way in WAYS.values()), *facts])


def _build_cash_tables(selection: ReportSelection, cash: Cube) -> list[ReportTable]:
    centers = [CENTER] if selection.lists_centers else []
    return [
        cash.tabulate(
            key,
            title,
            dimensions,
            CASH_MEASURES,
            order=order,
            omits_zeros=True,
            note=note,
            get_links=partial(_get_cash_links, selection, dimensions),
        )
        for key, title, dimensions, order, note in (
            ("way", "Cash by way of payment", [WAY], None, _describe_unknown_fees(selection)),
            ("day", "Cash by day", [DAY], None, ""),
            ("center", "Cash by center", [CENTER], CASH_MEASURES[-1], selection.center_note),
            ("cash", "Cash by day, center and way", [DAY, *centers, WAY], None, ""),
        )
    ]


def _get_cash_links(
    selection: ReportSelection, dimensions: Sequence[Dimension], *members: Any
) -> tuple[str, str]:
    """The list of the lines of a row, by what its table is grouped by."""
    found = dict(zip(dimensions, members, strict=True))
    if center := found.get(CENTER):
        selection = replace(selection, centers=frozenset({center.pk}))
    account = found[WAY].pk if WAY in found else "money"
    first, last = selection.period.first, selection.period.last
    days = {"day_from": found.get(DAY, first), "day_to": found.get(DAY, last)}
    return get_lines_url(selection, account, **days), ""


def _describe_unknown_fees(selection: ReportSelection) -> str:
    """Say how many payments until the end have fees that are not in the ledger yet."""
    is_until_end = Q(pk__in=[])
    for end, zones in group_zones(selection.zones, lambda zone: selection.period.span(zone).end):
        is_until_end |= Q(captured_at__lt=end, cash_center__time_zone_id__in=zones)
    rows = Payment.objects.filter(is_until_end, selection.filter_centers("cash_center"))
    count = rows.filter(fees_due_at__isnull=False).count()
    return f"Payments whose fees the gateway has not named yet: {count}." if count else ""


# --- What is owed --------------------------------------------------------------------------------


# What is owed is a debit of the first account, and a credit of the second.
OWED = {Account.RECEIVABLES: 1, Account.REFUNDS_PAYABLE: -1}
# Debts that nobody has settled for so many days, and the name of their column.
AGES = ((30, "Up to 30 days"), (60, "31 to 60"), (90, "61 to 90"), (None, "Over 90"))
AGE_NAMES = (*(name for _, name in AGES), "In advance")
BATCH_SIZE = 10_000


def _build_age_table(selection: ReportSelection) -> ReportTable:
    """Receivables and refunds payable at the end of the period, by the days since they arose."""
    ages = {account: Sums() for account in OWED}
    for account, since, balance in _fetch_owed(selection):
        days = (selection.period.last - since).days
        age = next(name for limit, name in AGES if limit is None or days <= limit)
        owed = OWED[account] * balance
        ages[account][age if owed > 0 else "In advance"] += owed
    facts = [({"account": Member(LABELS[each], each)}, sums) for each, sums in ages.items()]
    table = Cube(facts).tabulate(
        "age",
        "Receivables and refunds payable by age",
        [ACCOUNT],
        [*(debit(name, name) for name in AGE_NAMES), debit("Amount", *AGE_NAMES)],
        note="The age of what is owed for a booking counts from the day on which it began to owe."
        " In advance: what was paid for requests that are not approved yet.",
        get_links=lambda account: (_get_links(selection, account.pk)[1], ""),
    )
    return replace(table, total=None)


def _fetch_owed(selection: ReportSelection) -> Iterator[tuple[Account, dt.date, int]]:
    """Yield what each reservation owes at the end, and since when: it was settled before."""
    rows = select_lines(selection).filter(day__lte=selection.period.last).order_by()
    keys, sums = ("reservation", "center"), {f"sum_{account}": Sum(account) for account in OWED}
    owing = rows.values_list(*keys).annotate(**sums).exclude(**dict.fromkeys(sums, 0))
    pks = sorted({pk for pk, *_ in fetch_at_most(MAX_GROUPS, owing, TOO_LARGE)})
    days: QuerySet[Any]
    days = rows.order_by(*keys, "day").values_list(*keys, "day").annotate(**sums)
    # They are few: a join would make PostgreSQL read the lines of all reservations again.
    parts = (
        days.filter(reservation__in=pks[place : place + BATCH_SIZE])
        for place in range(0, len(pks), BATCH_SIZE)
    )
    for _, group in groupby(chain.from_iterable(parts), itemgetter(0, 1)):
        found = [(day, changes) for _, _, day, *changes in group]
        for number, account in enumerate(OWED):
            balance = 0
            for day, changes in found:
                change = changes[number] or 0
                if balance * (balance + change) <= 0:
                    since = day
                balance += change
            if balance:
                yield account, since, balance
