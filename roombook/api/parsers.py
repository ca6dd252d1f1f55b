"""From the bytes of a request to its fields, within bounds that nobody can talk us out of (B1)."""

import codecs
import io
import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.core.exceptions import RequestDataTooBig
from django.core.handlers.wsgi import LimitedStream
from django.http import HttpRequest, UnreadablePostError
from rest_framework import parsers
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.request import Request
from rest_framework_csv.parsers import CSVParser as LibraryCSVParser

from roombook.api import csv_table

MAX_BODY_BYTES = 256 * 1024
MAX_JSON_DEPTH = 32
CHARSET_PATTERN = re.compile(r""";\s*charset\s*=\s*["']?([^\s;"']*)""", re.IGNORECASE)
# Codecs that are no charset of a body: slow without bound, or of Python source.
FORBIDDEN_CODECS = {"idna", "punycode", "undefined", "raw_unicode_escape", "unicode_escape"}
# A string (also one that never ends) or a bracket. `*+` never goes back, so time stays linear.
STRING_OR_BRACKET_PATTERN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class BoundedRequest(Request):
    """A request whose body is read once, whole, and never beyond the bound."""

    def _load_stream(self) -> None:
        body = read_body(self._request)
        # Nothing said about nothing sent is no fields; else the parser of that type decides.
        is_told = body or self.content_type
        self._stream = io.BytesIO(body) if is_told else None  # type: ignore[assignment]


def read_body(request: HttpRequest) -> bytes:
    """The body, also where it comes in chunks without a declared length."""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in {"", "identity"}:
        # A few packed bytes may be gigabytes.
        raise UnsupportedMediaType(encoding, "Content-Encoding: Only identity is read.")
    if "Content-Length" in request.headers:
        return read_declared_body(request)
    return read_chunked_body(request)


def read_declared_body(request: HttpRequest) -> bytes:
    length = request.headers["Content-Length"].strip()
    if not re.fullmatch(r"[0-9]{0,18}", length):
        raise ParseError("Content-Length: Must be a number.")
    if int(length or 0) > MAX_BODY_BYTES:
        raise RequestDataTooBig
    body = request.body
    if len(body) < int(length or 0):
        raise ParseError("The body ended too early.")
    return body


def read_chunked_body(request: HttpRequest) -> bytes:
    if request.META.get("wsgi.input_terminated"):
        # Django reads nothing where no length is declared, but this server marks the end itself.
        request._stream = LimitedStream(request.META["wsgi.input"], MAX_BODY_BYTES + 1)  # type: ignore[assignment]
    try:
        body = request.body
    except (UnreadablePostError, RequestDataTooBig):
        raise
    except Exception as error:
        # The server's own complaint about the chunks, of a type that is the server's own.
        raise ParseError("The body is not chunked as it should be.") from error
    if len(body) > MAX_BODY_BYTES:
        raise RequestDataTooBig
    return body


def decode_body(body: bytes, media_type: str | None) -> str:
    """The text in the charset that the request names, UTF-8 by default, without a BOM."""
    named = CHARSET_PATTERN.search(media_type or "")
    charset = named[1] if named else "utf-8"
    try:
        codec = codecs.lookup(charset).name.replace("-", "_")
        # Codecs from bytes to bytes, such as zip, refuse this.
        "".encode(charset)
    except (LookupError, ValueError):
        codec = "undefined"
    if codec in FORBIDDEN_CODECS:
        raise UnsupportedMediaType("", "Content-Type: The charset is not known.")
    try:
        return body.decode(charset).removeprefix("\ufeff")
    except UnicodeError as error:
        raise ParseError("The body is not text in its charset.") from error


class JSONParser(parsers.JSONParser):
    """One JSON object, told strictly: no name twice, no number beyond all bounds."""

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
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
            # Its words tell what was expected where, nothing of the content.
            raise ParseError(f"The JSON cannot be read: {error}.") from error
        if not isinstance(data, dict):
            raise ParseError("The body must be a JSON object.")
        return data


def check_depth(text: str) -> None:
    """Refuse deep nesting before the reader follows it down."""
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
    # No double is longer, and Python refuses thousands of digits with an error of its own.
    if len(text) > 309:
        raise ParseError("A number is too large.")
    return int(text)


def build_object_with_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
    ) -> dict[str, Any]:
        # The library's own reading drops line ends inside cells and keeps the BOM.
        try:
            return csv_table.parse_request(decode_body(stream.read(), media_type))
        except csv_table.InvalidTable as error:
            raise ParseError(str(error)) from error
