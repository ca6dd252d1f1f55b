"""Which gateway takes the money."""

from django.conf import settings
from django.utils.module_loading import import_string

from payments.gateways.base import Gateway

CLASSES = {
    "sandbox": "payments.gateways.sandbox.SandboxGateway",
    # Imported, and its SDK with it, only where somebody asks for it.
    "stripe": "payments.gateways.stripe.gateway.StripeGateway",
}


def current() -> Gateway:
    """The gateway for new payments, by the setting PAYMENT_GATEWAY."""
    return named(settings.PAYMENT_GATEWAY)


def named(name: str) -> Gateway:
    """The gateway that took an earlier payment or keeps a card, whatever is the current one."""
    gateway: Gateway = import_string(CLASSES[name])()
    return gateway
