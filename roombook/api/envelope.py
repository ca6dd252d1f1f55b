"""The body that every answer has: `Success`, then the operation's fields or the Error."""

from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework.response import Response

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def build_success(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"Success": True, **fields}


def build_failure(summary: str, message: str, details: Iterable[str] = ()) -> dict[str, Any]:
    """`summary` is for programs, `message` for the person with the phone, `details` for us."""
    error = {"Summary": summary, "Message": message, "Details": "\n".join(details)}
    return {"Success": False, "Error": {name: value for name, value in error.items() if value}}


def render_response(response: Response) -> Response:
    """The response with its body, and its length, which Django's middleware tells of pages."""
    response.render()
    response.headers["Content-Length"] = str(len(response.content))
    return response


def build_response(
    body: dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The response with what every answer of the API carries (B2.6)."""
    return Response(body, status=status, headers={**HEADERS, **(headers or {})})
