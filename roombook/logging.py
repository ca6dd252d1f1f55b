"""Log formats: every line has the id of its request, none a card number or a secret path."""

import logging
from contextvars import ContextVar
from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter
from pythonjsonlogger.json import JsonFormatter

from roombook.secret_paths import mask_line

request_id: ContextVar[str] = ContextVar("request_id", default="-")


class RequestIdFilter(logging.Filter):
    """Adds the id of the current request to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get()
        return True


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
