"""A worker is killed while a customer saves a card with a payment setup (B21.1, B21.2).

Afterwards the app repeats its request, or never calls again.
"""

from functools import partial

import pytest
from django.utils import timezone

from payments import setups
from payments.gateways.sandbox_models import SandboxCard, SandboxSetup
from payments.gateways.sandbox_setups import confirm_setup
from payments.models import PaymentSetup, SavedCard
from tests.factories_people import SavedCardFactory
from tests.faults import consistency, figures
from tests.faults.client import BROKEN_CONNECTION, retry_until_resolved
from tests.faults.service import Service
from tests.faults.size import LONG
from tests.faults.world import Customer, World
from tests.payments.gateway_helpers import card

NUMBER, LAST4 = "5555555555554444", "4444"
# The crash of Create payment setup, and that of Complete payment setup.
CASES = {("after the gateway's setup", "in saving a card")}
ALL_CASES = CASES | {
    ("after setup", "after lookup of setup"),
    ("after setup", "after the gateway's end of setup"),
    ("after the gateway's setup", "after saving a card"),
}


def make_customer(service: Service) -> Customer:
    """A customer with a saved card, which the new one replaces."""
    with service.database.open():
        customer = World(service).customer()
        former = SavedCardFactory.create(user=customer.user, saved_by_setup=True)
        SandboxCard.objects.filter(reference=former.reference).update(customer=customer.user.pk)
        return customer


def open_setup(service: Service, customer: Customer, crash: str) -> str:
    """Create a setup with a crash and a repetition, and enter a card. Returns its Id."""
    send = partial(
        customer.client.post,
        "account/create-payment-setup",
        ReturnUrl="https://app.example.com/",
        key="the same request",
    )
    service.crash(crash)
    assert send().status == BROKEN_CONNECTION
    setup_id: str = retry_until_resolved(send).body["PaymentSetup"]["Id"]
    with service.database.open():
        assert PaymentSetup.objects.filter(user=customer.user).count() == 1
        confirm_setup(SandboxSetup.objects.get(key=setup_id).secret, card(NUMBER))
    return setup_id


def crash_completion(service: Service, customer: Customer, setup_id: str, crash: str) -> str:
    """Complete the setup with a crash and a repetition. Returns the digits of the saved card."""
    send = partial(customer.client.post, "account/complete-payment-setup", PaymentSetupId=setup_id)
    service.crash(crash)
    assert send().status == BROKEN_CONNECTION
    assert service.has_crashed
    saved = retry_until_resolved(send).body["SavedPaymentInfo"]
    return str(saved["Last4DigitsOfCreditCardNumber"])


@pytest.mark.parametrize(("first", "second"), sorted(ALL_CASES if LONG else CASES))
def test_card_of_a_setup_is_saved_once_after_crashes(guarded, check_everything, first, second):
    case = "payment setup crashes, app retries"
    figures.get_row(case).runs += 2
    customer = make_customer(guarded)
    setup_id = open_setup(guarded, customer, first)

    assert crash_completion(guarded, customer, setup_id, second) == LAST4

    check_everything(guarded, case)
    with guarded.database.open():
        saved = SavedCard.objects.get(user=customer.user)
        stored = SandboxCard.objects.filter(customer=customer.user.pk)
        assert stored.filter(reference=saved.reference).exists()
        # The former card is deleted after the commit. If that is lost, it harms nobody.
        assert stored.count() == 1 + (second == "after saving a card")
        assert PaymentSetup.objects.get(user=customer.user).state == "succeeded"


def test_card_of_an_app_that_never_calls_again_is_saved_in_the_end(guarded):
    customer = make_customer(guarded)
    setup_id = open_setup(guarded, customer, "after setup")
    guarded.crash("after lookup of setup")
    complete = {"PaymentSetupId": setup_id}
    answer = customer.client.post("account/complete-payment-setup", **complete)
    assert answer.status == BROKEN_CONNECTION

    with guarded.database.open():
        rows = PaymentSetup.objects.filter(key=setup_id)
        rows.update(expires_at=timezone.now(), created_at=timezone.now() - setups.LIFETIME)
        # It must not replace a card that was saved after it, and the former one is older.
        SavedCard.objects.filter(user=customer.user).update(
            created_at=timezone.now() - 2 * setups.LIFETIME
        )
        consistency.run_reconcile_payments()
        assert SavedCard.objects.get(user=customer.user).last4 == LAST4


@pytest.mark.skipif(not LONG, reason="the control is not for each commit: make faults")
def test_setup_without_one_transaction_loses_the_card(start):
    """Negative control: the setup ends in a transaction of its own, before its card is saved."""
    service = start(FAULTS_UNGUARDED="yes")
    customer = make_customer(service)
    setup_id = open_setup(service, customer, "after setup")

    assert crash_completion(service, customer, setup_id, "in saving a card") != LAST4
