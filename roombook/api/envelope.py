"""The envelope of every response: `Success`, then the operation's fields or the Error."""

from collections.abc import Iterable, Mapping

from rest_framework.response import Response

from roombook.api.fields import TextField
from roombook.api.rendering import JSONDict, RenderContext
from roombook.api.serializers import ContractSerializer

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class ResponseError(ContractSerializer):
    """What went wrong, in `Error`, where `Success` is false."""

    Summary = TextField(help_text="A stable code for programs; the table is in behaviour.md, B3.")
    Message = TextField(help_text="A sentence for the person who holds the phone.")
    Details = TextField(
        help_text="Lines for the engineer: `Field.Path: reason`, or the request's id."
    )


def build_success(fields: Mapping[str, object]) -> JSONDict:
    return {"Success": True, **fields}


def build_failure(summary: str, message: str, details: Iterable[str] = ()) -> JSONDict:
    error = {"summary": summary, "message": message, "details": "\n".join(details)}
    return {"Success": False, "Error": ResponseError.render(error, RenderContext())}


def build_response(
    body: JSONDict, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response with the headers that all API responses have (B2.6)."""
    return Response(body, status=status, headers={**HEADERS, **(headers or {})})


def render_response(response: Response) -> Response:
    """Render the body now, and set its length, which Django's middleware sets for pages only."""
    response.render()
    response.headers["Content-Length"] = str(len(response.content))
    return response
