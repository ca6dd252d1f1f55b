"""The envelope of every response: `Success`, then the operation's fields or the Error."""

from collections.abc import Iterable, Mapping

from rest_framework.response import Response

from roombook.api.fields import BooleanField, TextField
from roombook.api.rendering import JSONDict, RenderContext
from roombook.api.serializers import ContractSerializer

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class RequestBase(ContractSerializer):
    """Part of every request."""

    AppVersion = TextField(
        help_text="The version of the app, such as `2.10.0`. A deployment may refuse versions that"
        " are too old."
    )


class SecureRequestBase(RequestBase):
    """Part of every request of an operation that needs a Token."""

    Token = TextField(required=True, help_text="The Token that Sign in returned.")


class ResponseError(ContractSerializer):
    """What went wrong, in `Error`, where `Success` is false."""

    Summary = TextField(help_text="A stable code for programs; the table is in behaviour.md, B3.")
    Message = TextField(help_text="A sentence for the person who holds the phone.")
    Details = TextField(
        help_text="Lines for the engineer: `Field.Path: reason`, or the request's id."
    )


class SuccessBase(ContractSerializer):
    """Part of every response to a request that succeeded."""

    Success = BooleanField(required=True, help_text="`true`.")


class ResponseBase(ContractSerializer):
    """The response to a request that failed."""

    Success = BooleanField(required=True, help_text="`false`.")
    Error = ResponseError(help_text="What went wrong.")


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
