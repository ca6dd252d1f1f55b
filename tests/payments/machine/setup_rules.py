"""The rules of payment setups: customers enter cards, finish, fail or walk away (B21)."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from payments.models import PaymentSetup, PaymentSetupState, SavedCard
from tests.payments.machine.banks import CARDS
from tests.payments.machine.base import MachineBase, faults
from tests.payments.machine.points import Fault

customers = st.integers(0, 1)
# Cards that a customer enters. One in six is refused by the gateway.
ENTERED = [*sorted(CARDS), "good", "refused"]


def takes_hours(fault: Fault | None) -> bool:
    """Whether the worker waits for so long that a setup would expire before it is returned.

    A call of the gateway takes a minute at most.
    """
    return fault is not None and not {"an hour", "two days"}.isdisjoint(fault.meanwhile.split(", "))


class SetupRules(MachineBase):
    """Payment setups of both customers; an account has several if a response was lost."""

    def __init__(self) -> None:
        super().__init__()
        # The Ids that the customers have received.
        self.setups: list[list[str]] = [[], []]
        # The last four digits of the card that was entered, by setup.
        self.entered: dict[UUID, str] = {}

    def get_setup(self, number: int) -> PaymentSetup | None:
        """The customer's latest one."""
        ids = self.setups[number]
        return PaymentSetup.objects.get(key=UUID(ids[-1])) if ids else None

    # --- Actions ---------------------------------------------------------------------------------

    def do_open_setup(self, pk: int, number: int) -> None:
        body = self.post(number, "account/create-payment-setup", ReturnUrl="https://app.test/")
        if body["Success"]:
            setup = body["PaymentSetup"]
            assert setup["ClientSecret"]
            assert setup["Url"]
            self.setups[number].append(setup["Id"])
            self.count("setups")

    def do_enter_card(self, pk: int, number: int, *, kind: str = "good") -> None:
        setup = self.get_setup(number)
        if setup is None or self.bank.get_setup_state(setup) == "succeeded":
            return
        self.bank.enter_card(setup, kind)
        if self.bank.get_setup_state(setup) == "succeeded":
            self.entered[setup.key] = self.bank.numbers[kind][-4:]

    def do_refuse_setup(self, pk: int, number: int) -> None:
        if setup := self.get_setup(number):
            self.bank.refuse_setup(setup)

    def do_setup_event(self, pk: int, number: int) -> None:
        if setup := self.get_setup(number):
            self.bank.send_setup_event(setup, self.now)

    def do_complete_setup(self, pk: int, number: int) -> None:
        setup = self.get_setup(number)
        if setup is None:
            return
        is_open = setup.state == PaymentSetupState.OPEN
        is_entered = self.bank.get_setup_state(setup) == "succeeded"
        body = self.post(number, "account/complete-payment-setup", PaymentSetupId=str(setup.key))
        self.count(f"Complete setup {(body.get('Error') or {}).get('Summary', 'Saved')}")
        if self.is_undisturbed and is_open and is_entered:
            assert body["Success"], body
            saved = body["SavedPaymentInfo"]
            assert saved["Last4DigitsOfCreditCardNumber"] == self.entered[setup.key]
        if body["Success"]:
            setup.refresh_from_db()
            assert setup.state == PaymentSetupState.SUCCEEDED
            self.check_saved_card(number, body)
        else:
            allowed = {"CardDeclined", "PaymentSetupNotComplete", "TooManyRequests"}
            assert body["Error"]["Summary"] in {*allowed, "ServiceUnavailable"}, body

    def check_saved_card(self, number: int, body: dict[str, Any]) -> None:
        card = SavedCard.objects.filter(user=self.world.customers[number].user).first()
        said = body.get("SavedPaymentInfo")
        assert (said and said["Last4DigitsOfCreditCardNumber"]) == (card and card.last4), (
            said,
            card,
        )

    # --- Rules -----------------------------------------------------------------------------------

    def get_own(self, number: int) -> tuple[int, int]:
        """A reservation of the customer, if there is one, for what others do meanwhile."""
        own = [pk for pk, customer in self.reservations if customer == number]
        return (own or [self.reservations[0][0]])[-1], number

    @precondition(lambda self: self.reservations)
    @rule(number=customers, fault=faults.filter(lambda fault: not takes_hours(fault)))
    def open_setup(self, number: int, fault: Fault | None) -> None:
        self.run(fault, "open_setup", *self.get_own(number))

    @precondition(lambda self: any(self.setups))
    @rule(number=customers, kind=st.sampled_from(ENTERED), fault=faults, completes=st.booleans())
    def enter_card(self, number: int, kind: str, fault: Fault | None, completes: bool) -> None:
        number = number if self.setups[number] else 1 - number
        self.act("enter_card", *self.get_own(number), kind=kind)
        if completes:
            self.run(fault, "complete_setup", *self.get_own(number))

    @precondition(lambda self: any(self.setups))
    @rule(number=customers, fault=faults)
    def complete_setup(self, number: int, fault: Fault | None) -> None:
        """The app asks too early, late or again."""
        self.run(fault, "complete_setup", *self.get_own(number))

    @precondition(lambda self: any(self.setups))
    @rule(number=customers, names=st.sampled_from(["refuse setup", "setup event", "an hour"]))
    def leave_setup(self, number: int, names: str) -> None:
        """The customer fails, finishes on the page without the app, or walks away."""
        self.do(names, *self.get_own(number))

    # --- Checks ----------------------------------------------------------------------------------

    def find_setup_problems(self) -> Iterator[str]:
        for card in SavedCard.objects.filter(reference__gt=""):
            if not self.bank.has_card(card.reference):
                yield f"the gateway has no card {card.reference}, which account {card.user_id} has"
        for setup in PaymentSetup.objects.filter(state=PaymentSetupState.SUCCEEDED):
            if self.bank.get_setup_state(setup) not in {"succeeded", "expired"}:
                yield f"{setup}: no card was entered"

    @contextmanager
    def watch_saved_cards(self) -> Iterator[None]:
        """Find cards that reconcile_payments has replaced by those of older setups (B21.2)."""
        succeeded = PaymentSetup.objects.filter(state=PaymentSetupState.SUCCEEDED)
        cards, former = list(SavedCard.objects.all()), list(succeeded.values_list("pk", flat=True))
        yield
        kept = set(SavedCard.objects.values_list("reference", flat=True))
        for card in cards:
            replacing = succeeded.exclude(pk__in=former).filter(user=card.user_id)
            if card.reference not in kept and replacing.filter(created_at__lt=card.created_at):
                self.problems.append(f"{card.reference} was replaced by the card of an older setup")

    def find_endless_setups(self, now: dt.datetime) -> Iterator[str]:
        """Setups for which a card can still be entered, just after a run of reconcile_payments."""
        for setup in PaymentSetup.objects.filter(expires_at__lte=now):
            if setup.state == PaymentSetupState.OPEN:
                yield f"{setup} should have ended at {setup.expires_at}"
            elif setup.reference and self.bank.get_setup_state(setup) in {"open", "failed"}:
                yield f"{setup}: a card can still be entered at the gateway"
