"""The Stripe gateway: cards are charged by PaymentIntents with manual capture.

A key becomes a PaymentIntent in two steps, so that we can always find the money again:

    create    charges nobody; the id of the intent is stored with the key (stripe_models.py)
    confirm   authorizes the amount; only ever called for an intent whose id is stored

After a crash, the outcome of a key can therefore be resolved without Stripe's search (which lags
behind) and without idempotency keys (which expire after a day and repeat stored errors until
then): a key without a row has no money. Voiding an unknown key stores a row without an intent,
which a delayed worker finds before it confirms. Voiding a known key cancels its intent, and Stripe
refuses to confirm a canceled intent. Capture and cancel can be repeated safely because an intent
passes from one status to the next only once.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

import stripe
from django.conf import settings

from payments.cards import Card
from payments.gateways import declines
from payments.gateways.base import (
    GatewayDispute,
    GatewayFees,
    GatewayPayment,
    GatewayRefund,
    GatewayRefused,
    require_no_open_transaction,
)
from payments.gateways.stripe.cards import (
    StripeSetupOperations,
    create_payment_method,
    is_stored,
    split_reference,
)
from payments.gateways.stripe.client import (
    StripeRequestRefused,
    call_stripe,
    create_client,
    from_minor_units,
    is_live_key,
    to_minor_units,
)
from payments.gateways.stripe.intents import (
    EXPAND_CHARGE,
    ON_SESSION_METADATA,
    PAYMENT_KEY_METADATA,
    REFUND_KEY_METADATA,
    SITE_METADATA,
    VOIDED_REASON,
    build_metadata,
    cancel_intent,
    confirm_intent,
    fetch_fees,
    from_timestamp,
    get_dispute_fee,
    get_payment_row,
    is_unused,
    is_voidable,
    list_recent_refunds,
    list_refunds,
    list_relevant_intents,
    make_declined_payment,
    retrieve_intent,
    store_intent,
    to_gateway_payment,
)
from payments.gateways.stripe_models import StripePayment
from roombook.errors import CardDeclined

if TYPE_CHECKING:
    from stripe.params import PaymentIntentCreateParams

logger = logging.getLogger(__name__)

# The answer for a key that was voided before anybody used it.
VOIDED_UNUSED = GatewayPayment(state="voided", reference="", amount=Decimal(0))


class StripeGateway(StripeSetupOperations):
    """Implements the Gateway protocol of gateways/base.py."""

    name: ClassVar[str] = "stripe"

    def __init__(self) -> None:
        self.is_live = is_live_key(settings.STRIPE_SECRET_KEY)
        self.publishable_key = settings.STRIPE_PUBLISHABLE_KEY

    # --- Payments --------------------------------------------------------------------------------

    def authorize(
        self,
        *,
        key: UUID,
        amount: Decimal,
        currency: str,
        source: Card | str,
        description: str,
        on_session: bool = False,
    ) -> GatewayPayment:
        require_no_open_transaction()
        units = to_minor_units(amount, currency)
        api = create_client(is_live=self.is_live)
        try:
            return self._authorize(
                api, key, units, currency, source, description, on_session=on_session
            )
        except CardDeclined as error:
            return make_declined_payment(source, amount, error.message)
        except StripeRequestRefused as error:
            if isinstance(source, str) and not is_stored(api, source):
                return make_declined_payment(source, amount, declines.UNKNOWN_CARD)
            if error.code in {"amount_too_small", "amount_too_large"}:
                return make_declined_payment(source, amount, declines.AMOUNT_OUT_OF_BOUNDS)
            logger.error("Stripe refused to authorize a payment: %s", error)
        # Nothing was authorized. Voiding the key makes that final.
        return self.void(key)

    def _authorize(
        self,
        api: stripe.StripeClient,
        key: UUID,
        units: int,
        currency: str,
        source: Card | str,
        description: str,
        *,
        on_session: bool,
    ) -> GatewayPayment:
        """Create and confirm the intent.

        If it raises anything but GatewayUnavailable, nothing is authorized.
        """
        row = StripePayment.objects.filter(key=key).first()
        # The payment method first: a card that Stripe rejects here leaves no intent behind.
        method = "" if row else create_payment_method(api, source)
        if row is None:
            customer = split_reference(source)[0] if isinstance(source, str) else ""
            row, intent = self._create_intent(
                api, key, units, currency, customer, description, on_session=on_session
            )
        elif row.intent:
            intent = retrieve_intent(api, row.intent)
        if not row.intent:
            return VOIDED_UNUSED
        if (intent.amount, intent.currency.upper()) != (units, currency.upper()):
            raise GatewayRefused(f"The key {key} was used for another amount.")
        if not is_unused(intent):
            return to_gateway_payment(api, intent, source=source)
        try:
            method = method or create_payment_method(api, source)
            intent = confirm_intent(api, intent, key, method)
        except (CardDeclined, StripeRequestRefused):
            # Declined, or another request voided the intent or confirmed it with another card.
            intent = retrieve_intent(api, row.intent)
            if is_unused(intent):
                raise
        return to_gateway_payment(api, intent, source=source)

    def _create_intent(
        self,
        api: stripe.StripeClient,
        key: UUID,
        units: int,
        currency: str,
        customer: str,
        description: str,
        *,
        on_session: bool,
    ) -> tuple[StripePayment, stripe.PaymentIntent]:
        """Create the intent and store its id.

        The returned row has no intent if another request voided the key in the meantime.
        """
        metadata = build_metadata(PAYMENT_KEY_METADATA, key)
        if on_session:
            metadata[ON_SESSION_METADATA] = "yes"
        params: PaymentIntentCreateParams = {
            "amount": units,
            "currency": currency.lower(),
            "capture_method": "manual",
            "allowed_payment_method_types": ["card"],
            "description": description[:255],
            "metadata": metadata,
        }
        if customer:
            params["customer"] = customer
        intent = call_stripe(
            lambda: api.v1.payment_intents.create(
                params, {"idempotency_key": f"roombook-{key.hex}-create"}
            )
        )
        if intent.livemode != self.is_live:
            raise GatewayRefused("Stripe's mode does not match the mode of our key.")
        row, _ = StripePayment.objects.get_or_create(
            key=key, defaults={"intent": intent.id, "is_live": self.is_live}
        )
        return row, intent

    def find_payment(self, key: UUID) -> GatewayPayment | None:
        require_no_open_transaction()
        row = StripePayment.objects.filter(key=key).first()
        if row is None:
            return None
        if not row.intent:
            return VOIDED_UNUSED
        api = create_client(is_live=row.is_live)
        intent = retrieve_intent(api, row.intent)
        # An intent that was created but never confirmed is no payment.
        return None if is_unused(intent) else to_gateway_payment(api, intent)

    def void(self, key: UUID) -> GatewayPayment:
        require_no_open_transaction()
        row, _ = StripePayment.objects.get_or_create(key=key, defaults={"is_live": self.is_live})
        if not row.intent:
            return VOIDED_UNUSED
        api = create_client(is_live=row.is_live)
        intent = retrieve_intent(api, row.intent)
        if is_voidable(intent):
            try:
                intent = cancel_intent(api, intent.id, VOIDED_REASON)
            except StripeRequestRefused:
                # Captured or canceled in the meantime.
                intent = retrieve_intent(api, row.intent)
        return to_gateway_payment(api, intent)

    def capture(self, key: UUID) -> GatewayPayment:
        row = get_payment_row(key)
        if not row.intent:
            return VOIDED_UNUSED
        api = create_client(is_live=row.is_live)
        try:
            intent = call_stripe(
                lambda: api.v1.payment_intents.capture(row.intent, {"expand": EXPAND_CHARGE})
            )
        except (StripeRequestRefused, CardDeclined) as error:
            # Already captured, voided or expired: the intent tells which.
            payment = to_gateway_payment(api, retrieve_intent(api, row.intent))
            if payment.state == "authorized":
                raise GatewayRefused(f"{key} cannot be captured: {error}") from None
            if payment.state == "declined":
                # The authorization is gone.
                return replace(payment, state="voided")
            return payment
        return to_gateway_payment(api, intent)

    def refund(self, *, key: UUID, refund_key: UUID, amount: Decimal) -> None:
        row = get_payment_row(key)
        if not row.intent:
            raise GatewayRefused("A payment that is voided cannot be refunded.")
        api = create_client(is_live=row.is_live)
        # Search first: Stripe forgets an idempotency key after a day, but never a refund.
        known = next((r for r in list_refunds(api, row.intent) if r.key == refund_key), None)
        if known is not None and known.amount != amount:
            raise GatewayRefused(f"The key {refund_key} was used for another amount.")
        if known is not None and known.failed:
            raise GatewayRefused(f"The bank returned the refund {known.reference}.")
        if known is not None:
            return
        intent = retrieve_intent(api, row.intent)
        if intent.status != "succeeded":
            raise GatewayRefused(f"A payment that is {intent.status} cannot be refunded.")
        units = to_minor_units(amount, intent.currency)
        if units <= 0:
            raise GatewayRefused("The amount of a refund must be greater than 0.")
        metadata = {
            PAYMENT_KEY_METADATA: str(key),
            REFUND_KEY_METADATA: str(refund_key),
            # Another deployment of the account ignores the events of this refund.
            SITE_METADATA: settings.PUBLIC_URL,
        }
        call_stripe(
            lambda: api.v1.refunds.create(
                {"payment_intent": intent.id, "amount": units, "metadata": metadata},
                {"idempotency_key": f"roombook-{refund_key.hex}-refund"},
            )
        )

    def list_refunds(self, key: UUID) -> list[GatewayRefund]:
        row = get_payment_row(key)
        if not row.intent:
            return []
        api = create_client(is_live=row.is_live)
        return list_refunds(api, row.intent)

    def fetch_fees(self, key: UUID) -> GatewayFees:
        row = get_payment_row(key)
        return fetch_fees(create_client(is_live=row.is_live), row.intent)

    def list_payments(self, since: datetime) -> Iterator[tuple[UUID, GatewayPayment]]:
        for key, intent in list_relevant_intents(is_live=self.is_live, since=since):
            store_intent(key, intent.id, is_live=self.is_live)
            yield key, to_gateway_payment(create_client(is_live=self.is_live), intent)

    def list_recent_refunds(self, since: datetime) -> list[tuple[UUID, GatewayRefund]]:
        refunds = list(list_recent_refunds(is_live=self.is_live, since=since))
        rows = StripePayment.objects.filter(intent__in={intent for intent, _ in refunds})
        keys = dict(rows.exclude(intent="").values_list("intent", "key"))
        return [(keys[intent], refund) for intent, refund in refunds if intent in keys]

    # --- Read by webhooks ------------------------------------------------------------------------

    def dispute(self, reference: str, *, is_live: bool) -> GatewayDispute:
        """The current state of a dispute, whichever event reported it."""
        api = create_client(is_live=is_live)
        dispute = call_stripe(lambda: api.v1.disputes.retrieve(reference))
        due = dispute.evidence_details.due_by
        return GatewayDispute(
            reference=dispute.id,
            amount=from_minor_units(dispute.amount, dispute.currency),
            currency=dispute.currency.upper(),
            reason=dispute.reason,
            status=dispute.status,
            opened_at=from_timestamp(dispute.created),
            is_closed=dispute.status in {"won", "lost", "warning_closed", "prevented"},
            respond_by=from_timestamp(due) if due else None,
            fee=get_dispute_fee(dispute),
        )
