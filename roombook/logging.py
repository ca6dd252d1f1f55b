"""Logs: every line with its request's id, none with a card number."""

import logging
import re
from contextvars import ContextVar
from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter
from pythonjsonlogger.json import JsonFormatter

request_id: ContextVar[str] = ContextVar("request_id", default="-")

# Groups of digits with nothing but spaces or dashes between them, as people type a card.
DIGITS = re.compile(r"[0-9]+(?:[\s-]{1,3}[0-9]+)*")
GROUP = re.compile(r"[0-9]+")
CARD_LENGTHS = range(12, 20)


def mask_cards(text: str) -> str:
    """The text, with every run of digits that could be a card number cut to its last four."""
    return DIGITS.sub(lambda run: mask_run(run.group()), text)


def mask_run(run: str) -> str:
    """Mask the cards in a run of digit groups, the longest first: "12 4242424242424242" has one."""
    groups = list(GROUP.finditer(run))
    spans = sorted(
        ((first.start(), last.end()) for i, first in enumerate(groups) for last in groups[i:]),
        key=lambda span: span[0] - span[1],
    )
    for start, end in spans:
        digits = "".join(GROUP.findall(run[start:end]))
        if len(digits) in CARD_LENGTHS and passes_luhn(digits):
            return f"{mask_cards(run[:start])}[card {digits[-4:]}]{mask_cards(run[end:])}"
    return run


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the checksum that every card number ends with."""
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(sum(divmod(value, 10)) for value in doubled) % 10 == 0


class AddRequestId(logging.Filter):
    """Put the id of the running request on every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get()
        return True


class PlainLines(logging.Formatter):
    """One readable line a record, for the terminal of a developer."""

    def __init__(self, **_: Any) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return mask_cards(super().format(record))


class JsonLines(JsonFormatter):
    """One JSON object a record, for machines."""

    def __init__(self, **_: Any) -> None:
        super().__init__(
            "%(asctime)s %(levelname)s %(name)s %(request_id)s %(message)s",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            datefmt="%Y-%m-%dT%H:%M:%S%z",
            # Escaped characters between the digits would hide a card from the mask.
            json_ensure_ascii=False,
        )

    def format(self, record: logging.LogRecord) -> str:
        # After everything else, so that tracebacks and extra fields are masked too.
        return mask_cards(super().format(record))


class NoVariables(SafeExceptionReporterFilter):
    """Reports of errors without the values of variables and forms, unless DEBUG is on."""

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
