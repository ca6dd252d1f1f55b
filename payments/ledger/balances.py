"""What the accounts of a reservation must hold: the rules of docs/ledger.md."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from payments.ledger.accounts import Account
from payments.ledger.facts import Bill, Movements
from roombook.money import take_share

# The center, whether the payment is a test, and the day of the meeting for what is on a bill.
Key = tuple[int, bool, dt.date | None]
# By account, in hundredths; debits are positive. At each center the accounts add up to zero.
# BOOKINGS is no account: it counts the bookings of a day.
Balances = dict[Key, Counter[str]]
BOOKINGS = "bookings"


def calculate_balances(
    bill: Bill, payments: Sequence[Movements], *, is_test: bool, fee: int = 0
) -> Balances:
    """What each account must hold, if a cancellation costs `fee`, and no payment says `is_test`."""
    balances: Balances = defaultdict(Counter)
    counting = [each for each in payments if each.counts]
    given, accounts = _get_bill(bill, counting, fee)
    unassigned = given - sum(each.given for each in counting)
    for each in payments:
        line = balances[each.center, each.is_test, None]
        line[each.account] += each.received - each.returned - each.fees - each.lost
        line[Account.BANK] -= each.returned_otherwise
        line[Account.GATEWAY_FEES] += each.fees
        line[Account.DISPUTES_LOST] += each.lost
        if each.counts:
            # What was promised and is in no refund belongs to the latest payment.
            line[Account.REFUNDS_PAYABLE] -= each.due + unassigned
            unassigned = 0
        else:
            kept = each.received - each.returned - each.returned_otherwise
            line[Account.REFUNDS_PAYABLE] -= kept
    is_test = counting[0].is_test if counting else is_test
    balances[bill.center, is_test, bill.meeting_day].update(accounts)
    # What is left is what the customer owes, and what the centers owe to each other for that.
    for (center, is_test, _), line in [*balances.items()]:
        at_home, amount = balances[bill.center, is_test, None], _add_up(line)
        at_home[Account.RECEIVABLES] -= amount
        if center != bill.center:
            line[Account.BETWEEN_CENTERS] -= amount
            at_home[Account.BETWEEN_CENTERS] += amount
    return balances


def _get_bill(bill: Bill, counting: Sequence[Movements], fee: int) -> tuple[int, Counter[str]]:
    """What the customer has got back or must get back, and what income and tax hold.

    A promise holds although the gateway refuses the refund. What is only due or refused counts up
    to the price; what was returned counts in full.
    """
    paid, captured, given, completed, refused = (
        sum(getattr(each, name) for each in counting)
        for name in ("amount", "captured", "given", "completed", "refused")
    )
    if bill.is_booked:
        # The price was lowered after the payment.
        reduced = max(0, paid - bill.total)
        given = max(reduced, min(bill.total + reduced, given + refused), completed)
        goodwill = given - reduced
        tax = bill.tax - _get_tax(bill, max(0, bill.total - goodwill))
        accounts = Counter[str](bill.lines)
        accounts.update({BOOKINGS: 1, Account.GOODWILL: goodwill - tax, Account.TAX_PAYABLE: tax})
        return given, accounts
    if not bill.is_kept:
        return given, Counter()
    given = max(min(captured, given), captured - fee, completed)
    kept = captured - given
    if kept < 0:  # More was returned than had come in.
        return given, Counter({Account.GOODWILL: -kept})
    tax = _get_tax(bill, kept)
    return given, Counter({Account.CANCELLATION: tax - kept, Account.TAX_PAYABLE: -tax})


def _get_tax(bill: Bill, kept: int) -> int:
    """The tax of what is kept of the total, as receipts round it. The rest of it is returned."""
    return take_share(bill.tax, kept, bill.total, bill.currency)


def build_lines(balances: Balances, posted: Balances) -> Balances:
    """What is to be posted, in lines that add up to zero.

    What is not on a bill joins the line of the latest meeting, if there is one.
    """
    lines: Balances = {}
    differences = {
        key: _subtract(balances.get(key, {}), posted.get(key, {}))
        for key in balances.keys() | posted.keys()
    }
    for center, is_test in sorted({key[:2] for key in differences}):
        rest = differences.pop((center, is_test, None), Counter[str]())
        days = sorted(
            day
            for (*place, day), line in differences.items()
            if place == [center, is_test] and day and line
        )
        for day in days:
            line = lines[center, is_test, day] = differences[center, is_test, day]
            amount = _add_up(line)
            line[Account.RECEIVABLES] -= amount
            rest[Account.RECEIVABLES] += amount
        last = days[-1] if days else None
        lines.setdefault((center, is_test, last), Counter()).update(rest)
    return {key: amounts for key, line in lines.items() if (amounts := _subtract(line, {}))}


def _add_up(line: Counter[str]) -> int:
    return line.total() - line[BOOKINGS]


def _subtract(line: Mapping[str, int], posted: Mapping[str, int]) -> Counter[str]:
    """The differences that are not zero."""
    difference = Counter[str](line)
    difference.subtract(posted)
    return Counter({account: amount for account, amount in difference.items() if amount})
