"""Which gateway takes the money."""

from django.conf import settings
from django.utils.module_loading import import_string

from payments.gateways.base import Gateway

GATEWAY_CLASSES = {
    "sandbox": "payments.gateways.sandbox.SandboxGateway",
    # Imported, and its SDK with it, only where somebody asks for it.
    "stripe": "payments.gateways.stripe.gateway.StripeGateway",
}


def get_current_gateway() -> Gateway:
    """The gateway for new payments, by the setting PAYMENT_GATEWAY."""
    return get_gateway(settings.PAYMENT_GATEWAY)


def get_gateway(name: str) -> Gateway:
    """The gateway that took an earlier payment or keeps a card, whatever is the current one."""
    gateway: Gateway = import_string(GATEWAY_CLASSES[name])()
    return gateway
