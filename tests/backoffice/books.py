"""Random days at four centers, and the books that an accountant keeps of them by hand.

`Business` sells, changes, cancels, refunds and disputes through the domain. `Books` knows only what
staff and customers can see, and adds it up in plain dictionaries with rules of its own: nothing of
it comes from the product. `find_disagreements` compares both.
"""

import datetime as dt
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

from centers.models import Center, MeetingRoom
from payments import manual_payments, refunds
from payments.gateway_events import record_dispute
from payments.gateways.base import GatewayDispute
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, Refund
from reservations.admin.reports import month_end
from reservations.admin.reports.periods import ReportPeriod, add_months
from reservations.admin.reports.selection import ReportSelection
from reservations.booking import approval, cancellation, integrity, price_adjustments
from reservations.booking.refund_decisions import RefundDecision
from reservations.booking.taking_payment import take_manual_payment
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import make_booking, make_draft, make_room

FIRST_DAY = dt.datetime(2027, 3, 29, 18, tzinfo=dt.UTC)
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
TAX_RATE = Decimal("8.81")
HOURLY = 25
NOTICE, GRACE = 24 * HOUR, HOUR / 4
# By center: 18:00 UTC is noon of the same day in Denver, and the next day in Tokyo. Two centers
# approve each booking.
ZONES = {
    "Denver": "America/Denver",
    "Boulder": "America/Denver",
    "Tokyo": "Asia/Tokyo",
    "Osaka": "Asia/Tokyo",
}
CENTERS_THAT_APPROVE = {"Boulder", "Osaka"}
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


@dataclass
class Account:
    """What the books know of one reservation."""

    pk: int
    center: str
    sold_at: dt.datetime
    start: dt.datetime
    net: Decimal
    tax: Decimal
    status: str = "booked"
    received: list[Money] = field(default_factory=list)
    returned: list[Money] = field(default_factory=list)
    lost: list[Money] = field(default_factory=list)
    # What the gateway refused to refund.
    refused: Decimal = Decimal(0)
    fee: Decimal = Decimal(0)

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

    def give_back(self, amount: Decimal, *, at: dt.datetime | None) -> None:
        """Return money, the latest payment first. What is not received is credited instead."""
        for paid in reversed(self.received):
            mine = sum(each.amount for each in self.returned if each.way == paid.way)
            part = min(amount, paid.amount - mine)
            amount -= part
            if paid.way == "account" and paid.at is None:
                paid.amount -= part
            elif part:
                by_hand = paid.way != "sandbox"
                self.returned.append(Money(paid.way, part, None if by_hand else at))


