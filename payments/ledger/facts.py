"""The facts that decide what the accounts hold: a bill, and what its payments have moved.

Amounts are in hundredths.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from payments.gateways.manual import ACCOUNT
from payments.ledger.accounts import MONEY_BY_WAY, Account
from payments.models import LOST, Dispute, Payment, Refund, RefundState
from roombook.money import to_hundredths


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a reservation costs, and what of it its customer must get back.

    `lines` has what the lines of the bill add to the accounts; credits are negative. The bill holds
    while `is_booked`. `is_kept`: it was cancelled, and what is not given back is a fee.
    """

    center: int
    zone: str
    currency: str
    start: dt.datetime
    meeting_day: dt.date
    is_booked: bool
    is_kept: bool
    total: int
    lines: Mapping[Account, int]

    @property
    def tax(self) -> int:
        return -self.lines.get(Account.TAX_PAYABLE, 0)


def get_bill_reader() -> Any:
    """The manager of reservations, which reads bills. This app does not import that one."""
    reservations: Any = Payment._meta.get_field("reservation").related_model
    return reservations.objects


class Movements:
    """What a payment has moved: nothing before its capture. `counts`: it pays for something."""

    def __init__(
        self, payment: Payment, refunds: Iterable[Refund], disputes: Iterable[Dispute]
    ) -> None:
        self.counts = payment.counts
        self.center = payment.cash_center_id
        self.is_test = not payment.is_live
        self.account = MONEY_BY_WAY.get(payment.gateway, Account.GATEWAY)
        self.amount = to_hundredths(payment.amount)
        self.captured = self.amount if payment.captured_at else 0
        self.fees = to_hundredths(payment.fee)
        # What is due for return, what was credited before it came in, and what was returned from
        # the payment's own account and from the bank's.
        self.due = self.credited = self.returned = self.returned_otherwise = self.lost = 0
        # What was promised, and neither made nor tried again after the gateway refused it.
        self.refused = 0
        refunds = sorted(refunds, key=lambda each: each.done_at or each.created_at)
        retried = {each.again_id for each in refunds}
        for refund in refunds:
            amount = to_hundredths(refund.amount)
            self.fees += to_hundredths(refund.fee)
            if refund.state == RefundState.REFUSED:
                self.refused += amount if refund.is_promised and refund.pk not in retried else 0
            elif not refund.is_promised:  # Staff have made it, perhaps instead of a refused one.
                self.refused = max(0, self.refused - amount)
            if refund.state == RefundState.STARTED:
                self.due += amount
            elif refund.state == RefundState.OUTSIDE:
                self.returned_otherwise += amount
            elif refund.state == RefundState.DONE and _was_owed(payment, refund):
                self.credited += amount
            elif refund.state == RefundState.DONE:
                self.returned += amount
        for dispute in disputes:
            if dispute.closed_at:
                self.fees += to_hundredths(dispute.fee)
                self.lost += to_hundredths(dispute.amount) if dispute.status == LOST else 0
        self.received = 0 if payment.is_receivable else self.captured - self.credited

    @property
    def completed(self) -> int:
        return self.credited + self.returned + self.returned_otherwise

    @property
    def given(self) -> int:
        """What the customer has, or is about to get back."""
        return self.completed + self.due


def _was_owed(payment: Payment, refund: Refund) -> bool:
    """Whether the customer had not paid this payment on account when it was refunded."""
    at, done_at = payment.received_at, refund.done_at
    return payment.gateway == ACCOUNT.name and not (at and done_at and at < done_at)


def read_movements(reservations: Collection[int], *, locks: bool) -> dict[int, list[Movements]]:
    """Read what the payments of each reservation have moved; the latest payment first.

    Whoever posts locks them first, so that the facts and the ledger agree.
    """
    rows = Payment.objects.filter(reservation__in=reservations).order_by("pk")
    if locks:
        rows = rows.select_for_update(of=("self",))
    payments = [each for each in rows if each.captured_at or each.counts]
    refunds = _group_by_payment(Refund.objects.filter(payment__in=payments))
    disputes = _group_by_payment(Dispute.objects.filter(payment__in=payments))
    found: dict[int, list[Movements]] = {pk: [] for pk in reservations}
    for payment in reversed(payments):
        movements = Movements(payment, refunds.get(payment.pk, ()), disputes.get(payment.pk, ()))
        found[payment.reservation_id].append(movements)
    return found


def _group_by_payment(rows: QuerySet[Any]) -> dict[int, list[Any]]:
    """Not prefetched, because that builds a queryset for each payment, which takes longer."""
    key = attrgetter("payment_id")
    return {pk: [*group] for pk, group in groupby(rows.order_by("payment_id"), key)}
