"""PaymentIntents: the calls on them, and what their status means to us."""

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import stripe
from django.conf import settings
from django.db.models import Q

from payments.cards import Card, CardBrand
from payments.gateways import declines
from payments.gateways.base import (
    GatewayAction,
    GatewayFees,
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
)
from payments.gateways.stripe_models import StripePayment
from roombook import money

if TYPE_CHECKING:
    from stripe.params import (
        PaymentIntentConfirmParams,
        PaymentIntentListParams,
        PaymentIntentRetrieveParams,
        RefundListParams,
    )

# --- Which PaymentIntent belongs to which of our keys --------------------------------------------


def get_payment_row(key: UUID) -> StripePayment:
    """The stored row of a key. Raises GatewayRefused if the key is unknown."""
    require_no_open_transaction()
    row = StripePayment.objects.filter(key=key).first()
    if row is None:
        raise GatewayRefused(f"There is no payment with the key {key}.")
    return row


def find_key(intent: str) -> UUID | None:
    """The key of the payment that the intent belongs to, None if it is not ours."""
    row = StripePayment.objects.filter(~Q(intent=""), intent=intent).first()
    return row.key if row else None


def store_intent(key: UUID, intent: str, *, is_live: bool) -> None:
    """Store the id of an intent that a restored backup lacks. The intent has been confirmed."""
    row, _ = StripePayment.objects.get_or_create(
        key=key, defaults={"intent": intent, "is_live": is_live}
    )
    # The key was voided because we did not know the intent. That did not void the intent.
    if not row.intent:
        StripePayment.objects.filter(pk=row.pk).update(intent=intent, is_live=is_live)


# --- PaymentIntents ------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

# The metadata of intents and refunds, for people who look at them in Stripe's dashboard.
PAYMENT_KEY_METADATA = "roombook_key"
REFUND_KEY_METADATA = "roombook_refund"
# Which deployment made the payment: several can use one account.
SITE_METADATA = "roombook_site"

# Where the bank's page leads to after the customer has confirmed a payment or refused it.
RETURN_PATH = "/payments/return"

# Set if the customer was present. Only our secret key can write metadata.
ON_SESSION_METADATA = "roombook_on_session"

# The reason tells an intent that we voided from one whose card required an action.
VOIDED_REASON = "requested_by_customer"
ACTION_REQUIRED_REASON = "abandoned"

# The charge holds the card's brand and last four digits, refunds, and the capture deadline.
EXPAND_CHARGE = ["latest_charge"]

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

STATES_BY_STATUS: dict[str, GatewayState] = {
    "requires_payment_method": "declined",
    "requires_confirmation": "declined",
    "requires_action": "action_required",
    "requires_capture": "authorized",
    "succeeded": "captured",
    "canceled": "voided",
}


def retrieve_intent(api: stripe.StripeClient, intent: str) -> stripe.PaymentIntent:
    return call_stripe(lambda: api.v1.payment_intents.retrieve(intent, {"expand": EXPAND_CHARGE}))


def confirm_intent(
    api: stripe.StripeClient,
    intent: stripe.PaymentIntent,
    key: UUID,
    method: str,
) -> stripe.PaymentIntent:
    """Authorize the amount. One idempotency key per payment, so that a card is tried only once."""
    params: PaymentIntentConfirmParams = {"payment_method": method, "expand": EXPAND_CHARGE}
    if is_on_session(intent):
        if settings.PUBLIC_URL:
            # With it, Stripe answers with the address of the bank's page.
            params["return_url"] = f"{settings.PUBLIC_URL}{RETURN_PATH}"
    elif intent.customer:
        params["off_session"] = True
    return call_stripe(
        lambda: api.v1.payment_intents.confirm(
            intent.id, params, {"idempotency_key": f"roombook-{key.hex}-confirm"}
        )
    )


def is_on_session(intent: stripe.PaymentIntent) -> bool:
    """Whether the customer was present, and so can confirm the payment at the bank."""
    return ON_SESSION_METADATA in intent.metadata.to_dict()


def cancel_intent(api: stripe.StripeClient, intent: str, reason: str) -> stripe.PaymentIntent:
    return call_stripe(
        lambda: api.v1.payment_intents.cancel(
            intent, {"cancellation_reason": reason, "expand": EXPAND_CHARGE}
        )
    )


def list_refunds(api: stripe.StripeClient, intent: str) -> list[GatewayRefund]:
    page = call_stripe(lambda: api.v1.refunds.list({"payment_intent": intent, "limit": 100}))
    return [to_gateway_refund(refund) for refund in page.data]


def to_gateway_refund(refund: stripe.Refund) -> GatewayRefund:
    metadata = refund.metadata.to_dict() if refund.metadata else {}
    return GatewayRefund(
        reference=refund.id,
        amount=from_minor_units(refund.amount, refund.currency),
        key=parse_uuid(metadata.get(REFUND_KEY_METADATA)),
        failed=refund.status in {"failed", "canceled"},
    )


