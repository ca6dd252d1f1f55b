"""Django's WSGI handler, except for hostile Content-Type headers and HEAD.

Django reads the Content-Type header before it calls any middleware, and decodes the query string
with the charset that the header names. Both fail on hostile headers: `charset=zlib` raises
LookupError, and `?format=csv` cannot be read if the charset is UTF-16. Neither error could be
answered with the API's error envelope.
"""

import codecs
import encodings
import pkgutil
from collections.abc import Callable
from encodings.aliases import aliases
from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpResponse, HttpResponseBase
from django.utils.http import parse_header_parameters

CODEC_NAMES = {*aliases, *(module.name for module in pkgutil.iter_modules(encodings.__path__))}


def limit_codec_names() -> None:
    """Let this process look up only the codecs that Python has.

    Python keeps every name that it ever looked up in memory, and clients choose names of any
    length: of a body's charset, and of the charsets of parameters in headers.
    """
    codecs.unregister(encodings.search_function)
    codecs.register(find_codec)


def find_codec(name: str) -> codecs.CodecInfo | None:
    # Python replaces all other characters than letters, digits and dots before it calls this.
    is_known = name.replace(".", "_") in CODEC_NAMES
    return encodings.search_function(name) if is_known else None


class RoombookWSGIRequest(WSGIRequest):
    """A request whose query string is always decoded as UTF-8."""

    def _set_content_type_params(self, meta: dict[str, str]) -> None:
        """Parse the Content-Type header, but do not take over its charset."""
        try:
            parsed = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        except ValueError:
            # A parameter is encoded in an unknown charset. Drop the parameters for later readers.
            meta["CONTENT_TYPE"] = meta["CONTENT_TYPE"].split(";")[0].strip().lower()
            parsed = meta["CONTENT_TYPE"], {}
        self.content_type, self.content_params = parsed


class RoombookWSGIHandler(WSGIHandler):
    """The WSGI application. Call `django.setup()` first."""

    request_class = RoombookWSGIRequest

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> HttpResponseBase:
        response = super().__call__(environ, start_response)
        if environ["REQUEST_METHOD"] == "HEAD" and isinstance(response, HttpResponse):
            # Views answer as they answer GET. Gunicorn would drop the body, and log a warning.
            response.content = b""
        return response
