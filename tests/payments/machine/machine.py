"""The rules: everything that customers, staff, banks and the clock do, in any order."""

import datetime as dt
import io
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any, ClassVar

from django.core.management import CommandError, call_command
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from accounts.act import Act
from accounts.models import OutboxMessage
from payments.models import Payment, PaymentState, Refund
from reservations.booking import approval
from reservations.models import Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from roombook.backoffice.models import AuditEntry
from roombook.errors import DomainError
from tests.factories_reservations import CARD, DECLINED_NUMBER
from tests.payments.machine import checks
from tests.payments.machine.banks import CARDS
from tests.payments.machine.base import MAX_RESERVATIONS, SECONDS, faults, numbers
from tests.payments.machine.beginnings import (
    PAID,
    START_LATER,
    START_SOON,
    Beginning,
    any_beginning,
)
from tests.payments.machine.points import Fault
from tests.payments.machine.setup_rules import SetupRules
from tests.payments.machine.world import PROMO

# Half of the cards ask for a confirmation, and a third are good.
CARD_KINDS = ["asks", "good", *sorted(CARDS)]
# What the bank says of an authorization that was not renewed in time. Nothing else may need
# attention after an undisturbed run.
NOT_RENEWED = "authorized only until"


class CheckoutMachine(SetupRules):
    """Reservations from a draft to their end, with a check of everything after each rule."""

    beginnings: ClassVar[st.SearchStrategy[Beginning]] = any_beginning

    def __init__(self) -> None:
        super().__init__()
        # Reservations that their customers know to be booked, and the ends that somebody requested.
        self.promised: set[int] = set()
        self.requested_ends: set[tuple[int, str]] = set()

    # --- Actions ---------------------------------------------------------------------------------

    def do_checkout(self, pk: int, number: int, **fields: Any) -> None:
        fields = fields or {"UseSavedPaymentInfo": True}
        body = self.post(number, "reservations/checkout", ReservationId=pk, **fields)
        self.count(f"Checkout {body.get('Status') or body['Error']['Summary']}")
        if body.get("Status") in {"Confirmed", "Pending"}:
            self.promised.add(pk)
        elif body["Success"]:
            assert body["Status"] in {"Processing", "Completed"}

    def do_action(self, pk: int, number: int) -> None:
        body = self.post(number, "reservations/payment-action", ReservationId=pk)
        if action := body.get("PaymentAction"):
            expires_at = dt.datetime.fromisoformat(action["ExpiresAt"])
            assert expires_at <= self.now + checks.CONFIRMATION_TIME
            assert action["ClientSecret"]

    def do_cancel(self, pk: int, number: int) -> None:
        # Before, because the worker may die after it has cancelled.
        self.requested_ends.add((pk, Status.CANCELLED))
        body = self.post(number, "reservations/cancel", ReservationId=pk)
        self.count("cancelled", body["Success"])
        self.note_answer(pk, Status.CANCELLED, has_succeeded=body["Success"])

    def note_answer(self, pk: int, end: Status, *, has_succeeded: bool) -> None:
        """A refusal is the end of the request: nobody has requested that end of the booking."""
        status = Reservation.objects.values_list("status", flat=True).get(pk=pk)
        if has_succeeded:
            assert status == end
            self.requested_ends.add((pk, end))
        elif status != end:
            self.requested_ends.discard((pk, end))

    def do_confirm(self, pk: int, number: int) -> None:
        for payment in self.get_payments(pk):
            self.bank.confirm(payment.key)
            self.count("confirmations")

    def do_refuse(self, pk: int, number: int) -> None:
        for payment in self.get_payments(pk):
            self.bank.refuse(payment.key)

    def do_event(self, pk: int, number: int) -> None:
        for payment in self.get_payments(pk):
            self.bank.send_event(payment, self.now)

    def do_repeated_events(self, pk: int, number: int) -> None:
        self.bank.repeat_events(self.now)

    def do_save_card(self, pk: int, number: int) -> None:
        self.save_card(number, "good")

    def do_reconcile(self, pk: int, number: int) -> None:
        try:
            call_command("reconcile_payments", stdout=io.StringIO())
        except CommandError as error:
            # With a fault, it reports what it could not do.
            lines = str(error).splitlines()[1:]
            if self.is_undisturbed and not all(NOT_RENEWED in line for line in lines):
                raise

    def do_expire(self, pk: int, number: int) -> None:
        with nullcontext() if self.is_undisturbed else suppress(CommandError):
            call_command("expire_reservations", stdout=io.StringIO())

    def do_approve(self, pk: int, number: int) -> None:
        with suppress(DomainError):
            approval.approve(Act(None, self.now), pk)

    def do_decline(self, pk: int, number: int) -> None:
        self.requested_ends.add((pk, Status.DECLINED))
        try:
            approval.decline(Act(None, self.now), pk)
        except DomainError:
            self.note_answer(pk, Status.DECLINED, has_succeeded=False)

    # --- Rules -----------------------------------------------------------------------------------

    @initialize(data=st.data(), has_promo=st.booleans())
    def begin(self, data: st.DataObject, has_promo: bool) -> None:
        beginning = data.draw(self.beginnings)
        for number in range(2):
            self.save_card(number, beginning.card)
        self.create_draft(0, beginning.room, beginning.start, has_promo)
        for names, fault in beginning.steps:
            *before, last = names.split(", ")
            if before:
                self.do(", ".join(before), *self.get(0))
            if last in SECONDS:
                self.do(last, *self.get(0))
            elif last == "reconcile":
                self.reconcile(0, fault)
            else:
                self.run(fault, last, *self.get(0))
            self.check()

    @precondition(lambda self: len(self.reservations) < MAX_RESERVATIONS)
    @rule(
        number=st.integers(0, 1),
        room=st.sampled_from([0, 0, 1]),
        start=st.sampled_from([START_SOON, START_LATER]),
        has_promo=st.booleans(),
    )
    def create_draft(self, number: int, room: int, start: str, has_promo: bool) -> None:
        end = start.replace("T10", "T13") if "T10" in start else start.replace("T13", "T16")
        body = self.post(
            number,
            "reservations/create",
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
            self.post(number, "reservation/update-promo-code", **fields)
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
        *before, _ = PAID[0].split(", ")
        self.do(", ".join(before), pk, customer)
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
        names=st.sampled_from(
            ["confirm", "refuse", "event", "confirm, event", "action", "repeated events"]
        ),
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
    @rule(number=numbers)
    def preview_cancellation(self, number: int) -> None:
        pk, customer = self.get(number)
        before = self.read_rows(pk)
        self.post(customer, "reservations/cancel", ReservationId=pk, TestMode=True)
        assert self.read_rows(pk) == before, "a preview has changed something"

    def read_rows(self, pk: int) -> list[object]:
        rows = (Reservation.objects.filter(pk=pk), Payment.objects.filter(reservation=pk))
        counts = [each.objects.count() for each in (AuditEntry, OutboxMessage, Refund)]
        found = [list(each.order_by("pk").values()) for each in rows]
        # The response stores that it has shown the price of a draft (B15.2).
        del found[0][0]["shown_total"]
        return [*found, counts]

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, fault=faults, approves=st.booleans())
    def answer_request(self, number: int, fault: Fault | None, approves: bool) -> None:
        self.run(fault, "approve" if approves else "decline", *self.get(number))

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, fault=faults)
    def reconcile(self, number: int, fault: Fault | None) -> None:
        if fault is not None:
            self.run(fault, "reconcile", *self.get(number))
            return
        with self.watch_saved_cards():
            self.act("reconcile", *self.get(number))
        problems = [*checks.find_late_holds(self.now), *self.find_endless_setups(self.now)]
        assert not problems, problems

    @precondition(lambda self: self.reservations)
    @rule(number=numbers, fault=faults)
    def expire(self, number: int, fault: Fault | None) -> None:
        self.run(fault, "expire", *self.get(number))

    @rule(seconds=st.sampled_from(sorted(SECONDS.values())))
    def wait(self, seconds: int) -> None:
        self.clock.shift(seconds)

    # --- Checks ----------------------------------------------------------------------------------

    def is_confirmed_in_time(self, pk: int) -> bool:
        """Whether the customer's confirmation is at the bank, and time is left for the booking."""
        reservation = Reservation.objects.get(pk=pk)
        if reservation.status != Status.PROCESSING or reservation.start <= self.now:
            return False
        [payment] = [each for each in self.get_payments(pk) if each.state == PaymentState.STARTED]
        money = self.bank.read_money().get(payment.key)
        if payment.is_called_off or payment.action_until is None or money is None:
            return False
        return money.state == "authorized"

    @invariant()
    def check(self) -> None:
        self.count("steps")
        problems = [*self.problems, *self.find_lost()]
        # After a step that has written nothing, everything is as it was compared before.
        if self.has_written or not self.bank.is_in_database:
            self.count("comparisons")
            problems += [*checks.find_problems(self.bank), *self.find_setup_problems()]
            self.has_written = False
        assert not problems, problems

    def find_lost(self) -> Iterator[str]:
        """Bookings that their customers know of, and that ended without a reason."""
        for reservation in Reservation.objects.filter(pk__in=self.promised):
            status = reservation.status
            has_reason = (
                status in BOOKED_STATUSES or (reservation.pk, status) in self.requested_ends
            )
            if status == Status.EXPIRED:
                has_reason = checks.is_overdue(reservation, self.now)
            if not has_reason:
                yield f"{reservation.pk} was promised, and is {status}"

    def check_what_customers_read(self) -> None:
        for pk, number in self.reservations:
            body = self.post(number, "account/reservation", Id=pk)
            assert body["Reservation"]["Status"] == Reservation.objects.get(pk=pk).status

    def teardown(self) -> None:
        try:
            self.check_what_customers_read()
            self.reconcile(0, None)
            # Otherwise requests that nobody has answered wait for days, which is a finding.
            self.do("expire", 0, 0)
            self.clock.shift(16 * 60)
            for _ in range(2):
                self.do("reconcile, two minutes", 0, 0)
            problems = [*checks.find_unsettled(self.bank, self.now), *self.problems]
            problems += checks.find_problems(self.bank)
            assert not problems, problems
            self.count("examples")
            self.count("captures", sum(self.count_captures(pk) for pk, _ in self.reservations))
            bookings = Reservation.objects.filter(status__in=[Status.CONFIRMED, Status.COMPLETED])
            self.count("bookings", bookings.count())
        finally:
            self.close()

    def count_captures(self, pk: int) -> int:
        money = self.bank.read_money()
        return sum(money[each.key].captures for each in self.get_payments(pk) if each.key in money)
