"""Cards at Stripe: PaymentMethods of the account's Customer, and the setups that save them."""

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import stripe
from django.conf import settings

from payments.cards import Card
from payments.gateways import declines
from payments.gateways.base import GatewayCard, GatewaySetup, GatewaySetupState, GatewayUnavailable
from payments.gateways.stripe.client import (
    StripeRequestRefused,
    call_stripe,
    create_client,
    get_decline_message,
)
from payments.gateways.stripe.intents import (
    CARD_BRANDS,
    VOIDED_REASON,
    build_metadata,
    cancel_intent,
    get_optional,
)
from payments.gateways.stripe_models import StripeCustomer
from roombook.errors import CardDeclined

if TYPE_CHECKING:
    from stripe.params import (
        PaymentIntentCreateParams,
        PaymentMethodCreateParams,
        PaymentMethodCreateParamsCard,
        SetupIntentCreateParams,
    )
    from stripe.params.checkout import SessionCreateParams

# --- PaymentMethods: cards as Stripe stores them -------------------------------------------------

# Stripe's names of the parts of an address.
STRIPE_ADDRESS_NAMES = {
    "street1": "line1",
    "street2": "line2",
    "city": "city",
    "state": "state",
    "postal_code": "postal_code",
    "country": "country",
}


def create_payment_method(api: stripe.StripeClient, card: Card | str) -> str:
    """The id of a PaymentMethod for the card. The card number is sent nowhere else."""
    if isinstance(card, str):
        return split_reference(card)[1]
    details: PaymentMethodCreateParamsCard = {
        "number": card.number,
        "exp_month": card.exp_month,
        "exp_year": card.exp_year,
    }
    if card.security_code:
        details["cvc"] = card.security_code
    params: PaymentMethodCreateParams = {
        "type": "card",
        "card": details,
        "billing_details": {
            "name": f"{card.first_name} {card.last_name}",
            "address": to_stripe_address(card.billing_address),  # type: ignore[typeddict-item]
        },
    }
    return call_stripe(lambda: api.v1.payment_methods.create(params)).id


def to_stripe_address(address: Mapping[str, object]) -> dict[str, str]:
    """The address by Stripe's names. Stripe accepts a country only as a two-letter code."""
    parts = {theirs: str(address.get(ours) or "") for ours, theirs in STRIPE_ADDRESS_NAMES.items()}
    country = parts["country"].upper()
    parts["country"] = country if len(country) == 2 and country.isascii() else ""
    return {name: value for name, value in parts.items() if value}


def attach_payment_method(api: stripe.StripeClient, method: str, customer: str) -> None:
    call_stripe(lambda: api.v1.payment_methods.attach(method, {"customer": customer}))


def is_stored(api: stripe.StripeClient, reference: str) -> bool:
    """Whether Stripe still stores the card. A detached card exists but belongs to no Customer."""
    customer, method = split_reference(reference)
    try:
        return call_stripe(lambda: api.v1.payment_methods.retrieve(method)).customer == customer
    except StripeRequestRefused:
        return False


def split_reference(reference: str) -> tuple[str, str]:
    """The Customer and the PaymentMethod in the reference of a saved card."""
    customer, _, method = reference.partition("/")
    return customer, method or "pm_none"


# --- Saved cards at Stripe -----------------------------------------------------------------------

R = TypeVar("R")

logger = logging.getLogger(__name__)

# The metadata of a Customer, for people who look at it in Stripe's dashboard.
ACCOUNT_METADATA = "roombook_account"

# The amount that a card check authorizes in test mode, above every currency's minimum.
CARD_CHECK_UNITS = 100_000


