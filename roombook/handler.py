"""Django's WSGI handler, except for Content-Type headers that it cannot read, and HEAD."""

import codecs
from collections.abc import Callable, Iterable
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.utils.http import parse_header_parameters


class RoombookWSGIHandler(WSGIHandler):
    """The WSGI application. Call `django.setup()` first."""

    def __call__(  # type: ignore[override]
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        try:
            check_charset(environ.get("CONTENT_TYPE", ""))
        except (LookupError, ValueError):
            start_response("400 Bad Request", [("Content-Length", "0")])
            return []
        response = super().__call__(environ, start_response)
        if environ["REQUEST_METHOD"] == "HEAD" and isinstance(response, HttpResponse):
            # Views answer as they answer GET. Gunicorn would drop the body, and log a warning.
            response.content = b""
        return response


def check_charset(content_type: str) -> None:
    """Raise LookupError or ValueError for a charset with which Django fails before any middleware.

    It decodes the query with any codec that Python knows, also those that are not for text, such
    as zlib, and ignores unknown ones.
    """
    charset = parse_header_parameters(content_type)[1].get("charset", "utf-8")
    try:
        codecs.lookup(charset)
    except LookupError:
        return
    "".encode(charset)
