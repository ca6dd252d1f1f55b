"""The payment gateways, by name."""

from django.conf import settings
from django.utils.module_loading import import_string

from payments.gateways.base import Gateway, GatewayRefused
from payments.gateways.manual import MANUAL_GATEWAYS

# Imported only when used: the Stripe gateway loads Stripe's SDK.
GATEWAY_CLASSES = {
    "sandbox": "payments.gateways.sandbox.SandboxGateway",
    "stripe": "payments.gateways.stripe.gateway.StripeGateway",
}
GATEWAY_LABELS = {name: name.capitalize() for name in GATEWAY_CLASSES} | {
    name: gateway.label for name, gateway in MANUAL_GATEWAYS.items()
}


def get_current_gateway() -> Gateway:
    """The gateway of new payments: the setting PAYMENT_GATEWAY."""
    return get_gateway(settings.PAYMENT_GATEWAY)


def get_gateway(name: str) -> Gateway:
    """The gateway of an existing payment or saved card, whatever the setting says now.

    Raises GatewayRefused for a payment that staff took without a gateway (B26).
    """
    if name in MANUAL_GATEWAYS:
        raise GatewayRefused("Staff took this payment without a gateway, and refund it manually.")
    gateway: Gateway = import_string(GATEWAY_CLASSES[name])()
    return gateway