class Business:
    """Does one random thing after the other, in the domain and in the books."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = FIRST_DAY
        self.staff = AdministratorFactory()
        self.customer = UserFactory(credit_limit=Decimal(100_000))
        self.books: dict[int, Account] = {}
        self.taken = set[tuple[int, dt.datetime]]()
        self.rooms: list[MeetingRoom] = []
        for name, zone in ZONES.items():
            is_live = name not in CENTERS_THAT_APPROVE
            room = make_room(time_zone_id=zone, is_live_inventory=is_live)
            Center.objects.filter(pk=room.center_id).update(name=name, tax_rate=TAX_RATE)
            self.rooms.append(MeetingRoom.objects.get(pk=room.pk))

    def run_day(self, count: int) -> None:
        for _ in range(count):
            self.now += dt.timedelta(minutes=self.random.randint(1, 20))
            self.random.choice(self.ACTIONS)(self)
        self.now = FIRST_DAY + DAY * ((self.now - FIRST_DAY).days + 1)

    def choose(self, is_possible: Callable[[Account], bool]) -> Account | None:
        possible = [each for each in self.books.values() if is_possible(each)]
        return self.random.choice(possible) if possible else None

    # --- Sales

    def sell(self) -> None:
        way = self.random.choice(["sandbox", "sandbox", "cash", "terminal", "account"])
        room = self.random.choice(self.rooms)
        zone = room.center.zone
        day = self.now.astimezone(zone).date() + DAY * self.random.randint(1, 9)
        time = dt.time(self.random.choice([9, 13]))
        at = dt.datetime.combine(day, time, ZoneInfo(zone.key)).astimezone(dt.UTC)
        if (room.pk, at) in self.taken:
            return
        self.taken.add((room.pk, at))
        hours = self.random.randint(1, 3)
        options = {"start": at, "hours": hours, "now": self.now}
        if way == "sandbox":
            reservation = make_booking(self.customer, room, **options)
        else:
            draft = make_draft(self.customer, room, **options)
            reservation = take_manual_payment(
                draft,
                gateway=way,
                reference="17",
                shown_total=draft.total_cost,
                by=self.staff,
                now=self.now,
            )
        net = Decimal(HOURLY * hours)
        tax = round_cents(net * TAX_RATE / 100)
        account = Account(reservation.pk, room.center.name, self.now, at, net, tax)
        self.books[account.pk] = account
        if not room.is_live_inventory:
            account.status = "request"
        is_held = way == "sandbox" and account.status == "request"
        is_received = way != "account" and not is_held
        account.received = [Money(way, account.price, self.now if is_received else None)]

    def answer(self) -> None:
        account = self.choose(
            lambda each: each.status == "request" and each.start > self.now + HOUR
        )
        if account is None:
            return
        [paid] = account.received
        if self.random.random() < 0.6:
            approval.approve(account.pk, by=self.staff, now=self.now)
            account.status = "booked"
            if paid.way == "sandbox":
                paid.at = self.now
        else:
            approval.decline(account.pk, by=self.staff, now=self.now)
            account.status = "declined"
            self._take_back(account)

    def _take_back(self, account: Account) -> None:
        """A request ends: what is only authorized is voided."""
        [paid] = account.received
        if paid.way == "sandbox":
            account.received.clear()
        else:
            account.give_back(account.left, at=self.now)

    # --- Changes and cancellations

    def reduce(self) -> None:
        account = self.choose(lambda each: each.status == "booked" and each.net > 10)
        if account is None or account.refused:
            return
        less = Decimal(self.random.randint(1, 900)) / 100
        price_adjustments.adjust_price(
            account.pk, amount=-less, reason="Noise", by=self.staff, now=self.now
        )
        old_price = account.price
        # A bill that is paid keeps its rate of tax, whatever the center's is now.
        account.tax = round_cents(account.tax * (account.net - less) / account.net)
        account.net -= less
        account.give_back(old_price - account.price, at=self.now)

    def cancel(self) -> None:
        account = self.choose(
            lambda each: each.status in {"booked", "request"} and each.start > self.now
        )
        if account is None or account.refused:
            return
        if account.status == "request":
            cancellation.cancel(account.pk, by=self.staff, now=self.now)
            account.status = "cancelled"
            self._take_back(account)
            return
        free_until = max(account.start - NOTICE, account.sold_at + GRACE)
        refund = account.left if self.now <= free_until else Decimal(0)
        decision = None
        if self.random.random() < 0.3:
            refund = round_cents(account.left * self.random.randint(0, 100) / 100)
            decision = RefundDecision(refund, "They could not come")
        is_refused = self.random.random() < 0.3 and account.received[0].way == "sandbox"
        keys = Payment.objects.filter(reservation=account.pk).values("key")
        at_gateway = SandboxPayment.objects.filter(key__in=keys)
        if is_refused:  # The gateway refunds no voided payment.
            at_gateway.filter(state="captured").update(state="voided")
        cancellation.cancel(account.pk, by=self.staff, decision=decision, now=self.now)
        if is_refused:
            at_gateway.filter(state="voided").update(state="captured")
        account.status, account.fee = "cancelled", account.left - refund
        if is_refused:
            account.refused = refund
        else:
            account.give_back(refund, at=self.now)

    # --- Money that moves later

    def receive(self) -> None:
        def is_owed(account: Account) -> bool:
            return any(
                each.way == "account" and each.at is None and each.amount
                for each in account.received
            )

        if account := self.choose(is_owed):
            payment = Payment.objects.receivable().filter(reservation=account.pk).first()
            manual_payments.mark_received(payment, now=self.now)
            for each in account.received:
                if each.way == "account" and each.at is None:
                    each.at = self.now
                    break

    def hand_over(self) -> None:
        for refund in Refund.objects.due_by_hand().order_by("pk"):
            if self.random.random() < 0.6:
                refunds.confirm_refund_by_hand(refund, "18", now=self.now)
                returned = self.books[refund.payment.reservation_id].returned
                due = [each for each in returned if each.at is None]
                next(each for each in due if each.amount == refund.amount).at = self.now

    def settle_refused(self) -> None:
        account = self.choose(lambda each: each.refused > 0)
        if account is None:
            return
        refund = refunds.get_unhandled().get(payment__reservation=account.pk)
        way = self.random.choice(["sandbox", "manual"])
        if way == "manual":
            refunds.mark_refunded_manually(refund, "Bank transfer", now=self.now)
        else:
            retry = refunds.create_retry_refund(refund, now=self.now)
            refunds.execute_refund(retry, now=self.now)
        account.returned.append(Money(way, account.refused, self.now))
        account.refused = Decimal(0)

    def lose_dispute(self) -> None:
        account = self.choose(
            lambda each: each.status == "booked" and not each.lost and not each.returned
        )
        if account is None or account.received[0].way != "sandbox":
            return
        payment = Payment.objects.get(reservation=account.pk, gateway="sandbox", state="captured")
        for status in ("needs_response", self.random.choice(["won", "lost"])):
            reported = GatewayDispute(
                reference=f"d{account.pk}",
                amount=payment.amount,
                currency="USD",
                reason="fraudulent",
                status=status,
                opened_at=self.now,
                is_closed=status != "needs_response",
            )
            record_dispute(payment, reported, now=self.now)
        if status == "lost":
            account.lost.append(Money("sandbox", payment.amount, self.now))

    ACTIONS = (
        *(sell,) * 6,
        *(answer,) * 2,
        *(reduce,) * 2,
        *(cancel,) * 2,
        *(receive, hand_over, settle_refused, lose_dispute),
    )


# --- The comparison ------------------------------------------------------------------------------


def find_disagreements(business: Business) -> Iterator[str]:
    """Compare the database, and the three tables of each month in question, with the books."""
    refused = [
        f"reservation {account.pk} is Cancelled: {account.refused} was promised,"
        " and less is refunded"
        for account in business.books.values()
        if account.refused
    ]
    for finding in integrity.find_problems(now=business.now):
        if finding.detail not in refused:
            yield f"verify_integrity: {finding}"
    month = FIRST_DAY.date().replace(day=1)
    while month <= (business.now + 10 * DAY).date():
        yield from _compare_month(business, ReportPeriod.from_month(month))
        month = add_months(month, 1)


def _compare_month(business: Business, period: ReportPeriod) -> Iterator[str]:
    tables = {table.key: table for table in month_end.build_report(ReportSelection(period)).tables}
    lines = dict(tables["difference"].rows)
    expected = _get_expected_lines(business, period)
    for words, amount in expected.items():
        if lines[words] != amount:
            yield f"{period.first}: {words} is {lines[words]}, and should be {amount}"
    if "unexplained" in tables:
        yield f"{period.first}: {tables['unexplained'].rows} are unexplained"
    _, cash = tables["difference"].total or ()
    if sum(lines.values()) != cash:
        yield f"{period.first}: the lines add up to {sum(lines.values())}, cash is {cash}"
    reported = {tuple(row[:3]): tuple(row[4:]) for row in tables["cash"].rows}
    for cell, sums in _get_expected_cash(business, period).items():
        if reported.pop(cell, (0, 0, 0, 0)) != sums:
            yield f"{cell}: the cash report does not have {sums}"
    if reported:
        yield f"{period.first}: there was no cash of {reported}"


def _get_expected_lines(business: Business, period: ReportPeriod) -> dict[str, Decimal]:
    expected = defaultdict[str, Decimal](Decimal)
    for account in business.books.values():
        zone = ZoneInfo(ZONES[account.center])
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
    business: Business, period: ReportPeriod
) -> dict[Cell, tuple[Decimal, Decimal, Decimal, Decimal]]:
    """What was received, refunded and lost on each day, and the sum."""
    cells: dict[Cell, list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 3)
    for account in business.books.values():
        zone = ZoneInfo(ZONES[account.center])
        for column, moved in enumerate((account.received, account.returned, account.lost)):
            for each in moved:
                day = each.at and each.at.astimezone(zone).date()
                if day and each.amount and period.first <= day <= period.last:
                    cells[day, account.center, LABELS[each.way]][column] += each.amount
    return {
        cell: (received, returned, lost, received - returned - lost)
        for cell, (received, returned, lost) in cells.items()
    }
