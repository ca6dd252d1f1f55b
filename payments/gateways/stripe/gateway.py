"""Stripe: cards are charged by PaymentIntents that are captured later.

A key becomes a PaymentIntent in two steps, so that no money moves that we could not find again:

    create    charges nobody; its id is written down beside the key (stripe_models.py)
    confirm   reserves the money; only ever of an intent that is written down

Whoever settles a key after a crash therefore needs no search at Stripe (which lags behind) and no
idempotency key (forgotten after a day, and repeating a stored error until then): no row, no money.
Fencing off an unknown key is a row without intent, which a late worker meets before it confirms;
a known one is cancelled, and Stripe lets nobody confirm a cancelled intent. Capture and cancel are
repeated safely because an intent goes from one state to the next only once.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import stripe
from django.conf import settings
from django.db.models import Q

from payments.cards import Card, CardBrand
from payments.gateways import declines
from payments.gateways.base import (
    GatewayDispute,
    GatewayPayment,
    GatewayRefund,
    GatewayRefused,
    GatewayState,
    GatewayUnavailable,
    require_no_open_transaction,
)
from payments.gateways.stripe.client import (
    StripeRequestRefused,
    call_stripe,
    create_client,
    from_minor_units,
    get_decline_message,
    is_live_key,
    to_minor_units,
)
from payments.gateways.stripe_models import StripeCustomer, StripePayment
from roombook.errors import CardDeclined

if TYPE_CHECKING:
    from stripe.params import (
        PaymentIntentConfirmParams,
        PaymentIntentCreateParams,
        PaymentMethodCreateParams,
        PaymentMethodCreateParamsCard,
    )

logger = logging.getLogger(__name__)

# What our objects at Stripe carry, for people who look there.
PAYMENT_KEY_METADATA = "roombook_key"
REFUND_KEY_METADATA = "roombook_refund"
ACCOUNT_METADATA = "roombook_account"

# Why an intent was cancelled: what tells a card that asked for more from money that we let go.
VOIDED_REASON = "requested_by_customer"
ACTION_REQUIRED_REASON = "abandoned"

# Whose money a test card reserves for a moment; above every currency's least amount.
CARD_CHECK_UNITS = 100_000

CARD_BRANDS = {
    "visa": CardBrand.VISA,
    "mastercard": CardBrand.MASTERCARD,
    "amex": CardBrand.AMERICAN_EXPRESS,
    "discover": CardBrand.DISCOVER,
    "diners": CardBrand.DINERS_CLUB,
    "jcb": CardBrand.JCB,
    "unionpay": CardBrand.UNION_PAY,
    "maestro": CardBrand.MAESTRO,
}

# The charge tells brand, last four, refunds and until when it may be captured.
EXPAND_CHARGE = ["latest_charge"]


class StripeGateway:
    """See gateways/base.py for what each method promises."""

    name: ClassVar[str] = "stripe"

    def __init__(self) -> None:
        self.is_live = is_live_key(settings.STRIPE_SECRET_KEY)

    # --- Kept cards ------------------------------------------------------------------------------

    def store_card(self, card: Card, *, customer: str) -> str:
        api = create_client(is_live=self.is_live)
        try:
            method = create_payment_method(api, card)
            owner = self._get_customer(api, customer)
            try:
                attach_payment_method(api, method, owner)
            except StripeRequestRefused as error:
                if error.param != "customer":
                    raise
                # Somebody deleted the customer at Stripe.
                StripeCustomer.objects.filter(reference=owner).delete()
                owner = self._get_customer(api, customer)
                attach_payment_method(api, method, owner)
        except StripeRequestRefused as error:
            logger.error("Stripe keeps no card: %s", error)
            unavailable = GatewayUnavailable()
        else:
            return f"{owner}/{method}"
        raise unavailable

    def _get_customer(self, api: stripe.StripeClient, account: str) -> str:
        """The Customer of an account, made at its first card."""
        known = StripeCustomer.objects.filter(account=account, is_live=self.is_live).first()
        if known:
            return known.reference
        made = call_stripe(
            lambda: api.v1.customers.create(
                {"description": f"Account {account}", "metadata": {ACCOUNT_METADATA: account}}
            )
        )
        # Of two that were made at once one stays empty, which harms nobody.
        row, _ = StripeCustomer.objects.get_or_create(
            account=account, is_live=self.is_live, defaults={"reference": made.id}
        )
        return row.reference

    def delete_card(self, reference: str) -> None:
        api = create_client(is_live=self.is_live)
        _, method = split_reference(reference)
        # Refused: it is not there, not kept any more, or of the other mode.
        with suppress(StripeRequestRefused):
            call_stripe(lambda: api.v1.payment_methods.detach(method))

    def check_card(self, source: Card | str) -> None:
        """Cards that were supplied are judged by Stripe's test mode, which knows test cards only.

        Test mode does not know what the live one keeps: there a kept card is only looked up.
        """
        try:
            if isinstance(source, str) and self.is_live:
                self._require_stored(source)
            else:
                self._authorize_in_test_mode(source)
        except StripeRequestRefused as error:
            logger.error("Stripe judges no card: %s", error)
            unavailable = GatewayUnavailable()
        else:
            return
        raise unavailable

    def _require_stored(self, reference: str) -> None:
        if not is_stored(create_client(is_live=True), reference):
            raise CardDeclined(declines.UNKNOWN_CARD)

    def _authorize_in_test_mode(self, source: Card | str) -> None:
        api = create_client(is_live=False)
        owner, method = ("", "")
        if isinstance(source, str):
            owner, method = split_reference(source)
        else:
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
        if owner:
            params |= {"customer": owner, "off_session": True}
        try:
            intent = call_stripe(lambda: api.v1.payment_intents.create(params))
        except StripeRequestRefused:
            if isinstance(source, str) and not is_stored(api, source):
                raise CardDeclined(declines.UNKNOWN_CARD) from None
            raise
        # What it reserved in test mode is nobody's money, and would go by itself.
        with suppress(StripeRequestRefused, GatewayUnavailable):
            cancel_intent(api, intent.id, VOIDED_REASON)
        if intent.status != "requires_capture":
            raise CardDeclined(declines.REQUIRES_ACTION)

    # --- Payments --------------------------------------------------------------------------------

    def authorize(
        self, *, key: UUID, amount: Decimal, currency: str, source: Card | str, description: str
    ) -> GatewayPayment:
        require_no_open_transaction()
        units = to_minor_units(amount, currency)
        api = create_client(is_live=self.is_live)
        try:
            return self._authorize(api, key, units, currency, source, description)
        except CardDeclined as error:
            return make_declined_payment(source, amount, error.message)
        except StripeRequestRefused as error:
            if isinstance(source, str) and not is_stored(api, source):
                return make_declined_payment(source, amount, declines.UNKNOWN_CARD)
            if error.code in {"amount_too_small", "amount_too_large"}:
                return make_declined_payment(source, amount, declines.AMOUNT_OUT_OF_BOUNDS)
            logger.error("Stripe reserves no money: %s", error)
        # Nothing was reserved, and now nothing can be: better told at once than left in doubt.
        return self.void(key)

    def _authorize(
        self,
        api: stripe.StripeClient,
        key: UUID,
        units: int,
        currency: str,
        source: Card | str,
        description: str,
    ) -> GatewayPayment:
        """Create and confirm. Whatever it raises but GatewayUnavailable, no money is reserved."""
        owner = split_reference(source)[0] if isinstance(source, str) else ""
        row = StripePayment.objects.filter(key=key).first()
        # The card first: what Stripe finds wrong with it leaves nothing behind.
        method = "" if row else create_payment_method(api, source)
        if row is None:
            row, intent = self._create(api, key, units, currency, owner, description)
        elif row.intent:
            intent = retrieve_intent(api, row.intent)
        if not row.intent:
            return FENCED
        if (intent.amount, intent.currency.upper()) != (units, currency.upper()):
            raise GatewayRefused(f"The key {key} was used for another amount.")
        if not is_unused(intent):
            return to_gateway_payment(api, intent, source=source)
        try:
            intent = confirm_intent(
                api, intent.id, key, method or create_payment_method(api, source), owner
            )
        except (CardDeclined, StripeRequestRefused):
            # Declined; or somebody was quicker: voided it, or confirmed it with another card.
            intent = retrieve_intent(api, row.intent)
            if is_unused(intent):
                raise
        return to_gateway_payment(api, intent, source=source)

    def _create(
        self,
        api: stripe.StripeClient,
        key: UUID,
        units: int,
        currency: str,
        owner: str,
        description: str,
    ) -> tuple[StripePayment, stripe.PaymentIntent]:
        """Make the intent and write it down; the row that comes back may be a rival's fence."""
        params: PaymentIntentCreateParams = {
            "amount": units,
            "currency": currency.lower(),
            "capture_method": "manual",
            "allowed_payment_method_types": ["card"],
            "description": description[:255],
            "metadata": {PAYMENT_KEY_METADATA: str(key)},
        }
        if owner:
            params["customer"] = owner
        intent = call_stripe(
            lambda: api.v1.payment_intents.create(
                params, {"idempotency_key": f"roombook-{key.hex}-create"}
            )
        )
        if intent.livemode != self.is_live:
            raise GatewayRefused("Stripe's mode is not the one that our key says.")
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
            return FENCED
        api = create_client(is_live=row.is_live)
        intent = retrieve_intent(api, row.intent)
        # Created and never confirmed: of a payment Stripe has heard nothing.
        return None if is_unused(intent) else to_gateway_payment(api, intent)

    def void(self, key: UUID) -> GatewayPayment:
        require_no_open_transaction()
        row, _ = StripePayment.objects.get_or_create(key=key, defaults={"is_live": self.is_live})
        if not row.intent:
            return FENCED
        api = create_client(is_live=row.is_live)
        intent = retrieve_intent(api, row.intent)
        if intent.status == "requires_capture" or is_unused(intent):
            try:
                intent = cancel_intent(api, intent.id, VOIDED_REASON)
            except StripeRequestRefused:
                # Captured or cancelled in the meantime.
                intent = retrieve_intent(api, row.intent)
        return to_gateway_payment(api, intent)

    def capture(self, key: UUID) -> GatewayPayment:
        row = get_payment_row(key)
        if not row.intent:
            return FENCED
        api = create_client(is_live=row.is_live)
        try:
            intent = call_stripe(
                lambda: api.v1.payment_intents.capture(row.intent, {"expand": EXPAND_CHARGE})
            )
        except (StripeRequestRefused, CardDeclined) as error:
            # Captured already, voided, lapsed: the intent says which.
            payment = to_gateway_payment(api, retrieve_intent(api, row.intent))
            if payment.state == "authorized":
                raise GatewayRefused(f"{key} cannot be captured: {error}") from None
            if payment.state == "declined":
                # What had been reserved is gone.
                return replace(payment, state="voided")
            return payment
        return to_gateway_payment(api, intent)

    def refund(self, *, key: UUID, refund_key: UUID, amount: Decimal) -> GatewayPayment:
        row = get_payment_row(key)
        if not row.intent:
            raise GatewayRefused("A payment that is voided cannot be refunded.")
        api = create_client(is_live=row.is_live)
        # Looked for first: an idempotency key is forgotten after a day, a refund in doubt is not.
        known = next((r for r in list_refunds(api, row.intent) if r.key == refund_key), None)
        if known is not None and known.amount != amount:
            raise GatewayRefused(f"The key {refund_key} was used for another amount.")
        if known is not None and known.failed:
            raise GatewayRefused(f"The bank sent the refund {known.reference} back.")
        intent = retrieve_intent(api, row.intent)
        if known is None:
            self._refund(api, intent, key, refund_key, amount)
            intent = retrieve_intent(api, row.intent)
        return to_gateway_payment(api, intent)

    def _refund(
        self,
        api: stripe.StripeClient,
        intent: stripe.PaymentIntent,
        key: UUID,
        refund_key: UUID,
        amount: Decimal,
    ) -> None:
        if intent.status != "succeeded":
            raise GatewayRefused(f"A payment that is {intent.status} cannot be refunded.")
        units = to_minor_units(amount, intent.currency)
        if units <= 0:
            raise GatewayRefused("Nothing cannot be refunded.")
        call_stripe(
            lambda: api.v1.refunds.create(
                {
                    "payment_intent": intent.id,
                    "amount": units,
                    "metadata": {
                        PAYMENT_KEY_METADATA: str(key),
                        REFUND_KEY_METADATA: str(refund_key),
                    },
                },
                {"idempotency_key": f"roombook-{refund_key.hex}-refund"},
            )
        )

    # --- What happened without us ----------------------------------------------------------------

    def refunds(self, key: UUID) -> list[GatewayRefund]:
        """Every refund of a payment, whoever made it."""
        row = get_payment_row(key)
        if not row.intent:
            return []
        api = create_client(is_live=row.is_live)
        return list(list_refunds(api, row.intent))

    def dispute(self, reference: str, *, is_live: bool) -> GatewayDispute:
        """A dispute as it now is: messages about it may come late and out of order."""
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
        )


