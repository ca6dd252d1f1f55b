"""The rules: everything that customers, staff, banks and the clock do, in any order."""

import datetime as dt
import io
from contextlib import ExitStack, nullcontext, suppress
from typing import Any, ClassVar
from unittest.mock import patch

import time_machine
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from accounts import limits
from payments.models import Payment, PaymentState
from reservations.booking import approval
from reservations.models import Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from roombook.errors import DomainError
from tests.factories_reservations import CARD, DECLINED_NUMBER, NOW
from tests.payments.machine import checks
from tests.payments.machine.banks import CARDS, Bank
from tests.payments.machine.points import Fault, Places, instrumented
from tests.payments.machine.world import PROMO, World

# In an hour, when it is too late for a free cancellation, and on the day after tomorrow. A booking
# takes three hours.
STARTS = ("2027-03-01T10:00:00", "2027-03-03T13:00:00")
MAX_RESERVATIONS = 4
# Statuses of responses in which a fault may not show: the service says what to do.
POLITE = {200, 402, 404, 409, 429, 503}

SECONDS = {
    "half a minute": 30,
    "two minutes": 120,
    "ten minutes": 600,
    "a quarter": 16 * 60,
    "an hour": 3600,
    "two days": 2 * 24 * 3600,
}
# What another worker does while one waits.
MEANWHILE = (
    *("checkout", "action", "cancel", "confirm", "refuse", "event", "reconcile"),
    *("two minutes, reconcile", "a quarter, reconcile", "confirm, event", "confirm, checkout"),
    *("checkout, confirm", "a quarter, reconcile, confirm"),
    *("confirm, two days, reconcile", "a quarter, cancel"),
)
# What has happened when an example begins.
BEGINNINGS = (
    *("", "checkout", "checkout, confirm"),
    "checkout, ten minutes, checkout, ten minutes",
)

# Half of the cards ask for a confirmation, and a third are good.
CARD_KINDS = ["asks", "good", *sorted(CARDS)]

numbers = st.integers(0, MAX_RESERVATIONS - 1)
some_fault = st.one_of(
    st.builds(Fault, st.just("dies"), st.integers(1, 12)),
    st.builds(Fault, st.just("silent"), st.integers(1, 4)),
    st.builds(Fault, st.just("overtaken"), st.integers(1, 8), st.sampled_from(MEANWHILE)),
)
# Half of the actions are undisturbed.
faults = st.booleans().flatmap(lambda is_disturbed: some_fault if is_disturbed else st.none())


