"""How Stripe is asked: by which key, for how long at most, and what its errors mean to us.

Cards go through here, and nothing of them comes back: the SDK's own errors and their tracebacks
hold what was sent, so none of them leaves `ask`, and what it would log is cut off.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from django.conf import settings

from payments.gateways import declines
from payments.gateways.base import (
    GatewayRefused,
    GatewayUnavailable,
    require_no_open_transaction,
)
from roombook.errors import CardDeclined

# With it in the environment the SDK prints every request to stderr, cards and all.
os.environ.pop("STRIPE_LOG", None)

import stripe
from requests import Session

# At lower levels it logs the same; roombook/settings.py says so too.
logging.getLogger("stripe").setLevel(logging.WARNING)
# How long our requests took is nobody's business.
stripe.enable_telemetry = False

R = TypeVar("R")

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 3
# Repeats of one request by the SDK itself; they share the time of the whole.
MAX_NETWORK_RETRIES = 1

LIVE_KEY_PATTERN = re.compile(r"(sk|rk)_live_\w+", re.ASCII)


class StripeRequestRefused(GatewayRefused):
    """Stripe says that it will never do this; `code` and `param` say what is wrong."""

    def __init__(self, message: str, *, code: str, param: str) -> None:
        self.code = code
        self.param = param
        super().__init__(message)


# --- Asking --------------------------------------------------------------------------------------


class TimeLimitedHttpClient(stripe.RequestsClient):
    """Requests that end in time: all of them together have GATEWAY_TIMEOUT seconds."""

    def __init__(self) -> None:
        super().__init__(session=get_session())
        self.ends = time.monotonic() + settings.GATEWAY_TIMEOUT

    def request(  # type: ignore[override]  # as its own base's does, which mypy excuses there
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        post_data: Any = None,
    ) -> tuple[bytes, int, Mapping[str, str]]:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise stripe.APIConnectionError("No time is left.", should_retry=False)
        self._timeout = (min(CONNECT_SECONDS, left), left)
        try:
            return super().request(method, url, headers, post_data)
        except stripe.APIConnectionError as error:
            # The SDK waits a little before it repeats a request: only where that makes sense.
            error.should_retry = error.should_retry and time.monotonic() + 1 < self.ends
            raise


thread_local = threading.local()


def get_session() -> Session:
    """The thread's own connections, kept from one request to the next."""
    if not hasattr(thread_local, "session"):
        thread_local.session = Session()
    kept: Session = thread_local.session
    return kept


def is_live_key(key: str) -> bool:
    """Whether real money moves by it: the key itself says so."""
    return bool(LIVE_KEY_PATTERN.fullmatch(key))


def create_client(*, is_live: bool) -> stripe.StripeClient:
    """A client for one thing to be done, among Stripe's real objects or its test ones.

    Its time begins now, so that whoever waits for it never waits longer than GATEWAY_TIMEOUT.
    """
    require_no_open_transaction()
    keys = (settings.STRIPE_SECRET_KEY, settings.STRIPE_TEST_SECRET_KEY)
    key = next((key for key in keys if key and is_live_key(key) == is_live), None)
    if key is None:
        logger.error("There is no %s key of Stripe's.", "live" if is_live else "test")
        raise GatewayUnavailable
    return stripe.StripeClient(
        key,
        base_addresses={"api": settings.STRIPE_API_BASE} if settings.STRIPE_API_BASE else {},
        http_client=TimeLimitedHttpClient(),
        max_network_retries=MAX_NETWORK_RETRIES,
    )


def call_stripe(call: Callable[[], R]) -> R:
    """Let the SDK do something. Raises CardDeclined, Refused or GatewayUnavailable (unknown)."""
    try:
        return call()
    except stripe.StripeError as error:
        meaning = translate_error(error)
    # Out here, so that the SDK's error does not hang on ours as its context.
    raise meaning


def translate_error(
    error: stripe.StripeError,
) -> CardDeclined | GatewayRefused | GatewayUnavailable:
    body = error.error.to_dict() if error.error else {}
    code, decline_code = str(body.get("code") or ""), str(body.get("decline_code") or "")
    # The status alone says nothing: 402 also stands for what has nothing to do with a card.
    if body.get("type") == "card_error":
        return CardDeclined(get_decline_message(code, decline_code))
    told = (
        f"{type(error).__name__} {error.http_status or ''} {code}"
        f" {mask_numbers(str(body.get('message') or ''))} ({error.request_id or 'no request'})"
    )
    if isinstance(error, stripe.AuthenticationError | stripe.PermissionError):
        # Nothing was done, and nothing can be found out either until somebody mends the key.
        logger.error("Stripe does not accept our key: %s", told)
        return GatewayUnavailable()
    if isinstance(error, stripe.IdempotencyError):
        return StripeRequestRefused(told, code="idempotency_error", param="")
    if isinstance(error, stripe.InvalidRequestError | stripe.CardError):
        return StripeRequestRefused(told, code=code, param=str(body.get("param") or ""))
    # No answer, too many requests (429), another one at work on the same (409), trouble there.
    logger.warning("Stripe did not answer: %s", told)
    return GatewayUnavailable()


def mask_numbers(text: str) -> str:
    """Stripe repeats no card, and if it did it would not be logged."""
    return re.sub(r"\b\d[\d -]*\d\b", "#", text)


# --- Words ---------------------------------------------------------------------------------------

# Stripe's decline codes, and the error codes of what it finds wrong by itself. Those that are not
# here (lost, stolen, fraudulent, ...) are not told apart: whoever holds the card must not learn it.
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
    """Why a card was declined, for the customer."""
    return (
        DECLINE_MESSAGES_BY_CODE.get(decline_code or "")
        or DECLINE_MESSAGES_BY_CODE.get(code or "")
        or declines.DECLINED
    )


# --- Amounts -------------------------------------------------------------------------------------

# Stripe counts in a currency's smallest unit, by its own list: ISK and UGX have no cents either,
# and yet are counted in them.
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
    """The amount as Stripe counts it, exactly, or GatewayRefused."""
    units = amount.scaleb(get_decimal_places(currency))
    if units != units.to_integral_value():
        raise GatewayRefused(f"{amount} {currency} cannot be told in whole units.")
    return int(units)


def from_minor_units(units: int, currency: str) -> Decimal:
    return Decimal(units).scaleb(-get_decimal_places(currency))
