"""Payment setups at Stripe: a SetupIntent for its SDK, and a Checkout Session for its hosted page.

One object cannot serve both: a Checkout Session creates a SetupIntent of its own, which no SDK may
confirm. The one that succeeds first has the card, and the other one is ended.
"""

import logging
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import stripe

from payments.gateways.base import GatewayCard, GatewaySetup, GatewaySetupState
from payments.gateways.stripe.cards import StripeCardOperations, unavailable_if_refused
from payments.gateways.stripe.client import (
    StripeRequestRefused,
    call_stripe,
    create_client,
    get_decline_message,
)
from payments.gateways.stripe.intents import (
    CARD_BRANDS,
    build_metadata,
    get_optional,
)
from payments.gateways.stripe.payment_methods import STRIPE_ADDRESS_NAMES

if TYPE_CHECKING:
    from stripe.params import SetupIntentCreateParams
    from stripe.params.checkout import SessionCreateParams

logger = logging.getLogger(__name__)

SETUP_METADATA = "roombook_setup"


class StripeSetupOperations(StripeCardOperations):
    """What Stripe does with payment setups."""

    def create_setup(
        self, *, key: UUID, customer: str, return_url: str, expires_at: datetime
    ) -> GatewaySetup:
        api = create_client(is_live=self.is_live)
        metadata = build_metadata(SETUP_METADATA, key)

        def create_both(
            stripe_customer: str,
        ) -> tuple[stripe.SetupIntent, stripe.checkout.Session]:
            # With the customer, because Stripe refuses other parameters under the same key.
            idempotency_key = f"roombook-{key.hex}-{stripe_customer}"
            # Off-session use includes on-session use: staff may charge the card for the customer.
            params: SetupIntentCreateParams = {
                "customer": stripe_customer,
                "usage": "off_session",
                "allowed_payment_method_types": ["card"],
                "metadata": metadata,
            }
            options: stripe.RequestOptions = {"idempotency_key": f"{idempotency_key}-setup"}
            intent = call_stripe(lambda: api.v1.setup_intents.create(params, options))
            session = self._create_session(
                api, idempotency_key, stripe_customer, return_url, expires_at, metadata
            )
            return intent, session

        with unavailable_if_refused("create a payment setup"):
            stripe_customer, (intent, session) = self._call_with_customer(
                api, customer, create_both
            )
        return GatewaySetup(
            state="open",
            reference=f"{intent.id}/{session.id}",
            customer=stripe_customer,
            client_secret=intent.client_secret or "",
            url=session.url or "",
        )

    def _create_session(
        self,
        api: stripe.StripeClient,
        idempotency_key: str,
        stripe_customer: str,
        return_url: str,
        expires_at: datetime,
        metadata: dict[str, str],
    ) -> stripe.checkout.Session:
        params: SessionCreateParams = {
            "mode": "setup",
            "customer": stripe_customer,
            "allowed_payment_method_types": ["card"],
            "success_url": return_url,
            "cancel_url": return_url,
            "expires_at": int(expires_at.timestamp()),
            "metadata": metadata,
            "setup_intent_data": {"metadata": metadata},
        }
        options: stripe.RequestOptions = {"idempotency_key": f"{idempotency_key}-session"}
        return call_stripe(lambda: api.v1.checkout.sessions.create(params, options))

    def find_setup(self, reference: str) -> GatewaySetup:
        setup, _ = self._read_setup(create_client(is_live=self.is_live), reference)
        return setup

    def cancel_setup(self, reference: str) -> GatewaySetup:
        api = create_client(is_live=self.is_live)
        intent, session = split_setup_reference(reference)
        # Both are refused for what has ended.
        with suppress(StripeRequestRefused):
            call_stripe(lambda: api.v1.setup_intents.cancel(intent))
        with suppress(StripeRequestRefused):
            call_stripe(lambda: api.v1.checkout.sessions.expire(session))
        setup, unused_cards = self._read_setup(api, reference)
        for card in unused_cards:
            self.delete_card(card.reference)
        return setup

    def _read_setup(
        self, api: stripe.StripeClient, reference: str
    ) -> tuple[GatewaySetup, list[GatewayCard]]:
        """The setup, and other cards that were entered for it at the same time."""
        intent_id, session_id = split_setup_reference(reference)
        try:
            intent = call_stripe(
                lambda: api.v1.setup_intents.retrieve(intent_id, {"expand": ["payment_method"]})
            )
            session = call_stripe(
                lambda: api.v1.checkout.sessions.retrieve(
                    session_id, {"expand": ["setup_intent.payment_method"]}
                )
            )
        except StripeRequestRefused as error:
            # It was made with the keys of another account or mode, so nobody can finish it.
            logger.error("Stripe does not know the setup %s: %s", reference, error)
            return GatewaySetup("expired", reference), []
        intents = [
            each for each in (intent, session.setup_intent) if isinstance(each, stripe.SetupIntent)
        ]
        cards = [to_gateway_card(each) for each in intents if each.status == "succeeded"]
        refused = [each for each in intents if each.last_setup_error]
        message = ""
        for each in refused:
            refusal = each.last_setup_error
            code, decline_code = (get_optional(refusal, n) for n in ("code", "decline_code"))
            message = get_decline_message(code, decline_code)
        state: GatewaySetupState = "failed" if message else "open"
        if cards:
            state = "succeeded"
        elif intent.status == "canceled" and session.status != "open":
            state = "expired"
        is_open = state in {"open", "failed"}
        setup = GatewaySetup(
            state=state,
            reference=reference,
            customer=str(intent.customer or ""),
            client_secret=(intent.client_secret or "") if is_open else "",
            url=(session.url or "") if is_open else "",
            card=cards[0] if cards else None,
            message=message,
            refused_attempts=tuple(str(each.latest_attempt) for each in refused),
        )
        return setup, cards[1:]


def to_gateway_card(intent: stripe.SetupIntent) -> GatewayCard:
    """The card of a SetupIntent that succeeded and was retrieved with its PaymentMethod."""
    method: Any = intent.payment_method
    holder = get_optional(method, "billing_details")
    address = get_optional(holder, "address")
    return GatewayCard(
        reference=f"{intent.customer}/{method.id}",
        brand=CARD_BRANDS.get(method.card.brand),
        last4=method.card.last4,
        exp_year=method.card.exp_year,
        exp_month=method.card.exp_month,
        name=get_optional(holder, "name") or "",
        billing_address={
            ours: get_optional(address, theirs) or ""
            for ours, theirs in STRIPE_ADDRESS_NAMES.items()
        },
        has_cvv=bool(get_optional(get_optional(method.card, "checks"), "cvc_check")),
    )


def split_setup_reference(reference: str) -> tuple[str, str]:
    """The SetupIntent and the Checkout Session in the reference of a setup."""
    intent, _, session = reference.partition("/")
    return intent, session or "cs_none"
