"""The requests that Stripe knows, and the checks of their parameters."""

import re
from typing import Any

from stripe import params as known
from stripe.params import checkout

from tests.stripe_server.errors import StripeApiError

METHOD = r"/v1/payment_methods/(\w+)"
INTENT = r"/v1/payment_intents/(\w+)"
SETUP = r"/v1/setup_intents/(\w+)"
SESSION = r"/v1/checkout/sessions/(\w+)"
# The last column: the parameters that the SDK's API version knows.
ROUTES = [
    ("POST", "/v1/payment_methods", "create_payment_method", known.PaymentMethodCreateParams),
    ("GET", METHOD, "retrieve", known.PaymentMethodRetrieveParams),
    ("POST", rf"{METHOD}/attach", "attach", known.PaymentMethodAttachParams),
    ("POST", rf"{METHOD}/detach", "detach", known.PaymentMethodDetachParams),
    ("POST", "/v1/customers", "create_customer", known.CustomerCreateParams),
    ("DELETE", r"/v1/customers/(\w+)", "delete_customer", known.CustomerDeleteParams),
    ("POST", "/v1/payment_intents", "create_intent", known.PaymentIntentCreateParams),
    ("GET", "/v1/payment_intents", "list_intents", known.PaymentIntentListParams),
    ("GET", INTENT, "retrieve", known.PaymentIntentRetrieveParams),
    ("POST", rf"{INTENT}/confirm", "confirm", known.PaymentIntentConfirmParams),
    ("POST", rf"{INTENT}/capture", "capture", known.PaymentIntentCaptureParams),
    ("POST", rf"{INTENT}/cancel", "cancel", known.PaymentIntentCancelParams),
    ("POST", "/v1/refunds", "create_refund", known.RefundCreateParams),
    ("GET", "/v1/refunds", "list_refunds", known.RefundListParams),
    ("POST", "/v1/setup_intents", "create_setup_intent", known.SetupIntentCreateParams),
    ("GET", SETUP, "retrieve", known.SetupIntentRetrieveParams),
    ("POST", rf"{SETUP}/cancel", "cancel_setup_intent", known.SetupIntentCancelParams),
    ("POST", "/v1/checkout/sessions", "create_session", checkout.SessionCreateParams),
    ("GET", SESSION, "retrieve", checkout.SessionRetrieveParams),
    ("POST", rf"{SESSION}/expire", "expire_session", checkout.SessionExpireParams),
    ("GET", r"/v1/disputes/(\w+)", "retrieve", known.DisputeRetrieveParams),
]


def check_parameters(params: dict[str, Any], allowed: Any) -> None:
    for name in params:
        if name == "payment_method_types":
            message = "payment_method_types is no longer supported"
            raise StripeApiError(400, message, code="payment_method_types_no_longer_supported")
        if name not in allowed.__annotations__:
            message = f"Received unknown parameter: {name}"
            raise StripeApiError(400, message, code="parameter_unknown", param=name)


def parse_int(params: dict[str, Any], name: str) -> int:
    if not re.fullmatch(r"-?\d+", str(params.get(name, ""))):
        message = f"Invalid integer: {name}"
        raise StripeApiError(400, message, code="parameter_invalid_integer", param=name)
    return int(params[name])
