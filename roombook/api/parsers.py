"""Reads the body of a request and parses it, within bounds on size, depth and numbers (B1)."""

import codecs
import io
import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.wsgi import LimitedStream
from django.http import HttpRequest, UnreadablePostError
from rest_framework import parsers
from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType
from rest_framework.request import Request
from rest_framework_csv.parsers import CSVParser as LibraryCSVParser

from roombook.api import csv_table
from roombook.api.card_refusal import refuse_card_numbers
from roombook.errors import DomainError

MAX_BODY_BYTES = 256 * 1024
MAX_JSON_DEPTH = 32
CHARSET_PATTERN = re.compile(r""";\s*charset\s*=\s*["']?([^\s;"']*)""", re.IGNORECASE)
# Codecs that do not encode text, or take unbounded time.
FORBIDDEN_CODECS = {"idna", "punycode", "undefined", "raw_unicode_escape", "unicode_escape"}
# A string (terminated or not) or a bracket. `*+` never backtracks, so the time stays linear.
STRING_OR_BRACKET_PATTERN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class BoundedRequest(Request):
    """A request whose whole body is read at once, up to MAX_BODY_BYTES."""

    @property
    def data(self) -> Any:
        """The fields of the body. An error leads to no part of it, which may be a card number."""
        try:
            return super().data
        except (APIException, DomainError, RequestDataTooBig, UnreadablePostError) as error:
            refusal = error
        # Drop the frames and the causes, which have read the body, and the body itself.
        refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
        self._stream = io.BytesIO()
        raise refusal

    def _load_stream(self) -> None:
        body = read_body(self._request)
        # An empty body without Content-Type has no fields; else the parser of that type decides.
        is_parsed = body or self.content_type
        self._stream = io.BytesIO(body) if is_parsed else None  # type: ignore[assignment]


def read_body(request: HttpRequest) -> bytes:
    """Return the body, whether its length is declared or it comes in chunks."""
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in {"", "identity"}:
        # A few compressed bytes may expand to gigabytes.
        raise UnsupportedMediaType(encoding, "Content-Encoding: Only identity is read.")
    if "CONTENT_LENGTH" in request.META:
        return read_declared_body(request)
    return read_chunked_body(request)


def read_declared_body(request: HttpRequest) -> bytes:
    length = request.META["CONTENT_LENGTH"].strip()
    if not re.fullmatch(r"[0-9]{0,18}", length):
        raise ParseError("Content-Length: Must be a number.")
    if int(length or 0) > MAX_BODY_BYTES:
        raise RequestDataTooBig
    # Not `request.body`, which would keep it.
    body = request.read()
    if len(body) < int(length or 0):
        raise ParseError("The body ended too early.")
    return body


def read_chunked_body(request: HttpRequest) -> bytes:
    if request.META.get("wsgi.input_terminated"):
        # Django reads nothing without a declared length, but this server marks the end itself.
        stream = LimitedStream(request.META["wsgi.input"], MAX_BODY_BYTES + 1)
        request._stream = stream  # type: ignore[assignment]
    try:
        body = request.read()
    except (UnreadablePostError, RequestDataTooBig):
        raise
    except Exception as error:
        # The server raises exceptions of its own for malformed chunks.
        raise ParseError("The body is not chunked as it should be.") from error
    if len(body) > MAX_BODY_BYTES:
        raise RequestDataTooBig
    return body


def decode_body(body: bytes, media_type: str | None) -> str:
    """Return the text in the charset that the request names, UTF-8 by default, without a BOM."""
    named = CHARSET_PATTERN.search(media_type or "")
    charset = named[1] if named else "utf-8"
    try:
        codec = codecs.lookup(charset).name.replace("-", "_")
        # Fails for codecs from bytes to bytes, such as zip.
        "".encode(charset)
    except (LookupError, ValueError):
        codec = "undefined"
    if codec in FORBIDDEN_CODECS:
        raise UnsupportedMediaType("", "Content-Type: The charset is not known.")
    try:
        return body.decode(charset).removeprefix("\ufeff")
    except UnicodeError as error:
        raise ParseError("The body is not text in its charset.") from error


class JSONParser(parsers.BaseParser):
    """One JSON object, parsed strictly: no duplicate names, no numbers out of range.

    Not DRF's own parser: for its subclasses, DRF keeps the whole body with the request.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, object]:
        text = decode_body(stream.read(), media_type)
        if not text:
            return {}
        check_depth(text)
        try:
            data = json.loads(
                text,
                parse_constant=reject_constant,
                parse_float=parse_finite_float,
                parse_int=parse_bounded_int,
                object_pairs_hook=build_object_with_unique_names,
            )
        except json.JSONDecodeError as error:
            # The json module's messages do not quote the content.
            raise ParseError(f"The JSON cannot be read: {error}.") from error
        if not isinstance(data, dict):
            raise ParseError("The body must be a JSON object.")
        return check_fields(data, parser_context)


def check_depth(text: str) -> None:
    """Reject deep nesting before the JSON parser recurses into it."""
    if text.count("[") + text.count("{") <= MAX_JSON_DEPTH:
        return
    depth = 0
    for match in STRING_OR_BRACKET_PATTERN.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise ParseError(f"The body is nested deeper than {MAX_JSON_DEPTH}.")
        elif match[0] in "]}":
            depth -= 1


def reject_constant(_: str) -> NoReturn:
    raise ParseError("NaN and Infinity are no JSON numbers.")


def parse_finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ParseError("A number is too large.")
    return number


def parse_bounded_int(text: str) -> int:
    # No double has more digits, and Python raises an error of its own for thousands of digits.
    if len(text) > 309:
        raise ParseError("A number is too large.")
    return int(text)


def build_object_with_unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ParseError("An object has the same name twice.")
    return fields


class CSVParser(LibraryCSVParser):
    """A header of dotted names and one row."""

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, object]:
        # The library's own reading drops line ends inside cells, keeps the BOM and accepts rows
        # of any length.
        try:
            data = csv_table.parse_request(decode_body(stream.read(), media_type))
        except csv_table.InvalidTable as error:
            raise ParseError(str(error)) from error
        return check_fields(data, parser_context)


def check_fields(
    data: dict[str, object], parser_context: Mapping[str, Any] | None
) -> dict[str, object]:
    """Return the fields, unless they contain a card number that must be refused (B21.4)."""
    if settings.CARD_NUMBERS == "refuse" and parser_context is not None:
        refuse_card_numbers(data, parser_context["view"].Input.get_shared())
    return data
