"""The state machine of payments: a short form for each commit, and a long one for `make faults`.

In the short form, SQLite runs it, because it sends one request at a time.
"""

import os

import pytest
from django.core.management import CommandError
from django.db import connection

from tests.faults.size import LONG
from tests.payments.machine.defects import DEFECTS, get_beginning
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
    *("authorize_under_a_new_key", "take_a_missing_refund_for_done", "end_a_setup_only_here"),
    *("close_requests_too_early", "do_what_is_only_previewed"),
]


def run_long(steps, **options):
    """Run about that many steps, and check that enough happened."""
    # Some examples are shorter.
    examples = 1 + steps * 5 // (STEPS_PER_EXAMPLE * 4)
    counts = run_machine(examples, steps=STEPS_PER_EXAMPLE, is_repeatable=False, **options)
    least = {name: number * steps // 10_000 for name, number in LEAST.items()} | {"steps": steps}
    assert not {name: counts.get(name) for name in least if counts.get(name, 0) < least[name]}


def test_no_order_of_events_and_faults_takes_money_without_a_booking():
    if LONG:
        run_long(STEPS)
        return
    counts = run_machine(20)

    # It does something: every kind of answer and fault occurs.
    assert counts["captures"] >= 3
    assert {"dies", "silent", "overtaken", "Checkout Processing", "Checkout Pending"} <= set(counts)
    assert {"Complete setup Saved", "Complete setup PaymentSetupNotComplete"} <= set(counts)


def test_stripes_sdk_takes_no_money_without_a_booking(stripe_server):
    if LONG:
        run_long(STEPS // 10, bank=StripeBank(stripe_server))
    else:
        assert run_machine(6, bank=StripeBank(stripe_server))["Checkout Processing"]


@pytest.mark.parametrize("name", sorted(DEFECTS) if LONG else QUICKLY_FOUND)
def test_machine_finds_a_planted_defect(name):
    with DEFECTS[name](), pytest.raises((AssertionError, CommandError)):
        run_machine(1000 if LONG else 60, beginning=get_beginning(name), is_repeatable=not LONG)
