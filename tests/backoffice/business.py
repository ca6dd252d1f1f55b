"""Random days at four centers: sales, changes, cancellations, refunds and disputes."""

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal

from accounts.act import Act
from centers.models import Center, MeetingRoom
from payments import fees, manual_payments, refunds, setups
from payments.gateway_events import record_dispute
from payments.gateways.base import GatewayDispute
from payments.gateways.sandbox import confirm_setup
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, Refund
from payments.saved_cards import update_saved_card
from reservations.booking import (
    amendments,
    approval,
    attendance,
    cancellation,
    differences,
    payment_links,
    price_adjustments,
)
from reservations.booking.amendments import ChangeRequest, TakenPayment
from reservations.booking.cancellation import RefundDecision
from reservations.booking.charging import SAVED_CARD_OF_ABSENT
from reservations.booking.checkout import book_draft
from reservations.models import Reservation
from tests.backoffice.books import ZONES, Account, Money, find_disagreements, round_cents
from tests.factories_centers import TermsFactory
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import PAYMENT_INFO, make_booking, make_draft, make_room
from tests.payments.gateway_helpers import card

FIRST_DAY = dt.datetime(2027, 3, 29, 18, tzinfo=dt.UTC)
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
TAX_RATE = Decimal("8.81")
# By hours. A half day begins with four.
PRICES = {1: 25, 2: 50, 3: 75, 4: 90}
NO_SHOW_PERCENTS = {"Denver": 100, "Boulder": 50, "Tokyo": 50, "Osaka": 100}
NOTICE, GRACE = 24 * HOUR, HOUR / 4
# These centers approve each booking.
CENTERS_THAT_APPROVE = {"Boulder", "Osaka"}