def list_relevant_intents(
    *, is_live: bool, since: datetime
) -> Iterator[tuple[UUID, stripe.PaymentIntent]]:
    """The intents with our keys whose amount was authorized, or whose customer may confirm that."""
    params: PaymentIntentListParams = {
        "created": {"gte": int(since.timestamp())},
        "limit": 100,
        "expand": [f"data.{name}" for name in EXPAND_CHARGE],
    }
    for intent in _iterate(params, lambda api: api.v1.payment_intents.list, is_live=is_live):
        key = get_own_key(intent.metadata.to_dict(), PAYMENT_KEY_METADATA)
        if key and (intent.status in {"requires_capture", "succeeded"} or is_waiting(intent)):
            yield key, intent


def list_recent_refunds(*, is_live: bool, since: datetime) -> Iterator[tuple[str, GatewayRefund]]:
    """The refunds that were created `since`, with the ids of their intents."""
    params: RefundListParams = {"created": {"gte": int(since.timestamp())}, "limit": 100}
    for refund in _iterate(params, lambda api: api.v1.refunds.list, is_live=is_live):
        yield str(refund.payment_intent or ""), to_gateway_refund(refund)


def _iterate(
    params: Any, get_list: Callable[[stripe.StripeClient], Callable[[Any], Any]], *, is_live: bool
) -> Iterator[Any]:
    """Yield the objects of all pages of a list."""
    while True:
        # A client for each page, because its time limit counts for all its requests.
        list_page = get_list(create_client(is_live=is_live))
        page = call_stripe(functools.partial(list_page, params))
        yield from page.data
        if not page.has_more:
            return
        params["starting_after"] = page.data[-1].id


def is_unused(intent: stripe.PaymentIntent) -> bool:
    """Whether no card was tried yet."""
    return (
        intent.status in {"requires_payment_method", "requires_confirmation"}
        and intent.last_payment_error is None
    )


def is_voidable(intent: stripe.PaymentIntent) -> bool:
    """Whether the intent holds money, or could still do so."""
    return intent.status == "requires_capture" or is_waiting(intent) or is_unused(intent)


def is_waiting(intent: stripe.PaymentIntent) -> bool:
    """Whether the customer can confirm the payment at the bank."""
    return intent.status == "requires_action" and is_on_session(intent)


def to_gateway_payment(
    api: stripe.StripeClient, intent: stripe.PaymentIntent, *, source: Card | str = ""
) -> GatewayPayment:
    """Translate an intent. Raises GatewayUnavailable while its outcome is open."""
    error = intent.last_payment_error
    if _must_be_ended(intent):
        try:
            intent = cancel_intent(api, intent.id, ACTION_REQUIRED_REASON)
        except StripeRequestRefused:
            intent = retrieve_intent(api, intent.id)
    is_unconfirmable = intent.status == "requires_action" and not is_waiting(intent)
    if intent.status not in STATES_BY_STATUS or is_unconfirmable:
        logger.warning("The intent %s is %s.", intent.id, intent.status)
        raise GatewayUnavailable
    state, message = STATES_BY_STATUS[intent.status], ""
    charge = intent.latest_charge if isinstance(intent.latest_charge, stripe.Charge) else None
    was_authorized = charge is not None and charge.status != "failed"
    required_action = intent.cancellation_reason == ACTION_REQUIRED_REASON
    if state == "voided" and required_action and not was_authorized:
        state, message = "declined", declines.REQUIRES_ACTION
    error = intent.last_payment_error or error
    if state == "declined" and (error is not None or not message):
        message = get_decline_message(
            get_optional(error, "code"), get_optional(error, "decline_code")
        )
    if message == declines.REQUIRES_ACTION and is_on_session(intent):
        message = declines.NOT_CONFIRMED
    refunded = charge.amount_refunded if charge and state == "captured" else 0
    if refunded and refunded == intent.amount:
        state = "refunded"
    brand, last4 = get_card_details(intent, charge, source)
    return GatewayPayment(
        state=state,
        reference=intent.id,
        amount=from_minor_units(intent.amount, intent.currency),
        refunded=from_minor_units(refunded, intent.currency),
        brand=brand,
        last4=last4,
        message=message,
        authorized_until=get_capture_deadline(charge) if state == "authorized" else None,
        currency=intent.currency.upper(),
        description=intent.description or "",
        created_at=from_timestamp(intent.created),
        action=get_action(intent),
    )


def _must_be_ended(intent: stripe.PaymentIntent) -> bool:
    """Whether the customer could still pay with an intent of which we regard the payment as over.

    Without a customer who is present, an intent would wait for one. An intent that was declined
    takes another card from anyone who has its client secret, and that was given to the customer.
    """
    if is_on_session(intent):
        return intent.status == "requires_payment_method" and not is_unused(intent)
    return intent.status == "requires_action"


