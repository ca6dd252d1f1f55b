"""The state machine of payments: a short form for each commit, and a long one for `make faults`.

In the short form, SQLite runs it, because it sends one request at a time.
"""

import os
import sys

import pytest
from django.core.management import CommandError
from django.db import connection

from tests.faults.size import LONG
from tests.payments.machine.defects import DEFECTS, get_beginning
from tests.payments.machine.machine import CheckoutMachine
from tests.payments.machine.runner import run_machine
from tests.payments.machine.stripe_bank import StripeBank

IS_SHORT = not LONG and connection.vendor == "sqlite"
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not LONG and not IS_SHORT, reason="make faults runs it on PostgreSQL"),
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
    "Checkout Pending": 20,
    "Checkout CardDeclined": 5,
    "Complete setup Saved": 20,
}
# Those that few steps find. The long form finds the others too.
QUICKLY_FOUND = [
    *("authorize_under_a_new_key", "use_promo_code_and_hours_for_free"),
    *("take_a_missing_refund_for_done", "end_a_setup_only_here", "close_requests_too_early"),
    *("leave_out_the_settlement_of_a_charge", "conclude_differently_after_a_crash"),
    "do_what_is_only_previewed",
]


def run_and_report(capsys, steps, **options):
    """Run about that many steps, print what happened, and check that it was enough."""
    # Some examples are shorter.
    examples = 1 + steps * 5 // (STEPS_PER_EXAMPLE * 4)
    try:
        run_machine(examples, steps=STEPS_PER_EXAMPLE, is_repeatable=False, **options)
    finally:
        counts = CheckoutMachine.counts
        numbers = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
        with capsys.disabled():
            sys.stdout.write(f"\n{counts['steps']} steps. {numbers}\n")
    assert counts["steps"] >= steps
    least = {name: number * steps // 10_000 for name, number in LEAST.items()}
    assert not {name: least[name] for name in least if counts.get(name, 0) < least[name]}


def test_no_order_of_events_and_faults_takes_money_without_a_booking(capsys):
    if LONG:
        run_and_report(capsys, STEPS)
        return
    counts = run_machine(45)

    # It does something: every kind of answer and fault occurs.
    assert counts["captures"] >= 3
    assert {"dies", "silent", "overtaken", "Checkout Processing", "Checkout Pending"} <= set(counts)
    assert {"Complete setup Saved", "Complete setup PaymentSetupNotComplete"} <= set(counts)


def test_stripes_sdk_takes_no_money_without_a_booking(stripe_server, capsys):
    if LONG:
        run_and_report(capsys, STEPS // 10, bank=StripeBank(stripe_server))
    else:
        assert run_machine(6, bank=StripeBank(stripe_server))["Checkout Processing"]


@pytest.mark.parametrize("name", sorted(DEFECTS) if LONG else QUICKLY_FOUND)
def test_machine_finds_a_planted_defect(name):
    with DEFECTS[name](), pytest.raises((AssertionError, CommandError)):
        run_machine(1000 if LONG else 60, beginning=get_beginning(name), is_repeatable=not LONG)
