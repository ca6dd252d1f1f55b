"""The OpenAPI description of all operations (docs/openapi.json), made by drf-spectacular.

Nothing is described here: texts, types and bounds come from the operations and their serializers.
`make contract-docs` writes the files, and roombook/api/views.py serves them. It also writes
example_responses.json: what the examples of requests get if the database has the demo data.
"""

import csv
import inspect
import io
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, cast

from django.urls import get_resolver
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiRequest,
    OpenApiResponse,
)

from roombook import errors
from roombook.api import csv_table, envelope, idempotency
from roombook.api import openapi_types as openapi_types  # registers how fields are described
from roombook.api.contract_schema import get_operation_name, get_operations
from roombook.api.exceptions import ERRORS_BY_STATUS, HTTP_STATUSES
from roombook.api.negotiation import CALLBACK_PATTERN, JAVASCRIPT_TYPES, MAX_CALLBACK_LENGTH
from roombook.api.operations import EXAMPLE_TOKEN, Operation
from roombook.api.renderers import CSVRenderer
from roombook.api.rendering import JSONDict
from roombook.api.serializers import ContractSerializer

# Errors that every operation can have. MethodNotAllowed belongs to other methods.
COMMON_ERRORS = (
    "InvalidRequest",
    "NotAcceptable",
    "RequestTooLarge",
    "UnsupportedMediaType",
    "AppVersionTooOld",
    "InternalError",
    "ServiceUnavailable",
)
EXAMPLE_RESPONSES = Path(__file__).with_name("example_responses.json")
CSV_SCHEMA = {"type": "string", "description": "A header of dotted names, and rows."}
JSONP_SCHEMA = {"type": "string", "description": "The JSON response as the argument of a call."}


def list_endpoints(endpoints: object) -> list[tuple[str, str, str, Any]]:
    """Return path, path, method and view of all operations (a preprocessing hook).

    The endpoints that drf-spectacular finds have the suffix of a format in their paths.
    """
    operations = get_operations(get_resolver().url_patterns)
    return [(path, path, "POST", view.as_view()) for path, view in operations.items()]


def share_error_responses(result: JSONDict, **_: object) -> JSONDict:
    """Move the response of each error to the components (a postprocessing hook).

    The errors of the status 409 differ between operations, and stay with them.
    """
    shared: JSONDict = {}
    for path in result["paths"].values():
        responses = path["post"]["responses"]
        for status, response in responses.items():
            codes = list(response["content"]["application/json"].get("examples", ()))
            if status != "200" and len(codes) == 1:
                shared[codes[0]] = response
                responses[status] = {"$ref": f"#/components/responses/{codes[0]}"}
    result["components"]["responses"] = dict(sorted(shared.items()))
    return result


