"""manage.py reconcile_payments: payment setups that nobody completed (B21.2)"""

from datetime import timedelta

import pytest
import time_machine
from django.core.management import call_command

from payments import setups
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox import SandboxGateway, confirm_setup
from payments.gateways.sandbox_models import SandboxCard, SandboxSetup
from payments.models import Payment, PaymentSetup, SavedCard
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import NOW, make_booking
from tests.gateway_faults import add_fault
from tests.payments.gateway_helpers import card

pytestmark = pytest.mark.django_db


@pytest.fixture
def secret(ada):
    setup = setups.create_setup(ada, return_url="https://app.example.com/", now=NOW)
    opened = setups.open_setup(setup, own_page="https://rooms.example.com/")
    return opened.at_gateway.client_secret


def reconcile(*, at):
    with time_machine.travel(at, tick=False):
        call_command("reconcile_payments", verbosity=0)


def test_expired_setup_is_ended_at_the_gateway_once_that_answers(secret):
    add_fault(operation="cancel_setup", kind="timeout_before", times=1)
    for time, state in (
        *((timedelta(minutes=59), "open"), (timedelta(hours=1), "open")),
        (timedelta(hours=2), "expired"),
    ):
        reconcile(at=NOW + time)
        assert SandboxSetup.objects.get().state == PaymentSetup.objects.get().state == state


def test_card_whose_setup_no_app_completes_is_saved(ada, secret):
    confirm_setup(secret, card())

    reconcile(at=NOW + timedelta(hours=1))

    assert SavedCard.objects.get(user=ada).reference == SandboxCard.objects.get().reference
    assert PaymentSetup.objects.get().state == "succeeded"


def test_card_that_was_saved_meanwhile_stays(ada, secret):
    confirm_setup(secret, card())
    kept = SavedCardFactory(user=ada, created_at=NOW + timedelta(minutes=5))

    reconcile(at=NOW + timedelta(hours=1))

    assert SavedCard.objects.get() == kept
    assert SandboxCard.objects.get().reference == kept.reference
    assert PaymentSetup.objects.get().state == "failed"


def test_setup_that_the_gateway_never_got_expires(ada):
    setups.create_setup(ada, return_url="https://app.example.com/", now=NOW)

    reconcile(at=NOW + timedelta(hours=1))

    assert PaymentSetup.objects.get().state == "expired"


def test_refused_setups_and_fees_are_logged(secret, monkeypatch, caplog):
    make_booking()
    [setup], [payment] = PaymentSetup.objects.all(), Payment.objects.all()

    def refuse(self, reference):
        raise GatewayRefused("The key may not do this.")

    monkeypatch.setattr(SandboxGateway, "cancel_setup", refuse)
    monkeypatch.setattr(SandboxGateway, "fetch_fees", refuse)
    reconcile(at=NOW + timedelta(hours=1))

    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        f"payment setup {setup.pk} (open) was refused: The key may not do this.",
        f"Payment {payment.pk} of reservation {payment.reservation_id}, $75.00 was refused:"
        " The key may not do this.",
    ]
