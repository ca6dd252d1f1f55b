"""Setups that several requests complete at once: one saved card, and none left at the gateway."""

import pytest
from django.test import Client

from payments import setups
from payments.gateways.sandbox_models import FaultKind, SandboxCard, SandboxFault
from payments.models import PaymentSetup, SavedCard
from tests.concurrency import run_concurrently
from tests.factories_reservations import CARD
from tests.http import post
from tests.operations.payment_setups.helpers import CREATE, NOW

pytestmark = pytest.mark.django_db(transaction=True)


def expect_one_card():
    assert SavedCard.objects.get().reference == SandboxCard.objects.get().reference


def test_concurrent_completions_and_other_saves_leave_one_card(token, create, enter, complete):
    entered = [create(), create()]
    for setup in entered:
        enter(setup)
    SandboxFault.objects.create(operation="*", kind=FaultKind.SLOW, seconds=0.05, times=None)
    body = {"Token": token, "PaymentInfo": CARD}
    webhook, _ = PaymentSetup.objects.order_by("pk")

    run_concurrently(
        [
            *[lambda setup=setup: complete(setup).json()["Success"] for setup in entered * 2],
            lambda: setups.resolve_setup(webhook, now=NOW),
            lambda: post(Client(), "/api/account/update-payment-info", body).json()["Success"],
        ]
    )

    expect_one_card()
    assert {each.state for each in PaymentSetup.objects.all()} == {"succeeded"}


def test_concurrent_requests_with_one_key_create_one_setup(token):
    def create():
        key = {"HTTP_IDEMPOTENCY_KEY": "one-tap"}
        return post(Client(), CREATE, {"Token": token}, **key).json()["PaymentSetup"]["Id"]

    assert len(set(run_concurrently([create] * 4))) == 1
    assert PaymentSetup.objects.count() == 1


def test_completion_during_the_end_of_the_setup_leaves_no_card_at_the_gateway(
    create, enter, complete
):
    setup = create()
    enter(setup)
    stored = PaymentSetup.objects.get()

    run_concurrently([lambda: complete(setup).status_code, lambda: setups.cancel_setup(stored)])

    saved = {each.reference for each in SavedCard.objects.all()}
    assert saved == {each.reference for each in SandboxCard.objects.all()}