class OperationAutoSchema(AutoSchema):
    """Describes an operation."""

    @property
    def operation(self) -> type[Operation]:
        return cast("type[Operation]", type(self.view))

    def get_operation(self, *args: Any, **kwargs: Any) -> JSONDict:
        operation: JSONDict = super().get_operation(*args, **kwargs) or {}
        operation["requestBody"]["required"] = True
        return operation

    def get_operation_id(self) -> str:
        name = self.operation.__name__
        return name[0].lower() + name[1:]

    def get_summary(self) -> str:
        return get_operation_name(self.operation)

    def get_description(self) -> str:  # type: ignore[override]  # as the base class
        return inspect.getdoc(self.operation) or ""

    def get_tags(self) -> list[str]:
        """Return the app of the operation."""
        return [self.operation.__module__.split(".")[0].capitalize()]

    def get_auth(self) -> list[JSONDict]:
        return []  # The Token is a field of the body.

    def get_override_parameters(self) -> list[Any]:
        parameters = [
            OpenApiParameter(
                "format",
                enum=["json", "csv"],
                description="The format of the response. A suffix of the path does the same, such"
                " as `/api/sign-in.csv`.",
            ),
            OpenApiParameter(
                "callback",
                {
                    "type": "string",
                    "pattern": f"^{CALLBACK_PATTERN.pattern}$",
                    "maxLength": MAX_CALLBACK_LENGTH,
                },
                description="Wraps a JSON response as JSONP: the name of a JavaScript function.",
            ),
            OpenApiParameter(
                "X-Request-ID",
                location=OpenApiParameter.HEADER,
                response=True,
                description="The id of the request: show it to users who ask for help.",
            ),
            OpenApiParameter(
                "Retry-After",
                int,
                OpenApiParameter.HEADER,
                response=[429, 503],
                description="Seconds to wait before the request is sent again.",
            ),
        ]
        if self.operation.accepts_idempotency_key:
            parameters.append(
                OpenApiParameter(
                    idempotency.HEADER,
                    {"type": "string", "pattern": f"^{idempotency.KEY_PATTERN.pattern}$"},
                    OpenApiParameter.HEADER,
                    description="A key of the client's own for this request: while it is kept, the"
                    " same key and request get the same response again.",
                )
            )
        return parameters

    def get_request_serializer(self) -> Any:
        """Return the description of each media type."""
        view = self.operation
        base = envelope.SecureRequestBase if view.requires_token else envelope.RequestBase
        example = build_example(view)
        return {
            "application/json": OpenApiRequest(
                make_component(f"{view.__name__}Request", view.Input, base),
                examples=[OpenApiExample("Demo data", example)],
            ),
            "text/csv": OpenApiRequest(
                CSV_SCHEMA, examples=[OpenApiExample("Demo data", render_csv(example))]
            ),
        }

    def get_response_serializers(self) -> Any:
        """Return the description of each status and media type."""
        view = self.operation
        output = make_component(f"{view.__name__}Response", envelope.SuccessBase, view.Output)
        example = read_example_responses().get(self.path)
        responses = self._describe_response(
            200,
            output,
            "The request succeeded. Long lists of the example are shortened to one element.",
            [OpenApiExample("Demo data", example)] if example else [],
            [OpenApiExample("Demo data", self._render_csv_response(example))] if example else [],
        )
        for status, codes in group_by_status(list_errors(view)).items():
            messages = {code: find_message(code) for code in codes}
            responses |= self._describe_response(
                status,
                envelope.ResponseBase,
                "\n".join(f"- `{code}`: {message}" for code, message in messages.items()),
                [
                    OpenApiExample(code, envelope.build_failure(code, message))
                    for code, message in messages.items()
                ],
            )
        return responses

    def _render_csv_response(self, example: JSONDict) -> str:
        return CSVRenderer().render(example, renderer_context={"view": self.view}).decode()

    @staticmethod
    def _describe_response(
        status: int,
        serializer: type[ContractSerializer],
        description: str,
        examples: Iterable[OpenApiExample] = (),
        csv_examples: Iterable[OpenApiExample] = (),
    ) -> dict[tuple[int, str], OpenApiResponse]:
        return {
            (status, "application/json"): OpenApiResponse(serializer, description, list(examples)),
            (status, "text/csv"): OpenApiResponse(CSV_SCHEMA, description, list(csv_examples)),
            (status, JAVASCRIPT_TYPES[0]): OpenApiResponse(JSONP_SCHEMA, description),
        }


def make_component(name: str, *bases: type[ContractSerializer]) -> type[ContractSerializer]:
    """Return a serializer with the fields of these, in their order."""
    return type(name, bases, {"__doc__": None})


# --- Examples -------------------------------------------------------------------------------------


def build_example(operation: type[Operation]) -> JSONDict:
    """Return a complete request."""
    return {**({"Token": EXAMPLE_TOKEN} if operation.requires_token else {}), **operation.example}


@cache
def read_example_responses() -> dict[str, JSONDict]:
    """Return the body of the response to each example, by the path of its operation."""
    responses: dict[str, JSONDict] = json.loads(EXAMPLE_RESPONSES.read_text())
    return responses


def render_csv(fields: JSONDict) -> str:
    """Return a request's fields as a header and a row."""
    row = {csv_table.join_path(path): cell for path, cell in csv_table.iterate_leaves(fields)}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row.keys(), row.values()])
    return text.getvalue()


# --- Errors ---------------------------------------------------------------------------------------


def list_errors(operation: type[Operation]) -> list[str]:
    """Return the codes of the errors that an operation can have."""
    own = [error.code for error in operation.errors]
    if operation.requires_token:
        own.append(errors.NotSignedIn.code)
    if operation.accepts_idempotency_key:
        own.append(errors.IdempotencyKeyReused.code)
    return [*COMMON_ERRORS, *own]


def group_by_status(codes: Iterable[str]) -> dict[int, list[str]]:
    """Return codes of errors by their HTTP status, in its order and that of the table of errors."""
    known = set(codes)
    grouped: dict[int, list[str]] = {}
    for code, status in HTTP_STATUSES.items():
        if code in known:
            grouped.setdefault(status, []).append(code)
    return grouped


def find_message(code: str) -> str:
    """Return the usual message of an error."""
    error = getattr(errors, code, None)
    if error is not None:
        return str(error.default_message)
    messages = dict(ERRORS_BY_STATUS.values())
    return messages.get(code, errors.DomainError.default_message)
