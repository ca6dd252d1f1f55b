"""Errors in Stripe's format, and responses that are none."""

from typing import Any


class StripeApiError(Exception):
    """An error response."""

    def __init__(
        self, status: int, message: str, *, kind: str = "invalid_request_error", **more: Any
    ) -> None:
        self.status = status
        self.body = {"error": {"type": kind, "message": message, **more}}
        super().__init__(message)


class ConnectionBroken(Exception):
    """No response: the connection is reset."""


class InvalidResponse(Exception):
    """A response of a proxy that is not JSON."""


KEY_IN_USE = StripeApiError(
    409,
    "There is currently another in-progress request using this key",
    kind="idempotency_error",
    code="idempotency_key_in_use",
)


def not_found(kind: str, reference: str, param: str) -> StripeApiError:
    message = f"No such {kind}: '{reference}'"
    return StripeApiError(404, message, code="resource_missing", param=param)


def card_error(code: str, decline_code: str | None, **more: Any) -> StripeApiError:
    if decline_code:
        more["decline_code"] = decline_code
    return StripeApiError(402, "Your card was declined.", kind="card_error", code=code, **more)
