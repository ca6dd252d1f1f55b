"""What has changed since: the pages in which an integrator reads published events (B25)."""

import datetime as dt
import hmac
from dataclasses import dataclass

from django.core.signing import BadSignature, Signer

from reservations.models.webhooks import (
    RETENTION,
    TEST_EVENT_TYPE,
    WebhookEndpoint,
    WebhookEvent,
    hash_access_key,
)
from roombook.errors import InvalidCredentials, InvalidRequest

MAX_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """A page, and the cursor that leads on, also after the last page."""

    changes: list[dict[str, object]]
    next_cursor: str
    has_more: bool


def authenticate(webhook_id: int, access_key: str) -> WebhookEndpoint:
    """Return the endpoint whose access key this is. Inactive ones may read what they missed.

    Raises InvalidCredentials, the same for an unknown endpoint and for a wrong key.
    """
    endpoint = WebhookEndpoint.objects.filter(pk=webhook_id).first()
    stored = endpoint.access_key_hash if endpoint else ""
    is_right = hmac.compare_digest(stored, hash_access_key(access_key))
    if endpoint is None or not is_right:
        raise InvalidCredentials("The webhook or its access key is not right.")
    return endpoint


def list_changes(
    endpoint: WebhookEndpoint,
    *,
    since: dt.datetime | None,
    cursor: str,
    page_size: int,
    now: dt.datetime,
) -> ChangesPage:
    """Return the events after the cursor, or else since a time, at most 30 days back.

    Events are listed in the order in which they were published, each exactly once.

    Raises InvalidRequest for a time or a cursor that is older than 30 days, and for a cursor that
    was not given to this endpoint: what it leads to may be deleted.
    """
    signer = Signer(salt=f"reservation changes|{endpoint.pk}")
    oldest = now - RETENTION
    events = WebhookEvent.objects.for_endpoint(endpoint)
    if cursor:
        position, read_at = _read_cursor(signer, cursor)
        if read_at < oldest:
            raise InvalidRequest({"cursor": "This cursor is older than 30 days."})
        events = events.filter(pk__gt=position)
    else:
        if since is not None and since < oldest:
            raise InvalidRequest({"since": "Since must be within the last 30 days."})
        # Read before the events, so that none is between both. A test event may be committed
        # before published events with lower ids.
        published = WebhookEvent.objects.exclude(type=TEST_EVENT_TYPE).order_by("-pk")
        position = published.values_list("pk", flat=True).first() or 0
        events = events.filter(published_at__gte=since or oldest)
    # One more shows whether there is a next page.
    found = list(events[: page_size + 1])
    page, has_more = found[:page_size], len(found) > page_size
    if page:
        position = page[-1].pk
    # After the last page, everything that was published until now has been read.
    read_at = page[-1].published_at if has_more else now
    next_cursor = signer.sign_object([position, read_at.isoformat()])
    return ChangesPage([event.change for event in page], next_cursor, has_more)


def _read_cursor(signer: Signer, cursor: str) -> tuple[int, dt.datetime]:
    try:
        position, read_at = signer.unsign_object(cursor)
    except BadSignature:
        raise InvalidRequest({"cursor": "This cursor was not given to this webhook."}) from None
    return position, dt.datetime.fromisoformat(read_at)
