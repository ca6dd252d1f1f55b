"""Logs: every line with its request's id, none with a card number."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter
from pythonjsonlogger.json import JsonFormatter

from roombook.luhn import passes_luhn

request_id: ContextVar[str] = ContextVar("request_id", default="-")

# Groups of digits with little between them, as people type a card and as lines and addresses write
# that: spaces, dashes, dots, slashes, line ends that JSON has escaped. Digits of any script.
SEPARATOR = r"[\s._/\u2010-\u2015-]|\\[nrt]"
DIGIT_RUN = re.compile(rf"\d+(?:(?:{SEPARATOR}){{1,3}}\d+)*")
ESCAPED_DIGIT_RUN = re.compile(rf"(?:%20)?\d+(?:(?:{SEPARATOR}|%20){{1,3}}\d+)*")
DIGIT_GROUP = re.compile(r"%20|\d+")
SHORTEST_CARD, LONGEST_CARD = 12, 19


def mask_cards(text: str) -> str:
    """The text, with every run of digits that could be a card number cut to its last four."""
    masked = DIGIT_RUN.sub(mask_digit_run, text)
    # By itself, since "%20" is either a space or a percent sign before two digits of a card.
    return ESCAPED_DIGIT_RUN.sub(mask_digit_run, masked) if "%20" in masked else masked


def mask_digit_run(match: re.Match[str]) -> str:
    """Mask the cards among groups of digits; where two could overlap, both are."""
    run = match.group()
    groups = [group for group in DIGIT_GROUP.finditer(run) if group.group() != "%20"]
    kept, done = [], 0
    for first, last in find_cards([group.group() for group in groups]):
        digits = "".join(group.group() for group in groups[first : last + 1])
        kept += [run[done : groups[first].start()], f"[card {digits[-4:]}]"]
        done = groups[last].end()
    return "".join([*kept, run[done:]])


def find_cards(groups: Sequence[str]) -> list[tuple[int, int]]:
    """Which groups, from first to last, are cards; those that overlap are told as one."""
    cards: list[tuple[int, int]] = []
    for first, last in iter_card_windows([len(group) for group in groups]):
        if not passes_luhn("".join(groups[first : last + 1])):
            continue
        if cards and first <= cards[-1][1]:
            cards[-1] = (cards[-1][0], max(last, cards[-1][1]))
        else:
            cards.append((first, last))
    return cards


def iter_card_windows(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring groups, first and last, that have as many digits together as a card has.

    At most eight for each first one, however many groups a caller sends.
    """
    for first in range(len(lengths)):
        digits = 0
        for last in range(first, len(lengths)):
            digits += lengths[last]
            if digits > LONGEST_CARD:
                break
            if digits >= SHORTEST_CARD:
                yield first, last


class RequestIdFilter(logging.Filter):
    """Put the id of the running request on every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get()
        return True


class PlainLogFormatter(logging.Formatter):
    """One readable line a record, for the terminal of a developer."""

    def __init__(self, **_: Any) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return mask_cards(super().format(record))


class JsonLogFormatter(JsonFormatter):
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


class PrivateExceptionReporterFilter(SafeExceptionReporterFilter):
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