def get_action(intent: stripe.PaymentIntent) -> GatewayAction | None:
    """What the customer has to do at the bank."""
    if intent.status != "requires_action":
        return None
    redirect = get_optional(intent.next_action, "redirect_to_url")
    return GatewayAction(
        client_secret=intent.client_secret or "", url=get_optional(redirect, "url") or ""
    )


def make_declined_payment(source: Card | str, amount: Decimal, message: str) -> GatewayPayment:
    """The answer for a card that was declined before an intent existed."""
    brand, last4 = (source.brand, source.last4) if isinstance(source, Card) else ("", "")
    return GatewayPayment("declined", "", amount, brand=brand, last4=last4, message=message)


def get_card_details(
    intent: stripe.PaymentIntent, charge: stripe.Charge | None, source: Card | str
) -> tuple[str, str]:
    """Brand and last four digits of the card that was charged or declined."""
    declined_method = get_optional(intent.last_payment_error, "payment_method")
    details = _get_charged_card(charge) or get_optional(declined_method, "card")
    if details is None:
        return (source.brand, source.last4) if isinstance(source, Card) else ("", "")
    brand = CARD_BRANDS.get(get_optional(details, "brand"), "Card")
    return brand, get_optional(details, "last4") or ""


def get_capture_deadline(charge: stripe.Charge | None) -> datetime | None:
    seconds = get_optional(_get_charged_card(charge), "capture_before")
    return from_timestamp(seconds) if seconds else None


def _get_charged_card(charge: stripe.Charge | None) -> Any:
    return get_optional(get_optional(charge, "payment_method_details"), "card")


def get_optional(resource: Any, name: str) -> Any:
    """A field of a Stripe object, None if Stripe left it out: the SDK raises then."""
    return getattr(resource, name, None)


def from_timestamp(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def build_metadata(name: str, key: UUID) -> dict[str, str]:
    """The metadata of an object at Stripe that we create for one of our keys."""
    site = {SITE_METADATA: settings.PUBLIC_URL} if settings.PUBLIC_URL else {}
    return {name: str(key), **site}


def get_own_key(metadata: Mapping[str, str], name: str) -> UUID | None:
    """The key that `build_metadata` has stored, None if another deployment made the object."""
    if metadata.get(SITE_METADATA, settings.PUBLIC_URL) != settings.PUBLIC_URL:
        return None
    return parse_uuid(metadata.get(name))


def parse_uuid(text: str | None) -> UUID | None:
    with suppress(ValueError):
        return UUID(text) if text else None
    return None


# --- What Stripe charges -------------------------------------------------------------------------

# Stripe creates the balance transaction of a charge at its capture or some time after it. Reading
# one needs a permission of its own if the key is restricted. Therefore no request that moves money
# asks for it.


def fetch_fees(api: stripe.StripeClient, intent_id: str) -> GatewayFees:
    """The fees of an intent's charge and of its refunds, as far as Stripe knows them."""
    of_charge: PaymentIntentRetrieveParams = {"expand": ["latest_charge.balance_transaction"]}
    intent = call_stripe(lambda: api.v1.payment_intents.retrieve(intent_id, of_charge))
    charge = intent.latest_charge
    if not isinstance(charge, stripe.Charge):
        return GatewayFees()
    fee = get_fee(charge.balance_transaction, charge.currency)
    if not charge.amount_refunded:
        return GatewayFees(fee)
    of_refunds: RefundListParams = {
        "payment_intent": intent_id,
        "limit": 100,
        "expand": ["data.balance_transaction"],
    }
    page = call_stripe(lambda: api.v1.refunds.list(of_refunds))
    refund_fees = [
        (to_gateway_refund(refund), get_fee(refund.balance_transaction, refund.currency))
        for refund in page.data
    ]
    return GatewayFees(fee, [(refund, each) for refund, each in refund_fees if each is not None])


def get_dispute_fee(dispute: stripe.Dispute) -> Decimal | None:
    """The fees of a dispute, less what Stripe returned of them; None if no money was withdrawn."""
    fees = [get_fee(each, dispute.currency) for each in dispute.balance_transactions]
    known = [fee for fee in fees if fee is not None]
    return sum(known, money.ZERO) if known else None


def get_fee(transaction: stripe.BalanceTransaction | str | None, currency: str) -> Decimal | None:
    """The fee of an expanded balance transaction, None if there is none yet.

    Stripe charges it in the currency of the account's balance. If that is another one than
    `currency`, the fee is converted by the exchange rate of the payment itself.
    """
    if not isinstance(transaction, stripe.BalanceTransaction):
        return None
    fee = from_minor_units(transaction.fee, transaction.currency)
    if transaction.currency != currency:
        if not transaction.exchange_rate:
            return None
        fee /= Decimal(str(transaction.exchange_rate))
    return money.round_amount(fee, currency.upper())