class CheckoutMachine(RuleBasedStateMachine):
    """Reservations from a draft to their end, with a check of everything after each rule.

    Class attributes instead of arguments, because hypothesis creates the instances. `counts` sums
    up what happened in all of them.
    """

    world: ClassVar[World]
    bank: ClassVar[Bank]
    counts: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.bank.reset()
        self.stack = ExitStack()
        self.clock = self.stack.enter_context(time_machine.travel(NOW, tick=False))
        block = transaction.atomic()
        # As the one around a test case: the gateways do not count it.
        block._from_testcase = True
        self.stack.enter_context(block)
        self.places = Places(outer=len(connection.atomic_blocks))
        self.stack.enter_context(instrumented(self.bank.gateway, self.places))
        # A worker that waits for another one would wait for itself.
        self.stack.enter_context(patch.object(limits, "WAITS", ()))
        self.reservations: list[tuple[int, int]] = []
        # Reservations that their customers know to be booked, and those that were ended since.
        self.promised: set[int] = set()
        self.ended: set[int] = set()
        self.is_undisturbed = True

    # --- Helpers ---------------------------------------------------------------------------------

    @property
    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def post(self, number: int, path: str, **fields: Any) -> dict[str, Any]:
        """Send a request of the customer, and return the response."""
        customer = self.world.customers[number]
        response = customer.post(path, **fields)
        body: dict[str, Any] = response.json()
        assert response.status_code in POLITE, (path, response.status_code, body)
        if response.status_code == 503:
            assert not self.is_undisturbed, body
        return body

    def get_payments(self, pk: int) -> list[Payment]:
        return list(Payment.objects.filter(reservation=pk).order_by("pk"))

    def run(self, fault: Fault | None, name: str, pk: int, number: int, **fields: Any) -> None:
        """Run an action as a worker with that fault."""
        self.is_undisturbed = fault is None
        if fault is not None:
            self.count(f"{fault.kind}")
        with self.places.worker(fault, lambda names: self.do(names, pk, number)):
            getattr(self, f"do_{name}")(pk, number, **fields)
        self.is_undisturbed = True

    def do(self, names: str, pk: int, number: int) -> None:
        """What another worker, or the bank, does meanwhile."""
        for name in names.split(", "):
            if name in SECONDS:
                self.clock.shift(SECONDS[name])
            else:
                getattr(self, f"do_{name}")(pk, number)

    # --- Actions ---------------------------------------------------------------------------------

    def do_checkout(self, pk: int, number: int, **fields: Any) -> None:
        fields = fields or {"UseSavedPaymentInfo": True}
        body = self.post(number, "/api/reservations/checkout", ReservationId=pk, **fields)
        self.count(f"Checkout {body.get('Status') or body['Error']['Summary']}")
        if body.get("Status") in {"Confirmed", "Pending"}:
            self.promised.add(pk)
        elif body["Success"]:
            assert body["Status"] == "Processing"

    def do_action(self, pk: int, number: int) -> None:
        body = self.post(number, "/api/reservations/payment-action", ReservationId=pk)
        if action := body.get("PaymentAction"):
            expires_at = dt.datetime.fromisoformat(action["ExpiresAt"])
            assert expires_at <= self.now + checks.CONFIRMATION_TIME
            assert action["ClientSecret"]

    def do_cancel(self, pk: int, number: int) -> None:
        # Before, because the worker may die after it has cancelled.
        self.ended.add(pk)
        body = self.post(number, "/api/reservations/cancel", ReservationId=pk)
        self.count("cancelled", body["Success"])

    def do_confirm(self, pk: int, number: int) -> None:
        for payment in self.get_payments(pk):
            self.bank.confirm(payment.key)

    def do_refuse(self, pk: int, number: int) -> None:
        for payment in self.get_payments(pk):
            self.bank.refuse(payment.key)

    def do_event(self, pk: int, number: int) -> None:
        for payment in self.get_payments(pk):
            self.bank.send_event(payment, self.now)

    def do_reconcile(self, pk: int, number: int) -> None:
        # With a fault, it reports what it could not do.
        with nullcontext() if self.is_undisturbed else suppress(CommandError):
            call_command("reconcile_payments", stdout=io.StringIO())

    def do_staff(self, pk: int, number: int, *, approves: bool) -> None:
        """The center approves or declines a request."""
        if not approves:
            self.ended.add(pk)
        with suppress(DomainError):
            (approval.approve if approves else approval.decline)(pk, now=self.now)

    # --- Rules -----------------------------------------------------------------------------------

    @initialize(
        room=st.sampled_from([0, 0, 1]),
        start=st.sampled_from(STARTS),
        has_promo=st.booleans(),
        kind=st.sampled_from(CARD_KINDS),
        beginning=st.sampled_from([*BEGINNINGS, "usual"]),
    )
    def begin(self, room: int, start: str, has_promo: bool, kind: str, beginning: str) -> None:
        for number in range(2):
            self.save_card(number, kind)
        self.create_draft(0, room, start, has_promo)
        if beginning == "usual":
            self.confirm_and_pay(0, None)
        elif beginning:
            self.do(beginning, *self.get(0))

    @precondition(lambda self: len(self.reservations) < MAX_RESERVATIONS)
    @rule(
        number=st.integers(0, 1),
        room=st.sampled_from([0, 0, 1]),
        start=st.sampled_from(STARTS),
        has_promo=st.booleans(),
    )
    def create_draft(self, number: int, room: int, start: str, has_promo: bool) -> None:
        end = start.replace("T10", "T13") if "T10" in start else start.replace("T13", "T16")
        body = self.post(
            number,
            "/api/reservations/create",
            MeetingRoomId=self.world.rooms[room].pk,
            StartDate=start,
            EndDate=end,
        )
        if not body["Success"]:
            assert body["Error"]["Summary"] in {"SlotUnavailable", "InvalidRequest"}, body
            return
        pk = body["Reservation"]["Id"]
        if has_promo:
            fields = {"ReservationId": pk, "PromoCode": PROMO}
            self.post(number, "/api/reservation/update-promo-code", **fields)
        self.reservations.append((pk, number))

    def save_card(self, number: int, kind: str) -> None:
        self.bank.save_card(self.world.customers[number], kind)

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, kind=st.sampled_from(["", "", *CARD_KINDS]), fault=faults)
    def pay(self, number: int, kind: str, fault: Fault | None) -> None:
        """Pay with the saved card, or a new one, and again too."""
        pk, customer = self.get(number)
        if kind:
            self.save_card(customer, kind)
        is_expected = fault is None and self.is_confirmed_in_time(pk)
        self.run(fault, "checkout", pk, customer)
        if is_expected:
            assert pk in self.promised, "the customer has confirmed, and is not booked"

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, fault=faults)
    def confirm_and_pay(self, number: int, fault: Fault | None) -> None:
        """The usual way: pay, confirm, and send the same Checkout again."""
        pk, customer = self.get(number)
        self.do("checkout, confirm", pk, customer)
        self.pay(number, "", fault)

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, is_good=st.booleans(), fault=faults)
    def pay_by_number(self, number: int, is_good: bool, fault: Fault | None) -> None:
        card = CARD if is_good else {**CARD, "CreditCardNumber": DECLINED_NUMBER}
        pk, customer = self.get(number)
        self.run(fault, "checkout", pk, customer, PaymentInfo=card)

    @precondition(lambda self: self.reservations)
    @rule(
        number=numbers,
        names=st.sampled_from(["confirm", "refuse", "event", "confirm, event", "action"]),
    )
    def act_at_bank(self, number: int, names: str) -> None:
        self.do(names, *self.get(number))

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, fault=faults, is_sure=st.booleans())
    def cancel(self, number: int, fault: Fault | None, is_sure: bool) -> None:
        """Half of the customers who could cancel do so."""
        if is_sure:
            self.run(fault, "cancel", *self.get(number))

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, fault=faults, approves=st.booleans())
    def answer_request(self, number: int, fault: Fault | None, approves: bool) -> None:
        self.run(fault, "staff", *self.get(number), approves=approves)

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, fault=faults)
    def reconcile(self, number: int, fault: Fault | None) -> None:
        self.run(fault, "reconcile", *self.get(number))
        if fault is None:
            problems = list(checks.find_late_holds(self.now))
            assert not problems, problems

    @rule(seconds=st.sampled_from(sorted(SECONDS.values())))
    def wait(self, seconds: int) -> None:
        self.clock.shift(seconds)

    # --- Checks ----------------------------------------------------------------------------------

    def get(self, number: int) -> tuple[int, int]:
        return self.reservations[number % len(self.reservations)]

    def is_confirmed_in_time(self, pk: int) -> bool:
        """Whether the customer's confirmation is at the bank, and time is left for the booking."""
        reservation = Reservation.objects.get(pk=pk)
        if reservation.status != Status.PROCESSING or reservation.start <= self.now:
            return False
        [payment] = [each for each in self.get_payments(pk) if each.state == PaymentState.STARTED]
        money = self.bank.get_money(payment.key)
        if payment.is_called_off or payment.action_until is None or money is None:
            return False
        return money.state == "authorized"

    @invariant()
    def check(self) -> None:
        self.count("steps")
        problems = list(checks.find_problems(self.bank))
        assert not problems, problems
        booked = Reservation.objects.filter(pk__in=self.promised, status__in=BOOKED_STATUSES)
        lost = self.promised - self.ended - set(booked.values_list("pk", flat=True))
        assert not lost, f"promised, and not booked: {lost}"

    def check_what_customers_read(self) -> None:
        for pk, number in self.reservations:
            body = self.post(number, "/api/account/reservation", Id=pk)
            assert body["Reservation"]["Status"] == Reservation.objects.get(pk=pk).status

    def teardown(self) -> None:
        try:
            self.check_what_customers_read()
            self.reconcile(0, None)
            self.clock.shift(16 * 60)
            for _ in range(3):
                self.do_reconcile(0, 0)
            problems = [*checks.find_unsettled(self.bank, self.now)]
            problems += checks.find_problems(self.bank)
            assert not problems, problems
            self.count("examples")
            self.count("captures", sum(self.count_captures(pk) for pk, _ in self.reservations))
            self.count("bookings", Reservation.objects.filter(status=Status.CONFIRMED).count())
        finally:
            transaction.set_rollback(True)
            self.stack.close()

    def count_captures(self, pk: int) -> int:
        money = [self.bank.get_money(each.key) for each in self.get_payments(pk)]
        return sum(each.captures for each in money if each)