# The answer of a key that was fenced off before anybody used it.
FENCED = GatewayPayment(state="voided", reference="", amount=Decimal(0))


# --- Stripe's calls ------------------------------------------------------------------------------


def create_payment_method(api: stripe.StripeClient, card: Card | str) -> str:
    """A PaymentMethod made of a card: the one place where its number is sent."""
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


STRIPE_ADDRESS_NAMES = {
    "street1": "line1",
    "street2": "line2",
    "city": "city",
    "state": "state",
    "postal_code": "postal_code",
    "country": "country",
}


def to_stripe_address(address: Mapping[str, Any]) -> dict[str, str]:
    """An address in Stripe's words, where it takes a country by its two letters only."""
    told = {theirs: address.get(ours) or "" for ours, theirs in STRIPE_ADDRESS_NAMES.items()}
    country = told["country"].upper()
    told["country"] = country if len(country) == 2 and country.isascii() else ""
    return {name: value for name, value in told.items() if value}


def attach_payment_method(api: stripe.StripeClient, method: str, owner: str) -> None:
    call_stripe(lambda: api.v1.payment_methods.attach(method, {"customer": owner}))


def is_stored(api: stripe.StripeClient, reference: str) -> bool:
    """Whether Stripe still has a kept card: a detached one exists, and belongs to nobody."""
    owner, method = split_reference(reference)
    try:
        return call_stripe(lambda: api.v1.payment_methods.retrieve(method)).customer == owner
    except StripeRequestRefused:
        return False


