"""Chooses the formats of a request and its response (B2.3, B2.4)."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl

from django.http import HttpRequest
from rest_framework.exceptions import NotAcceptable, ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from roombook.api.renderers import CSVRenderer, JSONPRenderer, JSONRenderer

JAVASCRIPT_TYPES = ["application/javascript", "text/javascript"]
CALLBACK_PATTERN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*")
MAX_CALLBACK_LENGTH = 128
QUALITY_PATTERN = re.compile(r"[0-9](\.[0-9]{0,6})?")


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
        query = parse_query(request)
        name = format_suffix or query.get("format")
        if name:
            renderer = next((known for known in renderers if known.format == name), None)
        else:
            accept = request.META.get("HTTP_ACCEPT", "")
            renderer = select_by_accept_header(accept, renderers, with_jsonp="callback" in query)
        if renderer is None:
            raise NotAcceptable
        if renderer.format == "json" and "callback" in query:
            renderer = JSONPRenderer(get_callback(query))
        return renderer, str(renderer.media_type)


def select_renderer_for_error(
    request: Request | HttpRequest, format_suffix: str | None = None
) -> tuple[BaseRenderer, str]:
    """Return the renderer for an error: of the requested format, else JSON or JSONP."""
    renderers: list[BaseRenderer] = [JSONRenderer(), CSVRenderer()]
    select_renderer = ContentNegotiation().select_renderer
    try:
        try:
            return select_renderer(request, renderers, format_suffix)
        except NotAcceptable:
            return select_renderer(request, renderers, "json")
    except ParseError:
        # The callback's name is invalid.
        return renderers[0], str(renderers[0].media_type)


def parse_query(request: Request | HttpRequest) -> dict[str, str]:
    """Return the query's fields; of a repeated one, the last.

    Not `request.GET`: Django decodes that in the charset of the body.
    """
    return dict(parse_qsl(request.META.get("QUERY_STRING", ""), keep_blank_values=True))


def get_callback(query: Mapping[str, str]) -> str:
    name = query["callback"]
    if len(name) > MAX_CALLBACK_LENGTH or not CALLBACK_PATTERN.fullmatch(name):
        raise ParseError("callback: Must be dotted JavaScript names.")
    return name


def get_media_type(header: str) -> str:
    """Return `application/json` for `Application/JSON; charset=utf-8`."""
    return header.split(";")[0].strip().lower()


def select_by_accept_header(
    accept: str, renderers: Iterable[BaseRenderer], *, with_jsonp: bool
) -> BaseRenderer | None:
    """Return the renderer that the Accept header prefers, or None if it accepts none of them.

    Of equal quality, the more specific media range wins, then the first renderer.
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
        parameters = item.split(";")
        quality = 1.0
        for parameter in parameters[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "q" and QUALITY_PATTERN.fullmatch(value.strip()):
                quality = min(1.0, float(value))
        qualities[get_media_type(item)] = quality
    return qualities


def rank_media_type(media_type: str, qualities: Mapping[str, float]) -> tuple[float, int]:
    """Return the quality of a media type and how specific the range is that names it.

    The most specific range decides.
    """
    main_type = media_type.split("/")[0]
    for specificity, media_range in ((3, media_type), (2, f"{main_type}/*"), (1, "*/*")):
        if media_range in qualities:
            return qualities[media_range], specificity
    return 0.0, 0
