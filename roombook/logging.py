"""Log formats: every line has the id of its request, none a card number or a secret path."""

import logging
from contextvars import ContextVar
from http import HTTPStatus
from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter
from pythonjsonlogger.json import JsonFormatter

from roombook.secret_paths import mask_line

logger = logging.getLogger(__name__)

request_id: ContextVar[str] = ContextVar("request_id", default="-")


class RequestIdFilter(logging.Filter):
    """Adds the id of the current request to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get()
        return True


class UnavailableFilter(logging.Filter):
    """Replaces the error with traceback that Django logs for a response with status 503.

    A failover of the database takes seconds and needs nobody, so its responses must not look like
    defects. An outage that goes on is an alert of its metric (docs/metrics.md).
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", None) != HTTPStatus.SERVICE_UNAVAILABLE:
            return True
        reason = describe_error(record.exc_info[1] if record.exc_info else None)
        logger.warning("%s%s", record.getMessage(), reason)
        return False


def describe_error(error: BaseException | None) -> str:
    """Return the error and its cause, the first line of each: further ones may quote data."""
    reason = ""
    while error is not None:
        message = str(error).strip().split("\n")[0]
        reason += f": {type(error).__name__}: {message}"
        error = error.__cause__
    return reason


class PlainLogFormatter(logging.Formatter):
    """One readable line per record, for a developer's terminal."""

    def __init__(self, **_: object) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return mask_line(super().format(record))


class JsonLogFormatter(JsonFormatter):
    """One JSON object per record, for log collectors."""

    def __init__(self, **_: object) -> None:
        super().__init__(
            "%(asctime)s %(levelname)s %(name)s %(request_id)s %(message)s",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            datefmt="%Y-%m-%dT%H:%M:%S%z",
            # Escaped characters between the digits would hide a card number from the mask.
            json_ensure_ascii=False,
        )

    def format(self, record: logging.LogRecord) -> str:
        # Masks the finished line, so that tracebacks and extra fields are masked too.
        return mask_line(super().format(record))


class PrivateExceptionReporterFilter(SafeExceptionReporterFilter):
    """Leaves the values of variables and forms out of error reports, unless DEBUG is on."""

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> Any:
        if self.is_active(request):
            return ()
        return super().get_traceback_frame_variables(request, tb_frame)

    def get_post_parameters(self, request: HttpRequest | None) -> Any:
        if self.is_active(request):
            return {}
        return super().get_post_parameters(request)
