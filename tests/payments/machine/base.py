"""What all rules of the machine share: requests, faults, the clock, and counts."""

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import time_machine
from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from payments.models import Payment
from reservations.models import Reservation
from reservations.models.status import BOOKED_STATUSES
from tests.factories_reservations import NOW
from tests.payments.machine.banks import Bank
from tests.payments.machine.checks import find_due
from tests.payments.machine.points import Fault, Places, instrumented
from tests.payments.machine.world import World

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
    *("checkout", "action", "cancel", "confirm", "refuse", "event", "reconcile", "expire"),
    *("two minutes, reconcile", "a quarter, reconcile", "confirm, event", "confirm, checkout"),
    *("checkout, confirm", "a quarter, reconcile, confirm", "approve", "an hour, reconcile"),
    *("confirm, two days, reconcile", "a quarter, cancel", "repeated events"),
    *("complete setup", "enter card", "enter card, complete setup", "setup event"),
)

# Statements that change no row.
READING = ("SELECT", "SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")

numbers = st.integers(0, MAX_RESERVATIONS - 1)
some_fault = st.one_of(
    st.builds(Fault, st.just("dies"), st.integers(1, 12)),
    st.builds(Fault, st.just("silent"), st.integers(1, 4)),
    st.builds(Fault, st.just("overtaken"), st.integers(1, 8), st.sampled_from(MEANWHILE)),
)
# Half of the actions are undisturbed.
faults = st.booleans().flatmap(lambda is_disturbed: some_fault if is_disturbed else st.none())


class MachineBase(RuleBasedStateMachine):
    """An example: customers with their reservations, a clock, and workers with faults.

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
        self.has_written = True
        self.stack.enter_context(connection.execute_wrapper(self.note_writes))
        self.reservations: list[tuple[int, int]] = []
        self.is_undisturbed = True
        self.problems: list[str] = []

    def close(self) -> None:
        """Undo everything that the example has changed."""
        transaction.set_rollback(True)
        self.stack.close()

    def note_writes(self, execute: Callable[..., Any], sql: str, *args: Any) -> Any:
        self.has_written |= not sql.startswith(READING)
        return execute(sql, *args)

    @property
    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def get(self, number: int) -> tuple[int, int]:
        """A reservation, and the number of its customer."""
        return self.reservations[number % len(self.reservations)]

    def get_payments(self, pk: int) -> list[Payment]:
        return list(Payment.objects.filter(reservation=pk).order_by("pk"))

    def post(self, number: int, path: str, **fields: Any) -> dict[str, Any]:
        """Send a request of the customer, and return the response."""
        customer = self.world.customers[number]
        response = customer.post(f"/api/{path}", **fields)
        body: dict[str, Any] = response.json()
        assert response.status_code in POLITE, (path, response.status_code, body)
        if response.status_code == 503:
            assert not self.is_undisturbed, body
        return body

    # --- Actions ---------------------------------------------------------------------------------

    def run(self, fault: Fault | None, name: str, pk: int, number: int, **fields: Any) -> None:
        """Run an action as a worker with that fault."""
        self.is_undisturbed = fault is None
        due_before = find_due()
        if fault is not None:
            self.count(fault.kind)
        with self.places.worker(fault, lambda names: self.do(names, pk, number)):
            self.act(name, pk, number, **fields)
        if self.is_undisturbed:
            self.problems += [f"after {name}, {each}" for each in find_due() - due_before]
        self.is_undisturbed = True

    def do(self, names: str, pk: int, number: int) -> None:
        """What another worker, or the bank, does meanwhile."""
        for name in names.split(", "):
            if name in SECONDS:
                self.clock.shift(SECONDS[name])
            else:
                self.act(name, pk, number)

    def act(self, name: str, pk: int, number: int, **fields: Any) -> None:
        with self.watch_bookings(name):
            getattr(self, f"do_{name.replace(' ', '_')}")(pk, number, **fields)

    @contextmanager
    def watch_bookings(self, name: str) -> Iterator[None]:
        """Find reservations that are booked by a worker that began after their start."""
        began, before = self.now, self.get_booked()
        try:
            yield
        finally:
            self.problems += [
                f"{name} booked {pk}, which starts at {start}, at {began}"
                for pk, start in self.get_booked().items()
                if pk not in before and start <= began
            ]

    def get_booked(self) -> dict[int, dt.datetime]:
        rows = Reservation.objects.filter(status__in=BOOKED_STATUSES)
        return dict(rows.values_list("pk", "start"))