class Business:
    """Does one random thing after the other: in the domain, and then in the accounts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = FIRST_DAY
        self.staff = AdministratorFactory()
        self.customer = UserFactory(credit_limit=Decimal(100_000))
        update_saved_card(self.customer, PAYMENT_INFO, now=self.now)
        self.books: dict[int, Account] = {}
        self.taken = set[tuple[int, dt.datetime]]()
        self.rooms: list[MeetingRoom] = []
        for name, zone in ZONES.items():
            is_live = name not in CENTERS_THAT_APPROVE
            room = make_room(time_zone_id=zone.key, is_live_inventory=is_live)
            terms = TermsFactory(
                center=room.center,
                steps="24: 100",
                grace_minutes=15,
                no_show_percent=NO_SHOW_PERCENTS[name],
            )
            Center.objects.filter(pk=room.center_id).update(
                name=name, tax_rate=TAX_RATE, terms=terms
            )
            self.rooms.append(MeetingRoom.objects.get(pk=room.pk))

    def run_day(self, count: int) -> None:
        for _ in range(count):
            self.now += dt.timedelta(minutes=self.random.randint(1, 20))
            self.random.choice(self.ACTIONS)(self)
        self.miss()
        for payment in Payment.objects.with_fees_due(self.now):
            fees.fetch_fees(payment, now=self.now)
        self.now = FIRST_DAY + DAY * ((self.now - FIRST_DAY).days + 1)

    @property
    def act(self) -> Act:
        return Act(self.staff, self.now, is_staff=True)

    def choose(self, is_possible: Callable[[Account], bool]) -> Account | None:
        possible = [each for each in self.books.values() if is_possible(each)]
        return self.random.choice(possible) if possible else None

    # --- Sales

    def sell(self) -> None:
        ways = ["sandbox", "sandbox", "link", "cash", "terminal", "account"]
        way = self.random.choice(ways)
        room = self.random.choice(self.rooms)
        zone = ZONES[room.center.name]
        day = self.now.astimezone(zone).date() + DAY * self.random.randint(1, 9)
        time = dt.time(self.random.choice([9, 13]))
        at = dt.datetime.combine(day, time, zone).astimezone(dt.UTC)
        if (room.pk, at) in self.taken:
            return
        self.taken.add((room.pk, at))
        hours = self.random.randint(1, 3)
        options = {"start": at, "hours": hours, "now": self.now}
        if way == "sandbox":
            reservation = make_booking(self.customer, room, **options)
        elif way == "link":
            way = "sandbox"
            reservation = self._pay_by_link(make_draft(self.customer, room, **options))
        else:
            draft = make_draft(self.customer, room, **options)
            reservation = book_draft(
                self.act,
                draft.pk,
                gateway=way,
                reference="17",
                shown_total=draft.total_cost,
            )
        net = Decimal(PRICES[hours])
        tax = round_cents(net * TAX_RATE / 100)
        account = Account(
            *(reservation.pk, room.center.name, self.now, at, hours), net=net, tax=tax
        )
        account.no_show_percent = NO_SHOW_PERCENTS[room.center.name]
        self.books[account.pk] = account
        if not room.is_live_inventory:
            account.status = "request"
        is_held = way == "sandbox" and account.status == "request"
        is_received = way != "account" and not is_held
        paid_at = self.now if is_received else None
        account.received = [Money(way, account.price, paid_at, account.center)]

    def _pay_by_link(self, draft: Reservation) -> Reservation:
        payment_links.send_link(self.act, draft.pk, base_url="https://example.com")
        setup = setups.create_setup(
            draft.user, return_url="", reservation_id=draft.pk, now=self.now
        )
        opened = setups.open_setup(setup, own_page="https://example.com")
        confirm_setup(opened.at_gateway.client_secret, card())
        setup.refresh_from_db()
        link = payment_links.DraftLink(draft, self.now + HOUR, draft.payment_link_number)
        payment_links.pay(link, setup, shown_total=draft.total_cost, now=self.now)
        return Reservation.objects.get(pk=draft.pk)

    def answer(self) -> None:
        account = self.choose(
            lambda each: each.status == "request" and each.start > self.now + HOUR
        )
        if account is None:
            return
        [paid] = account.received
        if self.random.random() < 0.6:
            approval.approve(self.act, account.pk)
            account.status = "booked"
            if paid.way == "sandbox":
                paid.at = self.now
        else:
            approval.decline(self.act, account.pk)
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
        price_adjustments.adjust_price(self.act, account.pk, amount=-less, reason="Noise")
        old_price = account.price
        # A bill that is paid keeps its rate of tax, whatever the center's is now.
        account.tax = round_cents(account.tax * (account.net - less) / account.net)
        account.net -= less
        account.give_back(old_price - account.price, at=self.now)

    def change_length(self) -> None:
        """Add or remove an hour. A higher price is paid by card, or at the desk."""
        account = self.choose(lambda each: each.status == "booked" and each.start > self.now)
        if account is None or account.refused:
            return
        hours = self.random.choice([each for each in PRICES if each != account.hours])
        way = self.random.choice(["sandbox", "cash", "terminal", "account"])
        room_id = Reservation.objects.get(pk=account.pk).room_id
        self._change(account, room_id, account.center, account.start, hours, way)

    def move(self) -> None:
        """Move a booking to another center: what was paid stays in the cash of the first one."""
        account = self.choose(lambda each: each.status == "booked" and each.start > self.now)
        if account is None or account.refused:
            return
        room = self.random.choice(
            [each for each in self.rooms if each.center.name != account.center]
        )
        local = account.start.astimezone(account.zone)
        at = local.replace(tzinfo=ZONES[room.center.name]).astimezone(dt.UTC)
        if at > self.now and (room.pk, at) not in self.taken:
            self.taken.add((room.pk, at))
            self._change(account, room.pk, room.center.name, at, account.hours, "cash")

    def _change(
        self,
        account: Account,
        room_id: int,
        center: str,
        start: dt.datetime,
        hours: int,
        way: str,
    ) -> None:
        net = account.net + PRICES[hours] - PRICES[account.hours]
        if net <= 0:
            return
        # The bill is repriced.
        tax = round_cents(net * TAX_RATE / 100)
        difference = net + tax - account.price
        end = start + hours * HOUR
        if way == "sandbox":
            differences.change_booking(
                self.act,
                account.pk,
                ChangeRequest(room_id, start, end),
                SAVED_CARD_OF_ABSENT,
                expected_total=net + tax,
            )
        else:
            amendments.amend(
                self.act,
                account.pk,
                ChangeRequest(room_id, start, end),
                taken=TakenPayment(way, "19"),
                expected_total=net + tax,
            )
        account.center, account.start = center, start
        # What is better for the customer.
        account.no_show_percent = min(account.no_show_percent, NO_SHOW_PERCENTS[center])
        account.hours, account.net, account.tax = hours, net, tax
        if difference > 0:
            paid_at = None if way == "account" else self.now
            account.received.append(Money(way, difference, paid_at, center))
        else:
            account.give_back(-difference, at=self.now)

    def cancel(self) -> None:
        account = self.choose(
            lambda each: each.status in {"booked", "request"} and each.start > self.now
        )
        if account is None or account.refused:
            return
        if account.status == "request":
            cancellation.cancel(self.act, account.pk)
            account.status = "cancelled"
            self._take_back(account)
            return
        free_until = max(account.start - NOTICE, account.sold_at + GRACE)
        refund = account.left if self.now <= free_until else Decimal(0)
        decision = None
        if self.random.random() < 0.3:
            refund = round_cents(account.left * self.random.randint(0, 100) / 100)
            decision = RefundDecision(refund, "They could not come")
        ways = {(each.way, each.center) for each in account.received}
        by_card = {way for way, _ in ways} == {"sandbox"} and len(ways) == 1
        is_refused = by_card and self.random.random() < 0.3
        keys = Payment.objects.filter(reservation=account.pk).values("key")
        at_gateway = SandboxPayment.objects.filter(key__in=keys)
        if is_refused:  # The gateway refunds no voided payment.
            at_gateway.filter(state="captured").update(state="voided")
        cancellation.cancel(self.act, account.pk, decision=decision)
        if is_refused:
            at_gateway.filter(state="voided").update(state="captured")
        account.status, account.fee = "cancelled", account.left - refund
        if is_refused:
            account.refused = refund
        else:
            account.give_back(refund, at=self.now)

    def miss(self) -> None:
        """Nobody comes. At some centers, half of the price comes back."""
        account = self.choose(lambda each: each.status == "booked" and each.start <= self.now)
        if account is None or account.refused:
            return
        attendance.mark_no_show(self.act, account.pk)
        account.status = "missed"
        kept = round_cents(account.price * account.no_show_percent / 100)
        account.goodwill = max(account.left - kept, Decimal(0))
        account.give_back(account.goodwill, at=self.now)

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
                if each.way == "account" and each.at is None and each.amount:
                    each.at = self.now
                    break

    def hand_over(self) -> None:
        for refund in Refund.objects.due_by_hand().order_by("pk"):
            if self.random.random() < 0.6:
                refunds.confirm_refund_by_hand(refund, "18", now=self.now)
                returned = self.books[refund.payment.reservation_id].returned
                due = [each for each in returned if each.at is None]
                next(each for each in due if each.amount == refund.amount).at = self.now

    def resolve_refused(self) -> None:
        account = self.choose(lambda each: each.refused > 0)
        if account is None:
            return
        way = self.random.choice(["sandbox", "manual"])
        for refund in list(refunds.get_unhandled().filter(payment__reservation=account.pk)):
            if way == "manual":
                refunds.mark_refunded_manually(refund, "Bank transfer", now=self.now)
            else:
                retry = refunds.create_retry_refund(refund, now=self.now)
                refunds.execute_refund(retry, now=self.now)
        center = account.received[0].center
        account.returned.append(Money(way, account.refused, self.now, center))
        account.refused = Decimal(0)

    def lose_dispute(self) -> None:
        account = self.choose(
            lambda each: each.status == "booked" and not each.dispute_fees and not each.returned
        )
        if account is None or account.received[0].way != "sandbox":
            return
        payment = Payment.objects.filter(reservation=account.pk).earliest("pk")
        for status in ("needs_response", self.random.choice(["won", "lost"])):
            reported = GatewayDispute(
                reference=f"d{account.pk}",
                amount=payment.amount,
                currency="USD",
                reason="fraudulent",
                status=status,
                opened_at=self.now,
                is_closed=status != "needs_response",
                fee=Decimal(15),
            )
            record_dispute(payment, reported, now=self.now)
        center = account.received[0].center
        account.dispute_fees.append(Money("sandbox", Decimal(15), self.now, center))
        if status == "lost":
            account.lost.append(Money("sandbox", payment.amount, self.now, center))

    ACTIONS = (
        *(sell,) * 6,
        *(answer,) * 2,
        *(reduce, change_length) * 2,
        move,
        *(cancel,) * 2,
        *(receive, hand_over, resolve_refused, lose_dispute),
    )

    def find_disagreements(self) -> list[str]:
        books = self.books.values()
        return list(find_disagreements(books, since=FIRST_DAY.date(), now=self.now))
