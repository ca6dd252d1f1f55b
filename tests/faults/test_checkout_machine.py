"""The state machine of payments in its long form; tests/payments has the short one."""

import os
import sys

import pytest
from django.core.management import CommandError

from tests.faults.size import LONG
from tests.payments.conftest import stripe_server as stripe_server
from tests.payments.machine.defects import DEFECTS, get_beginning
from tests.payments.machine.runner import run_machine
from tests.payments.machine.stripe_bank import StripeBank

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not LONG, reason="takes hours: make faults"),
]

# MACHINE_STEPS is for a shorter or longer run of the first test; the second takes a tenth of it.
STEPS = int(os.environ.get("MACHINE_STEPS", "100000"))
STEPS_PER_EXAMPLE = 40
# The least that has to happen in 10,000 steps, so that the run means something.
LEAST = {
    "captures": 50,
    "bookings": 20,
    "confirmations": 200,
    "cancelled": 50,
    "setups": 100,
    "dies": 200,
    "silent": 200,
    "overtaken": 200,
    "renewals": 1,
    "Checkout Pending": 20,
    "Checkout CardDeclined": 5,
    "Complete setup Saved": 20,
}


def run_and_report(capsys, steps, **options):
    """Run about that many steps, print what happened, and check that it was enough."""
    # Some examples are shorter.
    examples = 1 + steps * 5 // (STEPS_PER_EXAMPLE * 4)
    counts = run_machine(examples, steps=STEPS_PER_EXAMPLE, is_repeatable=False, **options)
    with capsys.disabled():
        numbers = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
        sys.stdout.write(f"\n{counts['steps']} steps. {numbers}\n")
    assert counts["steps"] >= steps
    least = {name: number * steps // 10_000 for name, number in LEAST.items()}
    assert not {name: least[name] for name in least if counts.get(name, 0) < least[name]}


def test_100000_steps_take_no_money_without_a_booking(capsys):
    run_and_report(capsys, STEPS)


def test_10000_steps_with_stripes_sdk_take_no_money_without_a_booking(stripe_server, capsys):
    run_and_report(capsys, STEPS // 10, bank=StripeBank(stripe_server))


@pytest.mark.parametrize("name", sorted(DEFECTS))
def test_planted_defect_is_found(name):
    with DEFECTS[name](), pytest.raises((AssertionError, CommandError)):
        run_machine(1000, beginning=get_beginning(name), is_repeatable=False)
