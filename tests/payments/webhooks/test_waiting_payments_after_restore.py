"""A restored backup lacks a payment that waits for its customer to confirm it (B16.9)."""

import datetime as dt
import io

import pytest
import time_machine
from django.core.management import call_command

from payments import gateways
from payments.gateways.stripe_models import StripePayment
from payments.models import Payment, UnknownPayment
from reservations.booking import checkout
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import NOW, make_draft
from tests.payments.gateway_helpers import card

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("is_lost", [True, False])
def test_payment_that_waits_for_no_booking_can_no_longer_be_confirmed(stripe_server, is_lost):
    ada = UserFactory()
    gateway = gateways.get_current_gateway()
    reference = gateway.store_card(card("4000002760003184"), customer=str(ada.pk))
    SavedCardFactory(user=ada, gateway="stripe", reference=reference, saved_by_setup=True)
    draft = make_draft(ada, start=NOW + dt.timedelta(days=21))
    method = checkout.PaymentMethod(use_saved_card=True)
    checkout.check_out(draft.pk, user=ada, payment_method=method, now=NOW)
    [intent] = stripe_server.intents
    assert intent["status"] == "requires_action"
    if is_lost:
        Payment.objects.all().delete()
        StripePayment.objects.all().delete()

    with time_machine.travel(NOW + dt.timedelta(minutes=5), tick=False):
        call_command("reconcile_payments", stdout=io.StringIO())

    assert intent["status"] == ("canceled" if is_lost else "requires_action")
    assert not UnknownPayment.objects.exists()