class StripeCardOperations:
    """What Stripe does with stored cards."""

    is_live: bool

    def store_card(self, card: Card, *, customer: str) -> str:
        api = create_client(is_live=self.is_live)
        with unavailable_if_refused("store a card"):
            method = create_payment_method(api, card)
            stripe_customer, _ = self._call_with_customer(
                api, customer, lambda reference: attach_payment_method(api, method, reference)
            )
        return f"{stripe_customer}/{method}"

    def _call_with_customer(
        self, api: stripe.StripeClient, account: str, call: Callable[[str], R]
    ) -> tuple[str, R]:
        """Make a call with the account's Customer; return the Customer and the call's result."""
        stripe_customer = self._get_customer(api, account)
        try:
            return stripe_customer, call(stripe_customer)
        except StripeRequestRefused as error:
            if error.param != "customer":
                raise
        # The customer was deleted at Stripe.
        StripeCustomer.objects.filter(reference=stripe_customer).delete()
        stripe_customer = self._get_customer(api, account)
        return stripe_customer, call(stripe_customer)

    def _get_customer(self, api: stripe.StripeClient, account: str) -> str:
        """The id of the account's Customer, created with its first card."""
        known = StripeCustomer.objects.filter(account=account, is_live=self.is_live).first()
        if known:
            return known.reference
        created = call_stripe(
            lambda: api.v1.customers.create(
                {"description": f"Account {account}", "metadata": {ACCOUNT_METADATA: account}}
            )
        )
        # If two requests create one at the same time, the second Customer stays unused.
        row, _ = StripeCustomer.objects.get_or_create(
            account=account, is_live=self.is_live, defaults={"reference": created.id}
        )
        return row.reference

    def delete_card(self, reference: str) -> None:
        api = create_client(is_live=self.is_live)
        _, method = split_reference(reference)
        # Refused if the card does not exist, is detached already, or belongs to the other mode.
        with suppress(StripeRequestRefused):
            call_stripe(lambda: api.v1.payment_methods.detach(method))

    def delete_customer(self, customer: str) -> None:
        """Delete the account's Customers, and so their cards."""
        for row in StripeCustomer.objects.filter(account=customer):
            api = create_client(is_live=row.is_live)
            try:
                call_stripe(functools.partial(api.v1.customers.delete, row.reference))
            except StripeRequestRefused as error:
                if error.code != "resource_missing":
                    raise
            row.delete()

    def check_card(self, source: Card | str, *, on_session: bool = False) -> None:
        """Validate a new card in Stripe's test mode, which accepts test cards only.

        Test mode does not know the cards that live mode stores: for those, only check that they
        are still stored.
        """
        if not isinstance(source, str) or not self.is_live:
            with unavailable_if_refused("check a card"):
                self._authorize_in_test_mode(source, on_session=on_session)
        elif not is_stored(create_client(is_live=True), source):
            raise CardDeclined(declines.UNKNOWN_CARD)

    def _authorize_in_test_mode(self, source: Card | str, *, on_session: bool) -> None:
        api = create_client(is_live=False)
        customer = split_reference(source)[0] if isinstance(source, str) else ""
        method = create_payment_method(api, source)
        params: PaymentIntentCreateParams = {
            "amount": CARD_CHECK_UNITS,
            "currency": settings.CURRENCY.lower(),
            "capture_method": "manual",
            "allowed_payment_method_types": ["card"],
            "payment_method": method,
            "description": "Test",
            "confirm": True,
        }
        if customer:
            params |= {"customer": customer, "off_session": not on_session}
        try:
            intent = call_stripe(lambda: api.v1.payment_intents.create(params))
        except StripeRequestRefused:
            if isinstance(source, str) and not is_stored(api, source):
                raise CardDeclined(declines.UNKNOWN_CARD) from None
            raise
        # An authorization in test mode holds no money and would expire anyway.
        with suppress(StripeRequestRefused, GatewayUnavailable):
            cancel_intent(api, intent.id, VOIDED_REASON)
        is_confirmable = on_session and intent.status == "requires_action"
        if intent.status != "requires_capture" and not is_confirmable:
            raise CardDeclined(declines.REQUIRES_ACTION)


@contextmanager
def unavailable_if_refused(action: str) -> Iterator[None]:
    """Raise GatewayUnavailable if Stripe refuses: the customer is not at fault."""
    try:
        yield
    except StripeRequestRefused as error:
        logger.error("Stripe refused to %s: %s", action, error)
        raise GatewayUnavailable from None


# --- Payment setups ------------------------------------------------------------------------------

# A setup is a SetupIntent for Stripe's SDK, and a Checkout Session for its hosted page. One object
# cannot serve both: a Checkout Session creates a SetupIntent of its own, which no SDK may confirm.
# The one that succeeds first has the card, and the other one is ended.

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
