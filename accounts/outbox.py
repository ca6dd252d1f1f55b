"""Sends the outbox's e-mails.

Sending is at least once (roombook/deliveries.py). Every attempt has the same Message-ID, so that
mail programs recognize a repetition.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from django.core.mail import get_connection
from django.db import OperationalError, transaction

from accounts.models.outbox_message import (
    MAX_ERROR_LENGTH,
    OutboxMessage,
    collapse_whitespace,
    require_transaction,
)

logger = logging.getLogger(__name__)

# The delay after each failed attempt. After the last attempt, the message needs attention.
RETRY_DELAYS = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=24),
)
MAX_ATTEMPTS = len(RETRY_DELAYS) + 1

# The time in which a process must send an e-mail, before it is considered dead.
SENDING_LEASE = timedelta(minutes=10)


@contextmanager
def suppress_mail_errors(about: str) -> Iterator[None]:
    """Log any error of writing an e-mail, so that the change that it reports succeeds.

    Only OperationalError is raised, because then the whole transaction is tried again.
    """
    require_transaction()
    try:
        with transaction.atomic():
            yield
    except OperationalError:
        raise
    except Exception:
        logger.exception("The e-mail about %s could not be written.", about)


def send_due_messages(
    *, clock: Callable[[], datetime], limit: int | None = None
) -> Iterator[OutboxMessage]:
    """Try to send each message that is due now, and yield it with its new state.

    Several processes may run this at once. Stops when the mail server cannot be reached, since the
    other messages would fail too. Expired messages are deleted.
    ``clock`` returns the time, because sending takes long.
    """
    start, attempted = clock(), 0
    OutboxMessage.objects.expired(start).delete()
    while limit is None or attempted < limit:
        message = OutboxMessage.objects.due(start).first()
        if message is None:
            return
        now = clock()
        waiting = OutboxMessage.objects.waiting().exclude(expires_at__lte=now)
        if not message.lease(waiting, period=SENDING_LEASE, now=now):
            # Another process was faster, or the message has expired since the start of the run.
            OutboxMessage.objects.expired(now).delete()
            continue
        attempted += 1
        is_server_reached = _send(message, clock)
        yield message
        if not is_server_reached:
            return


def _send(message: OutboxMessage, clock: Callable[[], datetime]) -> bool:
    """Send a claimed message and record the result; False if the server cannot be reached."""
    if message.attempts > MAX_ATTEMPTS:
        # The process died in every attempt, perhaps because of this message.
        _record_failure(message, "The last attempt never ended.", clock())
        return True
    connection = get_connection()
    try:
        connection.open()
    except Exception as error:
        _record_failure(message, _describe_error(error, message), clock())
        return False
    try:
        email = message.as_email
        email.connection = connection
        if email.send() == 0:
            raise ValueError("The e-mail has no recipient.")
    except Exception as error:
        _record_failure(message, _describe_error(error, message), clock())
    else:
        message.record_success(now=clock(), last_error="", **_get_cleared_text(message))
    finally:
        # An error while closing does not undo the sending.
        with suppress(Exception):
            connection.close()
    return True


def _record_failure(message: OutboxMessage, error: str, now: datetime) -> None:
    if message.attempts < MAX_ATTEMPTS:
        retry_at = now + RETRY_DELAYS[message.attempts - 1]
        message.record_failure(retry_at=retry_at, last_error=error)
        logger.warning("%s could not be sent: %s", message, error)
    else:
        message.record_failure(retry_at=None, last_error=error, **_get_cleared_text(message))
        logger.error("%s failed after %s attempts: %s", message, message.attempts, error)


def _get_cleared_text(message: OutboxMessage) -> dict[str, object]:
    """Return the columns that are emptied when nothing is left to send."""
    return {"text": "", "html": ""} if message.is_secret else {}


def _describe_error(error: Exception, message: OutboxMessage) -> str:
    """Describe the error without the address of the recipient, which mail servers repeat."""
    text = re.sub(
        re.escape(message.to), "<recipient>", f"{type(error).__name__}: {error}", flags=re.I
    )
    return collapse_whitespace(text)[:MAX_ERROR_LENGTH]
