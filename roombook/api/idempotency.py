"""Answers a repeated request with the first response, by its header Idempotency-Key (B23).

The saved response and what the request changes are stored by one transaction. If a worker dies,
both are lost, and the key is free again. The unique constraint of the table is the lock for
requests that arrive meanwhile: an INSERT waits until the transaction with the same key ends.
"""

import datetime as dt
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from django.conf import settings
from django.utils.crypto import salted_hmac
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from roombook.api.serializers import JSONDict
from roombook.db.transactions import in_transaction
from roombook.errors import IdempotencyKeyReused
from roombook.models import SavedResponse

HEADER = "Idempotency-Key"
KEY_PATTERN = re.compile(r"[ -~]{1,255}")


def get_key(request: Request) -> str | None:
    """Return the key of the request, None without the header, or raise ValidationError."""
    key: str | None = request.headers.get(HEADER)
    if key is not None and not KEY_PATTERN.fullmatch(key):
        raise ValidationError({HEADER: ["Must have 1 to 255 printable ASCII characters."]})
    return key


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with an Idempotency-Key; `fields` are its fields by their Python names."""

    user_id: int
    operation: str
    key: str
    fields: JSONDict

    @property
    def key_digest(self) -> str:
        return hashlib.sha256(self.key.encode("ascii")).hexdigest()


@in_transaction
def respond_once(
    request: IdempotentRequest, build_response: Callable[[], JSONDict], *, now: dt.datetime
) -> JSONDict:
    """Return the fields of the first response to this key, or build and save them.

    Waits while another request with this key is processed. The transaction includes what
    `build_response` does; if it raises, nothing is saved. Raises IdempotencyKeyReused if the first
    request had other fields.
    """
    body_digest, *former_body_digests = compute_body_digests(request.fields)
    same_key = SavedResponse.objects.filter(
        user=request.user_id, operation=request.operation, key_digest=request.key_digest
    )
    same_key.expired(now).delete()
    claim = SavedResponse(
        user_id=request.user_id,
        operation=request.operation,
        key_digest=request.key_digest,
        body_digest=body_digest,
        created_at=now,
    )
    SavedResponse.objects.bulk_create([claim], ignore_conflicts=True)
    saved = same_key.get()
    if saved.body_digest not in {body_digest, *former_body_digests}:
        raise IdempotencyKeyReused
    if not saved.content:
        saved.content = json.dumps(build_response(), ensure_ascii=False)
        saved.save(update_fields=["content"])
    # The first response is read back too, so that it cannot differ from later ones.
    response: JSONDict = json.loads(saved.content)
    return response


def forget(request: IdempotentRequest) -> None:
    """Free the key after a failure: only responses of 200 are repeated."""
    SavedResponse.objects.filter(
        user=request.user_id, operation=request.operation, key_digest=request.key_digest
    ).delete()


def compute_body_digests(fields: JSONDict) -> list[str]:
    """Return a keyed hash of the fields for SECRET_KEY, then one for each former key."""
    text = json.dumps(fields, sort_keys=True, default=_normalize_value)
    return [
        salted_hmac(__name__, text, secret=secret, algorithm="sha256").hexdigest()
        for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]


def _normalize_value(value: object) -> str:
    """Return the same text for equal values of a field, such as 1.5 and 1.50."""
    match value:
        case Decimal():
            return str(value.normalize())
        case dt.datetime():
            return (value.astimezone(dt.UTC) if value.tzinfo else value).isoformat()
    raise TypeError(f"{type(value).__name__} cannot be compared with a repeated request.")
