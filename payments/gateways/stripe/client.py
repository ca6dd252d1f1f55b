"""Calls to Stripe: with which key, for how long at most, and what an error means to us.

Card numbers pass through here, and nothing of them comes back: the SDK's errors and their
tracebacks hold the request, so no such error leaves `call_stripe`, and the SDK's log is silenced.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

from django.conf import settings

from payments.gateways import declines
from payments.gateways.base import (
    GatewayRefused,
    GatewayUnavailable,
    require_no_open_transaction,
)
from roombook.checks import LIVE_KEY_PATTERN
from roombook.errors import CardDeclined

# If STRIPE_LOG is set, the SDK prints every request to stderr, card numbers included.
os.environ.pop("STRIPE_LOG", None)

import stripe
from requests import Session

# Below WARNING the SDK logs requests. roombook/settings.py sets the same level.
logging.getLogger("stripe").setLevel(logging.WARNING)
# Do not send Stripe how long our requests took.
stripe.enable_telemetry = False

R = TypeVar("R")

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 3
# The SDK's own retries of one request. They share the total time.
MAX_NETWORK_RETRIES = 1


class StripeRequestRefused(GatewayRefused):
    """Stripe will never do this. `code` and `param` say what is wrong."""

    def __init__(self, message: str, *, code: str, param: str) -> None:
        self.code = code
        self.param = param
        super().__init__(message)


# --- Calls ---------------------------------------------------------------------------------------


class TimeLimitedHttpClient(stripe.RequestsClient):
    """An HTTP client whose requests take GATEWAY_TIMEOUT seconds at most, all of them together."""

    def __init__(self) -> None:
        super().__init__(session=get_session())
        self.deadline = time.monotonic() + settings.GATEWAY_TIMEOUT

    def request(  # type: ignore[override]  # as its base class does
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        post_data: object = None,
    ) -> tuple[bytes, int, Mapping[str, str]]:
        seconds_left = self.deadline - time.monotonic()
        if seconds_left <= 0:
            raise stripe.APIConnectionError("No time is left.", should_retry=False)
        self._timeout = (min(CONNECT_SECONDS, seconds_left), seconds_left)
        try:
            return super().request(method, url, headers, post_data)
        except stripe.APIConnectionError as error:
            # The SDK waits before a retry. Without time for that, do not retry.
            error.should_retry = error.should_retry and time.monotonic() + 1 < self.deadline
            raise


thread_local = threading.local()


def get_session() -> Session:
    """The thread's HTTP session, whose connections are reused by later requests."""
    if not hasattr(thread_local, "session"):
        thread_local.session = Session()
    session: Session = thread_local.session
    return session


def is_live_key(key: str) -> bool:
    """Whether the key moves real money."""
    return bool(re.fullmatch(LIVE_KEY_PATTERN, key, re.ASCII))


def create_client(*, is_live: bool) -> stripe.StripeClient:
    """A client for one operation in live or in test mode.

    Its time limit starts now: all requests of the operation take GATEWAY_TIMEOUT seconds at most.
    """
    require_no_open_transaction()
    keys = (settings.STRIPE_SECRET_KEY, settings.STRIPE_TEST_SECRET_KEY)
    key = next((key for key in keys if key and is_live_key(key) == is_live), None)
    if key is None:
        logger.error("There is no %s key for Stripe.", "live" if is_live else "test")
        raise GatewayUnavailable
    return stripe.StripeClient(
        key,
        base_addresses={"api": settings.STRIPE_API_BASE} if settings.STRIPE_API_BASE else {},
        http_client=TimeLimitedHttpClient(),
        max_network_retries=MAX_NETWORK_RETRIES,
    )


def call_stripe(call: Callable[[], R]) -> R:
    """Run a call of the SDK and translate its errors.

    Raises CardDeclined, StripeRequestRefused, or GatewayUnavailable if the outcome is unknown.
    """
    try:
        return call()
    except stripe.StripeError as error:
        translated = translate_error(error)
    # Raised outside the except block, so that the SDK's error is not its context.
    raise translated


