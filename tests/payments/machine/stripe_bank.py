"""The same customers and banks at the stand-in for Stripe, through its real SDK."""

import json
import time
from decimal import Decimal
from typing import Any
from uuid import UUID

import stripe
from django.test import Client

from payments import gateways
from payments.gateways.stripe.gateway import StripeGateway
from payments.models import Payment, SavedCard
from tests.factories_people import SavedCardFactory
from tests.payments.gateway_helpers import card
from tests.payments.machine.banks import Money
from tests.payments.machine.world import Customer
from tests.payments.webhooks.helpers import PATH, SECRET
from tests.stripe_server import StripeServer

NUMBERS = {
    "good": "4242424242424242",
    "asks": "4000002760003184",
    "asks, then declines": "4000002760003184",
    "declines": "4000000000000341",
}
STATES = {
    "requires_action": "action_required",
    "requires_capture": "authorized",
    "succeeded": "captured",
    "canceled": "voided",
}
CENTS = 100


class StripeBank:
    gateway = StripeGateway

    def __init__(self, server: StripeServer) -> None:
        self.server = server
        self.declining: set[str] = set()

    def reset(self) -> None:
        """Forget everything, as the database does after each example."""
        for values in (self.server.test.objects, self.server.test.outcomes):
            values.clear()
        self.server.requests.clear()

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

    def get_money(self, key: UUID) -> Money | None:
        intents = self._get_intents(key)
        if not intents:
            return None
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

    def get_keys(self) -> set[UUID]:
        return {
            UUID(each["metadata"]["roombook_key"])
            for each in self.server.intents
            if each["status"] in {"requires_capture", "succeeded"}
        }

    def send_event(self, payment: Payment, now: object) -> None:
        for intent in self._get_intents(payment.key):
            event = self.server.event("payment_intent.amount_capturable_updated", intent)
            body = json.dumps(event)
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