def retrieve_intent(api: stripe.StripeClient, intent: str) -> stripe.PaymentIntent:
    return call_stripe(lambda: api.v1.payment_intents.retrieve(intent, {"expand": EXPAND_CHARGE}))


def confirm_intent(
    api: stripe.StripeClient, intent: str, key: UUID, method: str, owner: str
) -> stripe.PaymentIntent:
    """Reserve the money. Always by the same idempotency key, so that a card is tried once only."""
    params: PaymentIntentConfirmParams = {"payment_method": method, "expand": EXPAND_CHARGE}
    if owner:
        params["off_session"] = True
    return call_stripe(
        lambda: api.v1.payment_intents.confirm(
            intent, params, {"idempotency_key": f"roombook-{key.hex}-confirm"}
        )
    )


def cancel_intent(api: stripe.StripeClient, intent: str, why: str) -> stripe.PaymentIntent:
    return call_stripe(
        lambda: api.v1.payment_intents.cancel(
            intent, {"cancellation_reason": why, "expand": EXPAND_CHARGE}
        )
    )


def list_refunds(api: stripe.StripeClient, intent: str) -> Iterator[GatewayRefund]:
    page = call_stripe(lambda: api.v1.refunds.list({"payment_intent": intent, "limit": 100}))
    for refund in page.data:
        metadata = refund.metadata.to_dict() if refund.metadata else {}
        yield GatewayRefund(
            reference=refund.id,
            amount=from_minor_units(refund.amount, refund.currency),
            key=parse_uuid(metadata.get(REFUND_KEY_METADATA)),
            failed=refund.status in {"failed", "canceled"},
        )


