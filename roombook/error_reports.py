"""Sends errors to Sentry, if SENTRY_DSN is set, without data of customers.

Each report is built from a list of what may be sent: the types of the exceptions, the places in the
code, and the text of the log line without its arguments. Messages of exceptions may quote data, so
they stay in the log, which has the same request_id.
"""

import logging
import re
from typing import TYPE_CHECKING, Any

import sentry_sdk
from sentry_sdk.integrations.atexit import AtexitIntegration
from sentry_sdk.integrations.dedupe import DedupeIntegration
from sentry_sdk.integrations.excepthook import ExcepthookIntegration
from sentry_sdk.integrations.logging import LoggingIntegration

from roombook.card_numbers import mask_cards
from roombook.logging import request_id

if TYPE_CHECKING:
    from sentry_sdk.types import Event

EVENT_FIELDS = (
    *("event_id", "timestamp", "level", "logger", "platform", "environment", "release", "sdk"),
    "server_name",
)
FRAME_FIELDS = (
    *("filename", "abs_path", "module", "function", "lineno", "in_app"),
    *("pre_context", "context_line", "post_context"),
)
# Masked cards, e-mail addresses, and what is as long as a token or a key.
PRIVATE_TEXT = re.compile(r"\[card \d+\]|\S+@\S+|[\w-]{20,}")


def start(dsn: str) -> None:
    """Report every log line at level ERROR, and every exception that ends a command."""
    sentry_sdk.init(
        dsn=dsn,
        before_send=keep_public_fields,
        # Only these. The others would read requests, statements and arguments of commands.
        default_integrations=False,
        integrations=[
            LoggingIntegration(level=None, event_level=logging.ERROR, sentry_logs_level=None),
            ExcepthookIntegration(),
            DedupeIntegration(),
            # Without its text on the terminal at the end of a command.
            AtexitIntegration(callback=lambda pending, timeout: None),
        ],
        include_local_variables=False,
        max_breadcrumbs=0,
        send_client_reports=False,
        auto_session_tracking=False,
    )


def keep_public_fields(event: "Event", hint: dict[str, Any]) -> "Event":
    """Return the report with nothing but what may leave this machine."""
    kept: Any = {name: event[name] for name in EVENT_FIELDS if name in event}  # type: ignore[literal-required]
    kept["tags"] = {"request_id": request_id.get()}
    if text := (event.get("logentry") or {}).get("message"):
        kept["logentry"] = {"message": PRIVATE_TEXT.sub("...", mask_cards(str(text)))}
    if exceptions := (event.get("exception") or {}).get("values"):
        kept["exception"] = {"values": [_keep_exception(each) for each in exceptions]}
    return kept


def _keep_exception(exception: dict[str, Any]) -> dict[str, Any]:
    frames = (exception.get("stacktrace") or {}).get("frames", [])
    return {
        "type": exception.get("type"),
        "module": exception.get("module"),
        "stacktrace": {
            "frames": [{name: frame.get(name) for name in FRAME_FIELDS} for frame in frames]
        },
    }
