"""Which format a request is read in and answered in (B2.3, B2.4)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from rest_framework.exceptions import NotAcceptable, ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from roombook.api.renderers import CSVRenderer, JSONPRenderer, JSONRenderer

JAVASCRIPT_TYPES = ["application/javascript", "text/javascript"]
CALLBACK_PATTERN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*")
MAX_CALLBACK_LENGTH = 128
QUALITY_PATTERN = re.compile(r"[0-9](\.[0-9]{0,6})?")


class ContentNegotiation(BaseContentNegotiation):
    """Suffix of the path, then `?format=`, then `Accept`; JSON where nothing is said."""

    def select_parser(self, request: Any, parsers: Iterable[BaseParser]) -> BaseParser | None:
        sent = get_media_type(request.content_type)
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(
        self,
        request: Any,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        query = parse_query(request)
        name = format_suffix or query.get("format")
        if name:
            renderer = next((known for known in renderers if known.format == name), None)
        else:
            accept = request.META.get("HTTP_ACCEPT", "")
            renderer = select_by_accept_header(accept, renderers, scripts="callback" in query)
        if renderer is None:
            raise NotAcceptable
        if renderer.format == "json" and "callback" in query:
            renderer = JSONPRenderer(get_callback(query))
        return renderer, str(renderer.media_type)


def select_renderer_for_error(
    request: Any, format_suffix: str | None = None
) -> tuple[BaseRenderer, str]:
    """The format for an error: the one asked for, else JSON, wrapped if it can be."""
    renderers: list[BaseRenderer] = [JSONRenderer(), CSVRenderer()]
    negotiate = ContentNegotiation().select_renderer
    try:
        try:
            return negotiate(request, renderers, format_suffix)
        except NotAcceptable:
            return negotiate(request, renderers, "json")
    except ParseError:
        # No function can be called by that name.
        return renderers[0], str(renderers[0].media_type)


def parse_query(request: Any) -> dict[str, str]:
    """The query's fields; the last one of a name counts.

    Not `request.GET`: Django reads that in the charset of the body.
    """
    return dict(parse_qsl(request.META.get("QUERY_STRING", ""), keep_blank_values=True))


def get_callback(query: Mapping[str, str]) -> str:
    name = query["callback"]
    if len(name) > MAX_CALLBACK_LENGTH or not CALLBACK_PATTERN.fullmatch(name):
        raise ParseError("callback: Must be dotted JavaScript names.")
    return name


def get_media_type(media_type: str) -> str:
    """`Application/JSON; charset=utf-8` is `application/json`."""
    return media_type.split(";")[0].strip().lower()


def select_by_accept_header(
    accept: str, renderers: Iterable[BaseRenderer], *, scripts: bool
) -> BaseRenderer | None:
    """The renderer that the Accept header likes best, or None if it takes none of them.

    Of equals the one that is named more exactly wins, then the first.
    """
    wishes = parse_accept_header(accept.strip() or "*/*")
    best: BaseRenderer | None = None
    best_rank = (0.0, 0)
    for renderer in renderers:
        names = [str(renderer.media_type)]
        if scripts and renderer.format == "json":
            names += JAVASCRIPT_TYPES
        rank = max(rank_media_type(name, wishes) for name in names)
        if rank[0] > 0 and rank > best_rank:
            best, best_rank = renderer, rank
    return best


def parse_accept_header(accept: str) -> dict[str, float]:
    """Each media range of the header with its quality."""
    wishes = {}
    for item in accept.split(","):
        parameters = item.split(";")
        quality = 1.0
        for parameter in parameters[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "q" and QUALITY_PATTERN.fullmatch(value.strip()):
                quality = min(1.0, float(value))
        wishes[get_media_type(item)] = quality
    return wishes


def rank_media_type(media_type: str, wishes: Mapping[str, float]) -> tuple[float, int]:
    """How much the type is wanted, and how exactly it is named; the most exact range decides."""
    main = media_type.split("/")[0]
    for exactness, wanted in ((3, media_type), (2, f"{main}/*"), (1, "*/*")):
        if wanted in wishes:
            return wishes[wanted], exactness
    return 0.0, 0
