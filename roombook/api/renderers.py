"""Renders a response body as bytes: JSON, JSONP, CSV."""

from collections.abc import Mapping
from typing import Any

from rest_framework import renderers
from rest_framework.utils.encoders import JSONEncoder
from rest_framework_csv.renderers import CSVRenderer as LibraryCSVRenderer

from roombook.api import csv_table
from roombook.api.rendering import JSONDict

# DRF would create an encoder for each response.
ENCODER = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


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
        self.callback = callback

    def render(
        self,
        data: JSONDict,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, object] | None = None,
    ) -> bytes:
        body = super().render(data, accepted_media_type, renderer_context)
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
