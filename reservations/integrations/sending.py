"""Sends events to the endpoints of integrators (B25).

Sending is at least once (roombook/deliveries.py), with the same id each time. Each address has one
request at a time in this process, also if several endpoints have it: so a slow one delays only
itself, and gets no further request in this run after one has failed.
"""

import datetime as dt
import json
import logging
import random
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from email.utils import parsedate_to_datetime

from django.conf import settings

from accounts.emails import enqueue_email, get_service_name
from accounts.models import User
from accounts.models.outbox_message import collapse_whitespace
from reservations.integrations.signing import build_headers
from reservations.models.webhooks import (
    MAX_RESPONSE_LENGTH,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEvent,
)
from roombook.db.transactions import in_transaction
from roombook.deliveries import DeliveryState
from roombook.public_http import HTTPResult, RequestFailed, post

# Requests at a time, each to another address.
MAX_CONCURRENT_REQUESTS = 32
# A run ends after this time; the next one goes on.
RUN_PERIOD = dt.timedelta(seconds=50)
# The time in which a process must record the result, before it is considered dead.
SENDING_LEASE = dt.timedelta(minutes=2)
FIRST_RETRY_DELAY = dt.timedelta(seconds=30)
MAX_RETRY_DELAY = dt.timedelta(hours=6)
MAX_RETRY_AFTER = dt.timedelta(hours=24)
JITTER = 0.2
GONE = 410
DISABLED_KIND = "webhook disabled"

logger = logging.getLogger(__name__)
Clock = Callable[[], dt.datetime]
Attempt = Future[HTTPResult]


def send_due_deliveries(*, clock: Clock) -> Iterator[WebhookDelivery]:
    """Send what is due, and yield each delivery with the result of the attempt.

    ``clock`` returns the time, because sending takes long. Without SEND_WEBHOOKS, nothing is sent.
    """
    if not settings.SEND_WEBHOOKS:
        logger.warning("SEND_WEBHOOKS is false: no events are sent.")
        return
    start = clock()
    finished: set[str] = set()  # Addresses that get no further request in this run.
    running: dict[Attempt, WebhookDelivery] = {}
    with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as pool:
        while True:
            if clock() < start + RUN_PERIOD:
                busy = finished | {each.endpoint.url for each in running.values()}
                for delivery in _claim_next(busy, MAX_CONCURRENT_REQUESTS - len(running), clock):
                    running[_start(pool, delivery, clock())] = delivery
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for attempt in done:
                delivery = running.pop(attempt)
                _record(delivery, attempt, clock())
                if delivery.state != DeliveryState.SENT:
                    finished.add(delivery.endpoint.url)
                yield delivery


def _claim_next(busy: set[str], limit: int, clock: Clock) -> Iterator[WebhookDelivery]:
    """Lease the longest due delivery of each address that is not busy."""
    now = clock()
    due = WebhookDelivery.objects.due(now).exclude(endpoint__url__in=busy)
    urls = due.order_by().values_list("endpoint__url", flat=True).distinct()
    for url in list(urls[:limit]):
        of_address = WebhookDelivery.objects.due(now).filter(endpoint__url=url)
        delivery = of_address.select_related("endpoint", "event").first()
        waiting = WebhookDelivery.objects.waiting()
        if delivery is not None and delivery.lease(waiting, period=SENDING_LEASE, now=clock()):
            yield delivery


def _start(pool: ThreadPoolExecutor, delivery: WebhookDelivery, now: dt.datetime) -> Attempt:
    """Begin the request in a thread, which uses no database."""
    endpoint, event = delivery.endpoint, delivery.event
    body = render_payload(event)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "roombook-webhooks/1",
        **build_headers(
            body,
            message_id=event.message_id,
            timestamp=int(now.timestamp()),
            secrets=endpoint.get_secrets(now),
        ),
    }
    return pool.submit(post, endpoint.url, body, headers)


def render_payload(event: WebhookEvent) -> bytes:
    """Return the body of an event: the same bytes for every attempt."""
    payload = {
        "type": event.type,
        "timestamp": event.occurred_at.astimezone(dt.UTC).isoformat(),
        "data": event.data,
    }
    return json.dumps(payload, separators=(",", ":"), sort_keys=True).encode()


