"""The formats of requests and responses: JSON, JSONP and CSV, and which one it is (B1, B2)."""

import codecs
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import IO, Any, NoReturn
from urllib.parse import parse_qsl

from django.conf import settings
from django.http import HttpRequest
from rest_framework import renderers
from rest_framework.exceptions import NotAcceptable, ParseError, UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder
from rest_framework_csv.parsers import CSVParser as LibraryCSVParser
from rest_framework_csv.renderers import CSVRenderer as LibraryCSVRenderer

from roombook.api import csv_table
from roombook.api.card_refusal import refuse_card_numbers
from roombook.api.serializers import JSONDict

JAVASCRIPT_TYPES = ["application/javascript", "text/javascript"]
CALLBACK_PATTERN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*")
MAX_CALLBACK_LENGTH = 128
QUALITY_PATTERN = re.compile(r"[0-9](\.[0-9]{0,6})?")
MAX_JSON_DEPTH = 32
CHARSET_PATTERN = re.compile(r""";\s*charset\s*=\s*["']?([^\s;"']*)""", re.IGNORECASE)
# Codecs that do not encode text, or take unbounded time.
FORBIDDEN_CODECS = {"idna", "punycode", "undefined", "raw_unicode_escape", "unicode_escape"}
# A string (terminated or not) or a bracket. `*+` never backtracks, so the time stays linear.
STRING_OR_BRACKET_PATTERN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
# DRF would create an encoder for each response.
ENCODER = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# --- Which format ---------------------------------------------------------------------------------


class ContentNegotiation(BaseContentNegotiation):
    """The path's suffix decides, then `?format=`, then `Accept`; the default is JSON."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        sent = get_media_type(request.content_type)
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(
        self,
        request: Request | HttpRequest,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        # Not `request.GET`: Django decodes that in the charset of the body.
        query = dict(parse_qsl(request.META.get("QUERY_STRING", ""), keep_blank_values=True))
        if name := format_suffix or query.get("format"):
            renderer = next((known for known in renderers if known.format == name), None)
        else:
            accept = request.META.get("HTTP_ACCEPT", "")
            renderer = select_by_accept_header(accept, renderers, with_jsonp="callback" in query)
        if renderer is None:
            raise NotAcceptable
        if renderer.format == "json" and "callback" in query:
            renderer = JSONPRenderer(query["callback"])
        return renderer, str(renderer.media_type)


def select_renderer_for_error(
    request: Request | HttpRequest, format_suffix: str | None = None
) -> tuple[BaseRenderer, str]:
    """Return the renderer for an error: of the requested format, else JSON or JSONP."""
    for suffix in (format_suffix, "json"):
        try:
            known: list[BaseRenderer] = [JSONRenderer(), CSVRenderer()]
            return ContentNegotiation().select_renderer(request, known, suffix)
        except NotAcceptable:
            continue
        except ParseError:  # The callback's name is invalid.
            break
    return JSONRenderer(), str(JSONRenderer.media_type)


def get_media_type(header: str) -> str:
    """Return `application/json` for `Application/JSON; charset=utf-8`."""
    return header.split(";")[0].strip().lower()


def select_by_accept_header(
    accept: str, renderers: Iterable[BaseRenderer], *, with_jsonp: bool
) -> BaseRenderer | None:
    """Return the renderer that the Accept header prefers, or None if it accepts none of them.

    Of equal quality, the more specific media range wins, then the first renderer. Not DRF's
    negotiation, which ignores qualities.
    """
    qualities = parse_accept_header(accept.strip() or "*/*")
    best: BaseRenderer | None = None
    best_rank = (0.0, 0)
    for renderer in renderers:
        media_types = [str(renderer.media_type)]
        if with_jsonp and renderer.format == "json":
            media_types += JAVASCRIPT_TYPES
        rank = max(rank_media_type(each, qualities) for each in media_types)
        if rank[0] > 0 and rank > best_rank:
            best, best_rank = renderer, rank
    return best


def parse_accept_header(accept: str) -> Mapping[str, float]:
    """Return the quality of each media range of the header."""
    qualities = {}
    for item in accept.split(","):
        quality = 1.0
        for parameter in item.split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "q" and QUALITY_PATTERN.fullmatch(value.strip()):
                quality = min(1.0, float(value))
        qualities[get_media_type(item)] = quality
    return qualities


def rank_media_type(media_type: str, qualities: Mapping[str, float]) -> tuple[float, int]:
    """Return the quality of a media type, by the most specific range that names it, and how
    specific that is."""
    ranges = ("*/*", f"{media_type.split('/')[0]}/*", media_type)
    named = [(qualities[each], rank) for rank, each in enumerate(ranges, 1) if each in qualities]
    return named[-1] if named else (0.0, 0)


# --- Requests -------------------------------------------------------------------------------------


class JSONParser(BaseParser):
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


def check_fields(
    data: dict[str, object], parser_context: Mapping[str, Any] | None
) -> dict[str, object]:
    """Return the fields, unless they contain a card number that must be refused (B21.4)."""
    if settings.CARD_NUMBERS == "refuse" and parser_context is not None:
        refuse_card_numbers(data, parser_context["view"].Input.get_shared())
    return data


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


# --- Responses ------------------------------------------------------------------------------------


class JSONRenderer(renderers.JSONRenderer):
    """Compact JSON in UTF-8."""

    def render(
        self,
        data: JSONDict,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, object] | None = None,
    ) -> bytes:
        text = ENCODER.encode(data)
        # JavaScript, unlike JSON, treats these as line ends.
        return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


class JSONPRenderer(JSONRenderer):
    """JSON as the argument of a JavaScript function that the client names."""

    media_type = "application/javascript"
    charset = "utf-8"

    def __init__(self, callback: str) -> None:
        if len(callback) > MAX_CALLBACK_LENGTH or not CALLBACK_PATTERN.fullmatch(callback):
            raise ParseError("callback: Must be dotted JavaScript names.")
        self.callback = callback

    def render(self, data: JSONDict, *args: Any, **kwargs: Any) -> bytes:
        body = super().render(data, *args, **kwargs)
        # Because of the comment, the response does not begin with bytes that the client chose.
        # No text in the body can end a <script> element.
        return b"/**/%s(%s);" % (self.callback.encode(), body.replace(b"</", b"<\\/"))


class CSVRenderer(LibraryCSVRenderer):
    """A header of dotted names, then one row for each element of the operation's list (B2.5)."""

    charset = "utf-8"

    def render(
        self,
        data: JSONDict,
        media_type: str | None = None,
        renderer_context: Mapping[str, object] | None = None,
        writer_opts: Mapping[str, object] | None = None,
    ) -> bytes:
        view: Any = (renderer_context or {}).get("view")
        table = csv_table.build_table(
            data,
            rows_field=getattr(view, "csv_rows_field", None),
            field_tree=view.Output.field_tree() if view else {},
        )
        # The library would sort columns as text and write booleans as True: it gets a table
        # whose columns are in order and whose cells are text.
        rendered: bytes = super().render(table.rows, media_type, {"header": table.header})
        return rendered