def translate_error(
    error: stripe.StripeError,
) -> CardDeclined | GatewayRefused | GatewayUnavailable:
    body = error.error.to_dict() if error.error else {}
    code, decline_code = str(body.get("code") or ""), str(body.get("decline_code") or "")
    # The HTTP status is not enough: Stripe also answers 402 for errors that concern no card.
    if body.get("type") == "card_error":
        return CardDeclined(get_decline_message(code, decline_code))
    summary = (
        f"{type(error).__name__} {error.http_status or ''} {code}"
        f" {mask_numbers(str(body.get('message') or ''))} ({error.request_id or 'no request'})"
    )
    if isinstance(error, stripe.AuthenticationError | stripe.PermissionError):
        # Nothing was done, and no outcome can be found until somebody corrects the key.
        logger.error("Stripe does not accept our key: %s", summary)
        return GatewayUnavailable()
    if isinstance(error, stripe.IdempotencyError):
        return StripeRequestRefused(summary, code="idempotency_error", param="")
    if isinstance(error, stripe.InvalidRequestError | stripe.CardError):
        return StripeRequestRefused(summary, code=code, param=str(body.get("param") or ""))
    # No response, rate limit (429), a parallel request with this key (409), or a server error.
    logger.warning("Stripe did not answer: %s", summary)
    return GatewayUnavailable()


def mask_numbers(text: str) -> str:
    """The text without any number. Stripe repeats no card number; if it did, none is logged."""
    return re.sub(r"\b\d[\d -]*\d\b", "#", text)


# --- Decline messages ----------------------------------------------------------------------------

# Stripe's decline codes and card error codes. All others (lost, stolen, fraudulent, ...) get the
# general message: the person who holds the card must not learn the reason.
DECLINE_MESSAGES_BY_CODE = {
    "insufficient_funds": declines.INSUFFICIENT_FUNDS,
    "expired_card": declines.EXPIRED,
    "incorrect_number": declines.WRONG_NUMBER,
    "invalid_number": declines.WRONG_NUMBER,
    "invalid_account": declines.WRONG_NUMBER,
    "incorrect_cvc": declines.WRONG_SECURITY_CODE,
    "invalid_cvc": declines.WRONG_SECURITY_CODE,
    "invalid_expiry_month": declines.WRONG_EXPIRY,
    "invalid_expiry_year": declines.WRONG_EXPIRY,
    "incorrect_zip": declines.WRONG_ADDRESS,
    "incorrect_address": declines.WRONG_ADDRESS,
    "card_not_supported": declines.NOT_SUPPORTED,
    "currency_not_supported": declines.NOT_SUPPORTED,
    "processing_error": declines.PROCESSING_ERROR,
    "issuer_not_available": declines.PROCESSING_ERROR,
    "reenter_transaction": declines.PROCESSING_ERROR,
    "try_again_later": declines.PROCESSING_ERROR,
    "card_velocity_exceeded": declines.OVER_LIMIT,
    "withdrawal_count_limit_exceeded": declines.OVER_LIMIT,
    "approve_with_id": declines.REQUIRES_ACTION,
    "authentication_not_handled": declines.REQUIRES_ACTION,
    "authentication_required": declines.REQUIRES_ACTION,
    "payment_intent_authentication_failure": declines.REQUIRES_ACTION,
    "live_mode_test_card": declines.IS_A_TEST_CARD,
    "test_mode_live_card": declines.NOT_A_TEST_CARD,
    "testmode_decline": declines.NOT_A_TEST_CARD,
}


def get_decline_message(code: str | None, decline_code: str | None) -> str:
    """The reason of a decline, in words for the customer."""
    messages = DECLINE_MESSAGES_BY_CODE
    return messages.get(decline_code or "") or messages.get(code or "") or declines.DECLINED


# --- Amounts -------------------------------------------------------------------------------------

# Stripe counts amounts in the currency's smallest unit, by its own list: ISK and UGX have no
# cents, and Stripe counts them in cents all the same.
ZERO_DECIMAL_CURRENCIES = frozenset(
    {
        *("BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF"),
        *("VND", "VUV", "XAF", "XOF", "XPF"),
    }
)
THREE_DECIMAL_CURRENCIES = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})


def get_decimal_places(currency: str) -> int:
    currency = currency.upper()
    if currency in ZERO_DECIMAL_CURRENCIES:
        return 0
    return 3 if currency in THREE_DECIMAL_CURRENCIES else 2


def to_minor_units(amount: Decimal, currency: str) -> int:
    """The amount in Stripe's smallest unit. Raises GatewayRefused if it is not a whole number."""
    units = amount.scaleb(get_decimal_places(currency))
    if units != units.to_integral_value():
        raise GatewayRefused(f"{amount} {currency} is not a whole number of the smallest unit.")
    return int(units)


def from_minor_units(units: int, currency: str) -> Decimal:
    return Decimal(units).scaleb(-get_decimal_places(currency))
