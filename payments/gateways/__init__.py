"""The payment gateways, by name."""

from django.conf import settings
from django.utils.module_loading import import_string

from payments.gateways.base import Gateway

# Imported only when used: the Stripe gateway loads Stripe's SDK.
GATEWAY_CLASSES = {
    "sandbox": "payments.gateways.sandbox.SandboxGateway",
    "stripe": "payments.gateways.stripe.gateway.StripeGateway",
}


def get_current_gateway() -> Gateway:
    """The gateway of new payments: the setting PAYMENT_GATEWAY."""
    return get_gateway(settings.PAYMENT_GATEWAY)


def get_gateway(name: str) -> Gateway:
    """The gateway of an existing payment or saved card, whatever the setting says now."""
    gateway: Gateway = import_string(GATEWAY_CLASSES[name])()
    return gateway