# --- What Stripe's answers mean ------------------------------------------------------------------


def is_unused(intent: stripe.PaymentIntent) -> bool:
    """Whether no card was tried yet."""
    return (
        intent.status in {"requires_payment_method", "requires_confirmation"}
        and intent.last_payment_error is None
    )


STATES_BY_STATUS: dict[str, GatewayState] = {
    "requires_payment_method": "declined",
    "requires_confirmation": "declined",
    "requires_capture": "authorized",
    "succeeded": "captured",
    "canceled": "voided",
}


def to_gateway_payment(
    api: stripe.StripeClient, intent: stripe.PaymentIntent, *, source: Card | str = ""
) -> GatewayPayment:
    """An intent in the words of the port. Raises GatewayUnavailable while it is undecided."""
    if intent.status == "requires_action":
        # Nobody is there to act: without this it would wait for it.
        try:
            intent = cancel_intent(api, intent.id, ACTION_REQUIRED_REASON)
        except StripeRequestRefused:
            intent = retrieve_intent(api, intent.id)
    if intent.status not in STATES_BY_STATUS:
        logger.warning("The intent %s is %s.", intent.id, intent.status)
        raise GatewayUnavailable
    state, message = STATES_BY_STATUS[intent.status], ""
    if state == "declined":
        error = intent.last_payment_error
        message = get_decline_message(
            get_optional(error, "code"), get_optional(error, "decline_code")
        )
    charge = intent.latest_charge if isinstance(intent.latest_charge, stripe.Charge) else None
    if (
        state == "voided"
        and charge is None
        and intent.cancellation_reason == ACTION_REQUIRED_REASON
    ):
        state, message = "declined", declines.REQUIRES_ACTION
    refunded = charge.amount_refunded if charge and state == "captured" else 0
    if refunded and refunded == intent.amount:
        state = "refunded"
    brand, last4 = get_card_details(intent, charge, source)
    return GatewayPayment(
        state=state,
        reference=intent.id,
        amount=from_minor_units(intent.amount, intent.currency),
        captured=from_minor_units(intent.amount_received, intent.currency),
        refunded=from_minor_units(refunded, intent.currency),
        refunds={r.key: r.amount for r in list_refunds(api, intent.id) if r.key and not r.failed}
        if refunded
        else {},
        brand=brand,
        last4=last4,
        message=message,
        authorized_until=get_capture_deadline(charge) if state == "authorized" else None,
    )


