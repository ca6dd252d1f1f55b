"""A body, already decided, as bytes: JSON, JSONP, CSV."""

from collections.abc import Mapping
from typing import Any

from rest_framework import renderers
from rest_framework.utils.encoders import JSONEncoder
from rest_framework_csv.renderers import CSVRenderer as LibraryCSVRenderer

from roombook.api import csv_table

# The framework would make one for each answer.
ENCODER = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class JSONRenderer(renderers.JSONRenderer):
    """Compact JSON in UTF-8."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        text = ENCODER.encode(data)
        # Line ends for JavaScript, though not for JSON.
        return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


class JSONPRenderer(JSONRenderer):
    """JSON as the argument of the page's own function."""

    media_type = "application/javascript"
    charset = "utf-8"

    def __init__(self, callback: str) -> None:
        self.callback = callback

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        body = super().render(data, accepted_media_type, renderer_context)
        # The comment keeps the answer from beginning with bytes that the caller chose, and no text
        # in it can end a <script>.
        return b"/**/%s(%s);" % (self.callback.encode(), body.replace(b"</", b"<\\/"))


class CSVRenderer(LibraryCSVRenderer):
    """A header row of dotted names, then a row an element of the operation's main list (B2.5)."""

    charset = "utf-8"

    def render(
        self,
        data: Any,
        media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
        writer_opts: Mapping[str, Any] | None = None,
    ) -> bytes:
        view = (renderer_context or {}).get("view")
        table = csv_table.build_table(
            data,
            rows=getattr(view, "csv_rows_field", None),
            field_tree=view.Output.field_tree() if view else {},
        )
        # The library would sort the columns as text and write True: it gets them ready-made.
        written: bytes = super().render(table.lines, media_type, {"header": table.header})
        return written
