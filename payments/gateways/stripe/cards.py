"""Saved cards at Stripe: PaymentMethods of the account's Customer."""

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import stripe
from django.conf import settings

from payments.cards import Card
from payments.gateways import declines
from payments.gateways.base import GatewayUnavailable
from payments.gateways.stripe.client import StripeRequestRefused, call_stripe, create_client
from payments.gateways.stripe.intents import VOIDED_REASON, cancel_intent
from payments.gateways.stripe.payment_methods import (
    attach_payment_method,
    create_payment_method,
    is_stored,
    split_reference,
)
from payments.gateways.stripe_models import StripeCustomer
from roombook.errors import CardDeclined

if TYPE_CHECKING:
    from stripe.params import PaymentIntentCreateParams

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
