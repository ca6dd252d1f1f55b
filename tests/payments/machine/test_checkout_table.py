"""The table of docs/checkout.md about payments that wait for the bank, compared with what happens.

Each row has scenarios of the state machine. What the customer reads in them, and where the money
is, must be what the row says. So a wrong row fails, and so does a row without a scenario.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from accounts.models import OutboxMessage
from reservations.models import Reservation
from tests.payments.machine.banks import Bank
from tests.payments.machine.beginnings import START_LATER, START_SOON
from tests.payments.machine.machine import CheckoutMachine
from tests.payments.machine.points import Fault
from tests.payments.machine.runner import prepare

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor == "postgresql", reason="the rules are the same there"),
]

PAGE = Path(settings.BASE_DIR, "docs/checkout.md")
NO_ANSWER = "no answer"
# Words of the table about the state of a payment at the gateway.
PLACES_OF_MONEY = ("nowhere", "authorized", "captured")


@dataclass(frozen=True)
class Row:
    step: str
    fault: str
    reading: str
    money: str

    @property
    def words(self) -> list[str]:
        """What the customer reads: codes, texts in quotation marks, and no answer."""
        found = re.findall(r'`(\w+)`|"([^"]+)"|(no answer|503)', self.reading)
        return ["".join(each) for each in found]

    @property
    def places(self) -> set[str]:
        return {place for place in PLACES_OF_MONEY if place in self.money}


@dataclass
class Observed:
    """What the customer has read, and where the money was at the steps `money`."""

    readings: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)


def agree(row: Row, scenarios: list[Observed]) -> bool:
    """Whether the row says what was observed in its scenarios, and nothing else."""
    readings = [reading for each in scenarios for reading in each.readings]
    named = [{word for word in row.words if word in reading} for reading in readings]
    places = set().union(*(each.places for each in scenarios))
    return all(named) and set().union(*named) == {*row.words} and places == row.places


def read_table() -> list[Row]:
    _, _, rest = PAGE.read_text().partition("| Step | What fails | What the customer reads |")
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|")[:4])) for line in lines]


class ReadingMachine(CheckoutMachine):
    """Runs one scenario, and keeps what the customer reads."""

    def __init__(self) -> None:
        super().__init__()
        self.observed = Observed()

    def post(self, number, path, **fields):
        body = super().post(number, path, **fields)
        if path.startswith("reservations/") and path != "reservations/create":
            self.observed.readings.append(describe(body))
        return body

    def play(self, scenario: str, place: int) -> Observed | None:
        """Run steps such as `checkout`, `two minutes` or `dies [STATE] checkout`.

        Returns None if the fault at this place does not leave that state.
        """
        try:
            *options, steps = scenario.split(": ")
            for number in range(2):
                self.save_card(number, "asks")
            start = START_SOON if "soon" in options else START_LATER
            self.create_draft(0, 1 if "request" in options else 0, start, has_promo=True)
            for step in steps.split(", "):
                if not self.take(step, place, *self.get(0)):
                    return None
            self.check()
            return self.observed
        finally:
            self.close()

    def take(self, step: str, place: int, pk: int, number: int) -> bool:
        """Run a step. Returns False if it does not leave the state that it names."""
        if match := re.fullmatch(r"(dies|silent) \[(.+)\] (\w+)", step):
            kind, wanted, name = match.groups()
            count = len(self.observed.readings)
            self.run(Fault(kind, place), name, pk, number)
            if len(self.observed.readings) == count and name != "reconcile":
                self.observed.readings.append(NO_ANSWER)
            return bool(self.get_payments(pk)) and self.describe_state(pk) == wanted
        if step == "money":
            state = self.get_state_at_gateway(pk)
            self.observed.places.add(state if state in PLACES_OF_MONEY else "nowhere")
        elif step == "read":
            self.observed.readings.append(Reservation.objects.get(pk=pk).status)
        elif step == "mail":
            self.observed.readings.append(OutboxMessage.objects.latest("pk").subject)
        else:
            self.do(step, pk, number)
        return True

    def describe_state(self, pk: int) -> str:
        status = Reservation.objects.get(pk=pk).status
        payment = self.get_payments(pk)[-1]
        state = "called off" if payment.is_called_off else payment.state
        return f"{status}/{state}/{self.get_state_at_gateway(pk)}"

    def get_state_at_gateway(self, pk: int) -> str:
        money = self.bank.read_money().get(self.get_payments(pk)[-1].key)
        return money.state if money else "nowhere"


def describe(body) -> str:
    """A response as the table names it."""
    if not body["Success"]:
        code = {"ServiceUnavailable": "503"}.get(body["Error"]["Summary"])
        return f"{code or body['Error']['Summary']}: {body['Error']['Message']}"
    texts = (body.get(name) or "" for name in ("Status", "ConfirmationMessage", "Message"))
    return ": ".join(texts)


# The scenarios of each row, by its first two cells. [STATE] is the state that the fault leaves: of
# the reservation, of its payment, and at the gateway.
SCENARIOS = {
    ("Authorize", "the process dies before the gateway has the payment"): [
        "dies [Processing/started/nowhere] checkout, money, checkout",
    ],
    ("Authorize", "the process dies, or the answer is lost, and the bank wants a confirmation"): [
        "dies [Processing/started/action_required] checkout, money, checkout",
        "silent [Processing/started/action_required] checkout, money, two minutes, checkout",
    ],
    ("Waiting", "nothing"): ["checkout, money, checkout"],
    ("Waiting", "the gateway does not answer"): [
        "checkout, silent [Processing/started/action_required] checkout, money",
        "checkout, silent [Processing/started/action_required] action, money",
    ],
    ("Waiting", "the customer cancels, or staff do"): [
        "checkout, cancel, money",
        "checkout, confirm, dies [Processing/called off/authorized] cancel, money, cancel",
        "checkout, silent [Processing/started/action_required] cancel, money, cancel",
    ],
    ("Confirmed", "the app sends Checkout"): [
        "checkout, confirm, checkout, money",
        "request: checkout, confirm, checkout, money",
    ],
    ("Confirmed", "the app never calls"): [
        "checkout, confirm, event, money, mail",
        "request: checkout, confirm, reconcile, money, mail",
    ],
    ("Confirmed", "the process dies after the gateway's answer, or after the conclusion"): [
        "checkout, confirm, dies [Processing/started/authorized] checkout, money, checkout",
        "checkout, confirm, dies [Confirmed/authorized/authorized] checkout, money, checkout",
    ],
    ("Confirmed late", "before the void"): ["checkout, a quarter, confirm, checkout, money"],
    ("Confirmed late", "after the call-off, before the void"): [
        "checkout, a quarter, dies [Processing/called off/action_required] reconcile, confirm,"
        " money, read, reconcile, read",
    ],
    ("Confirmed late", "after the void"): ["checkout, a quarter, reconcile, confirm, money, read"],
    ("Confirmed", "the meeting has begun"): [
        "soon: checkout, confirm, an hour, dies [New/authorized/authorized] reconcile, money, read",
    ],
    ("Refused", "the app sends Checkout"): ["checkout, refuse, checkout, money"],
    ("Refused", "the webhook or `reconcile_payments` is first"): [
        "checkout, refuse, event, checkout, money, checkout",
        "checkout, refuse, reconcile, checkout, money, checkout",
    ],
    ("Abandoned", "nothing"): ["checkout, a quarter, reconcile, money, read, checkout"],
    ("Abandoned", "the gateway does not answer the void"): [
        "checkout, a quarter, silent [Processing/called off/action_required] reconcile, money,"
        " read",
    ],
    ("any", "the webhook comes early, late, twice or never"): [
        "checkout, event, checkout, confirm, event, event, checkout, money, repeated events, read",
    ],
}


def test_customers_read_what_each_row_of_the_table_says():
    rows = {(row.step, row.fault): row for row in read_table()}
    assert rows.keys() == SCENARIOS.keys()

    with prepare(Bank()):
        observed = {key: [play(key[0], each) for each in SCENARIOS[key]] for key in rows}

    assert not {key: observed[key] for key, row in rows.items() if not agree(row, observed[key])}


def play(step: str, scenario: str) -> Observed:
    """Play a scenario. Its fault is at the first place at which it leaves the state."""
    for place in range(1, 20):
        observed = ReadingMachine().play(scenario, place)
        if observed is not None:
            if step != "Authorize":
                # The answer of the first Checkout, after which the step begins.
                del observed.readings[0]
            return observed
    raise AssertionError(f"No fault leaves this state: {scenario}")
