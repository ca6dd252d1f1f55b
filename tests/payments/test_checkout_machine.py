"""The state machine of payments, in its short form; tests/faults has the long one.

The tests of SQLite run it, because it sends one request at a time.
"""

import pytest
from django.core.management import CommandError
from django.db import connection

from tests.payments.machine.defects import DEFECTS, get_beginning
from tests.payments.machine.runner import run_machine
from tests.payments.machine.stripe_bank import StripeBank

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor == "postgresql", reason="make faults runs it there"),
]


def test_no_order_of_events_and_faults_takes_money_without_a_booking():
    counts = run_machine(30)

    # It does something: every kind of answer and fault occurs.
    assert counts["captures"] >= 3
    assert {"dies", "silent", "overtaken", "Checkout Processing", "Checkout Pending"} <= set(counts)
    assert {"Complete setup Saved", "Complete setup PaymentSetupNotComplete"} <= set(counts)


def test_stripes_sdk_takes_no_money_without_a_booking(stripe_server):
    counts = run_machine(6, bank=StripeBank(stripe_server))

    assert counts["Checkout Processing"]


# Those that few steps find. The long form finds the others too.
@pytest.mark.parametrize(
    "name",
    [
        *("authorize_under_a_new_key", "use_promo_code_and_hours_for_free"),
        *("take_a_missing_refund_for_done", "end_a_setup_only_here", "close_requests_too_early"),
        "void_no_spare_authorization",
    ],
)
def test_machine_finds_a_planted_defect(name):
    with DEFECTS[name](), pytest.raises((AssertionError, CommandError)):
        run_machine(60, beginning=get_beginning(name))
