"""Webhook events: verified by their signature, and reduced to what we use of them."""

import json
from dataclasses import dataclass
from uuid import UUID

import stripe
from django.conf import settings

from payments.gateways.stripe.cards import SETUP_METADATA
from payments.gateways.stripe.intents import PAYMENT_KEY_METADATA, get_own_key


class InvalidSignature(Exception):
    """The event was not signed by Stripe, or too long ago."""


@dataclass(frozen=True, slots=True)
class StripeEvent:
    """An event: what happened (`type`) to which object."""

    reference: str
    type: str
    is_live: bool
    object: str
    intent: str
    key: UUID | None
    setup: UUID | None
    # The latest attempt to save a card, in an event about a SetupIntent.
    attempt: str


def parse_event(payload: bytes, signature: str | None) -> StripeEvent:
    """Verify and parse the body of a webhook request. Raises InvalidSignature."""
    try:
        stripe.WebhookSignature.verify_header(
            payload, signature, settings.STRIPE_WEBHOOK_SECRET, stripe.Webhook.DEFAULT_TOLERANCE
        )
        event = json.loads(payload)
        about = event["data"]["object"]
        metadata = about.get("metadata") or {}
        is_intent = about["object"] == "payment_intent"
        return StripeEvent(
            reference=str(event["id"]),
            type=str(event["type"]),
            is_live=bool(event["livemode"]),
            object=str(about.get("id") or ""),
            intent=str((about["id"] if is_intent else about.get("payment_intent")) or ""),
            key=get_own_key(metadata, PAYMENT_KEY_METADATA),
            setup=get_own_key(metadata, SETUP_METADATA),
            attempt=str(about.get("latest_attempt") or ""),
        )
    except (stripe.SignatureVerificationError, ValueError, LookupError, TypeError, AttributeError):
        # Without context: the SDK's error holds the whole payload.
        raise InvalidSignature from None
