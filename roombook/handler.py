"""The service's front door: Django's own, which stumbles over no Content-Type header."""

from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.utils.http import parse_header_parameters


class RoombookWSGIRequest(WSGIRequest):
    """A request whose query is always UTF-8.

    Django reads it in the charset of the body, before any code of ours could answer an error:
    `charset=zlib` alone would be a crash, and `?format=csv` unreadable beside a UTF-16 body.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            parsed = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        except ValueError:
            # A parameter in a charset that does not exist: nobody else should try to read it.
            meta["CONTENT_TYPE"] = meta["CONTENT_TYPE"].split(";")[0].strip().lower()
            parsed = meta["CONTENT_TYPE"], {}
        self.content_type, self.content_params = parsed


class RoombookWSGIHandler(WSGIHandler):
    """The WSGI application; `django.setup()` comes first."""

    request_class = RoombookWSGIRequest