def _record(delivery: WebhookDelivery, attempt: Attempt, now: dt.datetime) -> None:
    """Store the result of an attempt, and what follows from it."""
    try:
        result = attempt.result()
    except RequestFailed as error:
        _record_failure(delivery, str(error), now)
        return
    except Exception as error:
        # The results of the other receivers are recorded all the same.
        logger.exception("%s failed unexpectedly.", delivery)
        _record_failure(delivery, f"{type(error).__name__}: {error}", now)
        return
    if 200 <= result.status < 300:
        _record_success(delivery, result, now)
    elif result.status == GONE:
        _record_failure(delivery, result.body, now, status_code=GONE, is_final=True)
        disable_endpoint(delivery.endpoint, "It answered 410 Gone.", now=now)
    else:
        _record_failure(
            delivery,
            result.body,
            now,
            status_code=result.status,
            retry_after=result.retry_after,
        )


def _record_success(delivery: WebhookDelivery, result: HTTPResult, now: dt.datetime) -> None:
    delivery.record_success(now=now, status_code=result.status, response=_shorten(result.body))
    WebhookEndpoint.objects.filter(pk=delivery.endpoint_id).update(last_success_at=now)


def _record_failure(
    delivery: WebhookDelivery,
    response: str,
    now: dt.datetime,
    *,
    status_code: int | None = None,
    retry_after: str = "",
    is_final: bool = False,
) -> None:
    """Plan the next attempt, or let the delivery fail for good. `response` can be the error."""
    result = {"status_code": status_code, "response": _shorten(response)}
    if not is_final and now < delivery.retry_until:
        delay = max(get_retry_delay(delivery.attempts), parse_retry_after(retry_after, now))
        delivery.record_failure(retry_at=min(now + delay, delivery.retry_until), **result)
        return
    delivery.record_failure(retry_at=None, **result)
    last_success_at = WebhookEndpoint.objects.values_list("last_success_at", flat=True).get(
        pk=delivery.endpoint_id
    )
    if not is_final and (last_success_at is None or last_success_at < delivery.created_at):
        reason = "It accepted nothing during the three days in which an event was sent."
        disable_endpoint(delivery.endpoint, reason, now=now)


def get_retry_delay(attempts: int) -> dt.timedelta:
    """Return the delay after so many failed attempts: it doubles, and varies by a fifth."""
    delay = min(FIRST_RETRY_DELAY * 2 ** min(attempts - 1, 20), MAX_RETRY_DELAY)
    return delay * random.uniform(1 - JITTER, 1 + JITTER)


def parse_retry_after(header: str, now: dt.datetime) -> dt.timedelta:
    """Return the delay that a response asks for, at most a day; 0 if it asks for none."""
    try:
        delay = dt.timedelta(seconds=int(header))
    except (ValueError, OverflowError):
        try:
            until = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return dt.timedelta(0)
        delay = (until if until.tzinfo else until.replace(tzinfo=dt.UTC)) - now
    return max(dt.timedelta(0), min(delay, MAX_RETRY_AFTER))


def _shorten(text: str) -> str:
    return collapse_whitespace(text)[:MAX_RESPONSE_LENGTH]


@in_transaction
def disable_endpoint(endpoint: WebhookEndpoint, reason: str, *, now: dt.datetime) -> None:
    """Stop sending to an endpoint, fail what is waiting, and e-mail the administrators."""
    # Of several processes, one disables it and sends the e-mails.
    active = WebhookEndpoint.objects.active().select_for_update(no_key=True)
    if active.filter(pk=endpoint.pk).first() is None:
        return
    endpoint.is_active, endpoint.disabled_reason = False, reason
    endpoint.save(update_fields=["is_active", "disabled_reason"])
    endpoint.deliveries.fail_waiting()
    heading = f"A webhook of {get_service_name()} was disabled"
    paragraphs = [
        f"Events are no longer sent to the webhook “{endpoint.description}”. {reason}",
        "Ask its operator to repair it. Then make it active again in the back office. The operator"
        " can read what was missed with the operation api/integrations/changes.",
    ]
    for user in User.objects.filter(is_superuser=True, is_active=True).order_by("pk"):
        enqueue_email(
            user_id=user.pk,
            to=user.email,
            kind=DISABLED_KIND,
            about=f"webhook {endpoint.pk}",
            heading=heading,
            paragraphs=paragraphs,
            now=now,
        )
