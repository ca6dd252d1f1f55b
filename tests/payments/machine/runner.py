"""Runs the state machine, and counts what happened."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import time_machine
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from tests.factories_reservations import NOW
from tests.payments.machine.banks import Bank
from tests.payments.machine.beginnings import Beginning, any_beginning
from tests.payments.machine.machine import CheckoutMachine
from tests.payments.machine.world import World


@contextmanager
def no_logs() -> Iterator[None]:
    """The faults write thousands of lines."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def prepare(bank: Bank) -> Iterator[None]:
    """Make the world in which examples run; it is gone at the end."""
    CheckoutMachine.bank = bank
    CheckoutMachine.counts = {}
    with no_logs(), transaction.atomic():
        # As the block around a test case.
        transaction.get_connection().atomic_blocks[-1]._from_testcase = True
        with time_machine.travel(NOW, tick=False):
            CheckoutMachine.world = World()
        yield
        transaction.set_rollback(True)


def run_machine(
    examples: int,
    *,
    bank: Bank | None = None,
    beginning: st.SearchStrategy[Beginning] = any_beginning,
    steps: int = 20,
    is_repeatable: bool = True,
) -> dict[str, int]:
    """Run that many examples, and return counts. Raises what the machine has found.

    Examples are not made smaller: the message has what happened, and each step is short.
    """
    CheckoutMachine.beginnings = beginning
    with prepare(bank or Bank()):
        run_state_machine_as_test(
            CheckoutMachine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                derandomize=is_repeatable,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    return CheckoutMachine.counts
