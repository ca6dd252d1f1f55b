"""The same customers and banks at the stand-in for Stripe, through its real SDK."""

import datetime as dt
import json
import time
from decimal import Decimal
from typing import Any
from uuid import UUID

import stripe
from django.test import Client

from payments import gateways
from payments.gateways.stripe.gateway import StripeGateway
from payments.models import Payment, PaymentSetup, SavedCard
from tests.factories_people import SavedCardFactory
from tests.payments.gateway_helpers import card
from tests.payments.machine.banks import NUMBERS as SANDBOX_NUMBERS
from tests.payments.machine.banks import Bank, Money
from tests.payments.machine.world import Customer
from tests.payments.webhooks.helpers import PATH, SECRET
from tests.stripe_server import StripeServer
from tests.stripe_server.operations import OPEN_STATUSES

# No card of Stripe asks and then declines: `declining` remembers which one is to do so.
NUMBERS = {**SANDBOX_NUMBERS, "asks, then declines": SANDBOX_NUMBERS["asks"]}
STATES = {
    "requires_action": "action_required",
    "requires_capture": "authorized",
    "succeeded": "captured",
    "canceled": "voided",
}
CENTS = 100


class StripeBank(Bank):
    gateway = StripeGateway
    numbers = NUMBERS
    is_in_database = False

    def __init__(self, server: StripeServer) -> None:
        self.server = server
        self.declining: set[str] = set()
        self.sent: list[str] = []

    def reset(self) -> None:
        for values in (self.server.test.objects, self.server.test.outcomes):
            values.clear()
        self.server.requests.clear()
        self.sent.clear()

    def save_card(self, customer: Customer, kind: str) -> None:
        SavedCard.objects.filter(user=customer.user).delete()
        reference = gateways.get_current_gateway().store_card(
            card(NUMBERS[kind]), customer=str(customer.user.pk)
        )
        if kind == "asks, then declines":
            self.declining.add(reference)
        SavedCardFactory(
            user=customer.user, gateway="stripe", reference=reference, saved_by_setup=True
        )

    def confirm(self, key: UUID) -> None:
        self._act(key, confirms=True)

    def refuse(self, key: UUID) -> None:
        self._act(key, confirms=False)

    def _act(self, key: UUID, *, confirms: bool) -> None:
        for intent in self._get_intents(key):
            if intent["status"] == "requires_action":
                is_declined = intent["payment_method"] in self.declining
                outcome = "card_declined/generic_decline" if is_declined else "good"
                self.server.act_at_bank(intent, confirms=confirms, outcome=outcome)

    def _get_intents(self, key: UUID) -> list[dict[str, Any]]:
        intents = self.server.intents
        return [each for each in intents if each["metadata"].get("roombook_key") == str(key)]

    def _get_charges(self, intent: dict[str, Any]) -> list[dict[str, Any]]:
        charges = self.server.charges
        return [each for each in charges if each["payment_intent"] == intent["id"]]

    def read_money(self) -> dict[UUID, Money]:
        keys = {each["metadata"].get("roombook_key") for each in self.server.intents} - {None}
        return {UUID(key): self._read_money_of(UUID(key)) for key in keys}

    def _read_money_of(self, key: UUID) -> Money:
        intents = self._get_intents(key)
        with_money = [each for each in intents if each["status"] in STATES]
        intent = (with_money or intents)[-1]
        charges = [charge for each in intents for charge in self._get_charges(each)]
        refunded = sum(charge["amount_refunded"] for charge in charges)
        state = STATES.get(intent["status"], "declined")
        if state == "captured" and refunded == intent["amount"]:
            state = "refunded"
        return Money(
            state=state,
            captures=sum(charge["captured"] for charge in charges),
            amount=Decimal(intent["amount"]) / CENTS,
            refunded=Decimal(refunded) / CENTS,
        )

    def send_event(self, payment: Payment, now: dt.datetime) -> None:
        for intent in self._get_intents(payment.key):
            self._send("payment_intent.amount_capturable_updated", intent)

    def _send(self, kind: str, subject: dict[str, Any]) -> None:
        self.sent.append(json.dumps(self.server.event(kind, subject)))
        for _ in range(2):
            self._deliver(self.sent[-1])

    def _deliver(self, body: str) -> None:
        signature = stripe.WebhookSignature.generate_signature_header(
            body, SECRET, int(time.time())
        )
        response = Client().post(
            PATH,
            data=body,
            content_type="application/json",
            headers={"Stripe-Signature": signature},
        )
        assert response.status_code in {200, 503}, response.content

    def repeat_events(self, now: dt.datetime) -> None:
        for body in self.sent[-3:]:
            self._deliver(body)

    # --- Payment setups --------------------------------------------------------------------------

    def _get_setup_intent(self, setup: PaymentSetup) -> dict[str, Any] | None:
        found = self.server.test.objects.get(setup.reference.partition("/")[0])
        return found if found and found["status"] in OPEN_STATUSES else None

    def enter_card(self, setup: PaymentSetup, kind: str) -> None:
        if intent := self._get_setup_intent(setup):
            self.server.confirm_setup(intent, NUMBERS[kind])

    def refuse_setup(self, setup: PaymentSetup) -> None:
        if intent := self._get_setup_intent(setup):
            self.server.fail_setup(intent)

    def send_setup_event(self, setup: PaymentSetup, now: dt.datetime) -> None:
        found = self.server.test.objects.get(setup.reference.partition("/")[0])
        if found and found["status"] == "succeeded":
            self._send("setup_intent.succeeded", found)
        elif found and found["last_setup_error"]:
            self._send("setup_intent.setup_failed", found)

    def get_setup_state(self, setup: PaymentSetup) -> str:
        intent = self.server.test.objects.get(setup.reference.partition("/")[0], {})
        states = {"succeeded": "succeeded", "canceled": "expired"}
        return states.get(intent.get("status"), "open")

    def has_card(self, reference: str) -> bool:
        method = self.server.test.objects.get(reference.rpartition("/")[2])
        return method is not None and method["customer"] is not None