def make_declined_payment(source: Card | str, amount: Decimal, message: str) -> GatewayPayment:
    """A card that was refused before there was an intent to tell of it."""
    brand, last4 = (source.brand, source.last4) if isinstance(source, Card) else ("", "")
    return GatewayPayment("declined", "", amount, brand=brand, last4=last4, message=message)


def get_card_details(
    intent: stripe.PaymentIntent, charge: stripe.Charge | None, source: Card | str
) -> tuple[str, str]:
    """Brand and last four of the card that was charged or tried."""
    tried = get_optional(intent.last_payment_error, "payment_method")
    details = get_optional(get_optional(charge, "payment_method_details"), "card") or get_optional(
        tried, "card"
    )
    if details is None:
        return (source.brand, source.last4) if isinstance(source, Card) else ("", "")
    return CARD_BRANDS.get(get_optional(details, "brand"), "Card"), get_optional(
        details, "last4"
    ) or ""


def get_capture_deadline(charge: stripe.Charge | None) -> datetime | None:
    details = get_optional(get_optional(charge, "payment_method_details"), "card")
    seconds = get_optional(details, "capture_before")
    return from_timestamp(seconds) if seconds else None


def get_optional(thing: Any, name: str) -> Any:
    """What Stripe said of a thing; what does not apply it leaves out, and the SDK then raises."""
    return getattr(thing, name, None)


def from_timestamp(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def split_reference(reference: str) -> tuple[str, str]:
    """A kept card's reference: its customer and its payment method."""
    owner, _, method = reference.partition("/")
    return owner, method or "pm_none"


def get_payment_row(key: UUID) -> StripePayment:
    require_no_open_transaction()
    row = StripePayment.objects.filter(key=key).first()
    if row is None:
        raise GatewayRefused(f"There is no payment by the key {key}.")
    return row


def parse_uuid(text: str | None) -> UUID | None:
    with suppress(ValueError):
        return UUID(text) if text else None
    return None


# --- Messages ------------------------------------------------------------------------------------


class InvalidSignature(Exception):
    """A message that Stripe did not sign, or signed long ago."""


@dataclass(frozen=True, slots=True)
class StripeEvent:
    """What Stripe tells of its own accord: that something happened to one of its objects."""

    reference: str
    type: str
    is_live: bool
    object: str
    intent: str
    key: UUID | None


def parse_event(payload: bytes, signature: str | None) -> StripeEvent:
    """A message of Stripe's, if it is one. Raises Forged."""
    try:
        stripe.WebhookSignature.verify_header(
            payload, signature, settings.STRIPE_WEBHOOK_SECRET, stripe.Webhook.DEFAULT_TOLERANCE
        )
        event = json.loads(payload)
        about = event["data"]["object"]
        is_intent = about["object"] == "payment_intent"
        return StripeEvent(
            reference=str(event["id"]),
            type=str(event["type"]),
            is_live=bool(event["livemode"]),
            object=str(about.get("id") or ""),
            intent=str((about["id"] if is_intent else about.get("payment_intent")) or ""),
            key=parse_uuid((about.get("metadata") or {}).get(PAYMENT_KEY_METADATA))
            if is_intent
            else None,
        )
    except (stripe.SignatureVerificationError, ValueError, LookupError, TypeError, AttributeError):
        # Its own error holds the whole message.
        raise InvalidSignature from None


def find_key(intent: str) -> UUID | None:
    """Our key of an intent; None where it is not ours."""
    row = StripePayment.objects.filter(~Q(intent=""), intent=intent).first()
    return row.key if row else None
