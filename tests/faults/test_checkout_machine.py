"""The state machine of payments in its long form; tests/payments has the short one."""

import sys

import pytest
from django.core.management import CommandError

from tests.faults.size import LONG
from tests.payments.conftest import stripe_server as stripe_server
from tests.payments.machine.defects import DEFECTS
from tests.payments.machine.runner import run_machine
from tests.payments.machine.stripe_bank import StripeBank

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not LONG, reason="takes an hour: make faults"),
]

# 100,000 steps: an example has 20.
EXAMPLES = 5_000


def report(counts, capsys):
    with capsys.disabled():
        numbers = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
        sys.stdout.write(f"\n{counts['steps']} steps. {numbers}\n")


def test_100000_steps_take_no_money_without_a_booking(capsys):
    report(run_machine(EXAMPLES, is_repeatable=False), capsys)


def test_10000_steps_with_stripes_sdk_take_no_money_without_a_booking(stripe_server, capsys):
    bank = StripeBank(stripe_server)
    report(run_machine(EXAMPLES // 10, bank=bank, is_repeatable=False), capsys)


@pytest.mark.parametrize("name", sorted(DEFECTS))
def test_planted_defect_is_found(name):
    with DEFECTS[name](), pytest.raises((AssertionError, CommandError)):
        run_machine(EXAMPLES // 4, is_repeatable=False)
