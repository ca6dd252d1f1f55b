"""PaymentMethods: cards as Stripe stores them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import stripe

from payments.cards import Card
from payments.gateways.stripe.client import StripeRequestRefused, call_stripe

if TYPE_CHECKING:
    from stripe.params import PaymentMethodCreateParams, PaymentMethodCreateParamsCard

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
