"""Signatures of webhooks: version 1 of https://www.standardwebhooks.com."""

import base64
import hmac
from collections.abc import Iterable

from reservations.models.webhooks import SECRET_PREFIX


def build_headers(
    body: bytes, *, message_id: str, timestamp: int, secrets: Iterable[str]
) -> dict[str, str]:
    """Return the headers of a message: one signature for each secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_sign(signed, secret) for secret in secrets),
    }


def _sign(signed: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
