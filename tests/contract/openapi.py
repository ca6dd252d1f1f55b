"""Generates docs/openapi.json and openapi-3.0.json with drf-spectacular (`make contract-docs`).

Nothing is described here: texts, types and bounds come from the operations and their serializers.
roombook/api/views.py serves the files. example_responses.json contains what the examples of
requests get if the database has the demo data; `make contract-docs` writes it too.
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
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import append_meta, build_array_type, build_object_type
from drf_spectacular.utils import (
    Direction,
    OpenApiExample,
    OpenApiParameter,
    OpenApiRequest,
    OpenApiResponse,
)

from roombook import errors
from roombook.api import csv_table, fields, idempotency
from roombook.api.errors import ERRORS_BY_STATUS, HTTP_STATUSES, ErrorAnswer, ResponseError
from roombook.api.formats import (
    CALLBACK_PATTERN,
    JAVASCRIPT_TYPES,
    MAX_CALLBACK_LENGTH,
    CSVRenderer,
)
from roombook.api.operations import EXAMPLE_TOKEN, Operation
from roombook.api.serializers import (
    AnyField,
    ContractListSerializer,
    ContractSerializer,
    JSONDict,
)
from tests.contract.schema import find_nested_classes, get_operation_name, get_operations

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
# The introduction of the OpenAPI description.
DESCRIPTION = """\
roombook books meeting rooms. All operations are `POST` requests with named fields.

- **Sign in** returns a Token. Every other request has it in its field `Token`; there is no
  authentication header.
- **Requests** are JSON, or CSV with a header and one row, whose columns have dotted names
  (`PaymentInfo.FirstName`, `ServiceOptions.0.ServiceId`). Unknown fields are ignored, and `null` is
  the same as an absent field.
- **Responses** are JSON or CSV: by a suffix of the path (`/api/sign-in.csv`, `/api/sign-in.json`),
  else by the query parameter `format`, else by `Accept`. `callback` wraps JSON as JSONP. Fields
  without a value are left out.
- **Errors** have `Success` false and an `Error`. Programs decide by the HTTP status and by
  `Error.Summary`, which is a stable code. A path that does not exist is 404 `NotFound`, a method
  other than POST is 405 `MethodNotAllowed`.
- **Dates and times** are ISO 8601. Responses have the offset of the center. A time without an
  offset, in a request about a center, is the center's local time.
- **New values** of enumerations and new fields may be added: accept those that you do not know.
"""

OPENAPI_3_1 = {
    "TITLE": "roombook",
    # A test compares it with pyproject.toml.
    "VERSION": "0.1.0",
    "DESCRIPTION": DESCRIPTION,
    "OAS_VERSION": "3.1.0",
    "PREPROCESSING_HOOKS": ["tests.contract.openapi.list_endpoints"],
    "POSTPROCESSING_HOOKS": ["tests.contract.openapi.share_error_responses"],
    "SORT_OPERATIONS": False,
    "SORT_OPERATION_PARAMETERS": False,
}
# Many generators of clients do not know 3.1 yet.
OPENAPI_3_0 = {**OPENAPI_3_1, "OAS_VERSION": "3.0.3"}
LOCAL_TIME_PATTERN = f"^({fields.DATE_TIME_PATTERN.pattern})$"
DAY_OR_TIME_PATTERN = f"^({fields.DATE_PATTERN.pattern}|{fields.DATE_TIME_PATTERN.pattern})$"


class RequestBase(ContractSerializer):
    """Part of every request."""

    AppVersion = fields.TextField(
        help_text="The version of the app, such as `2.10.0`. A deployment may refuse versions that"
        " are too old."
    )


class SecureRequestBase(RequestBase):
    """Part of every request of an operation that needs a Token."""

    Token = fields.TextField(required=True, help_text="The Token that Sign in returned.")


class SuccessBase(ContractSerializer):
    """Part of every response to a request that succeeded."""

    Success = fields.BooleanField(required=True, help_text="`true`.")


class ResponseBase(ContractSerializer):
    """The response to a request that failed."""

    Success = fields.BooleanField(required=True, help_text="`false`.")
    Error = ResponseError(help_text="What went wrong.")


# --- Operations -----------------------------------------------------------------------------------


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
        view = self.operation
        base = SecureRequestBase if view.requires_token else RequestBase
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
        view = self.operation
        output = make_component(f"{view.__name__}Response", SuccessBase, view.Output)
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
                ResponseBase,
                "\n".join(f"- `{code}`: {message}" for code, message in messages.items()),
                [
                    OpenApiExample(code, ErrorAnswer(code, message).build_body())
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


Operation.schema = OperationAutoSchema()


def make_component(name: str, *bases: type[ContractSerializer]) -> type[ContractSerializer]:
    return type(name, bases, {"__doc__": None})


# --- Examples -------------------------------------------------------------------------------------


def build_example(operation: type[Operation]) -> JSONDict:
    return {**({"Token": EXAMPLE_TOKEN} if operation.requires_token else {}), **operation.example}


@cache
def read_example_responses() -> dict[str, JSONDict]:
    """Return the body of the response to each example, by the path of its operation."""
    responses: dict[str, JSONDict] = json.loads(EXAMPLE_RESPONSES.read_text())
    return responses


def render_csv(fields: JSONDict) -> str:
    row = {csv_table.join_path(path): cell for path, cell in csv_table.iterate_leaves(fields)}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row.keys(), row.values()])
    return text.getvalue()


# --- Errors ---------------------------------------------------------------------------------------


def list_errors(operation: type[Operation]) -> list[str]:
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
    error = getattr(errors, code, None)
    if error is not None:
        return str(error.default_message)
    messages = dict(ERRORS_BY_STATUS.values())
    return messages.get(code, errors.DomainError.default_message)


# --- Fields ---------------------------------------------------------------------------------------


class ContractSerializerExtension(OpenApiSerializerExtension):
    """Describes an object of the contract.

    Responses may leave out all fields but Success, so only fields of requests are required.
    """

    target_class = ContractSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> JSONDict:
        serializer: ContractSerializer = self.target
        if type(serializer) in find_request_types():
            direction = "request"
        defaults = find_defaults(auto_schema.view) if isinstance(serializer, RequestBase) else {}
        properties = {}
        for name, field in serializer.fields.items():
            description = field.help_text or ""
            if field.source in defaults:
                description += f" Default: `{json.dumps(defaults[field.source])}`."
            meta = {"description": description.strip()} if description else {}
            properties[name] = append_meta(describe_field(field, auto_schema, direction), meta)
        return build_object_type(
            properties,
            required=[name for name, field in serializer.fields.items() if field.required],
            description=inspect.cleandoc(type(serializer).__doc__ or ""),
        )


@cache
def find_request_types() -> frozenset[type[ContractSerializer]]:
    """Return the types inside requests. They are described as requests have them: with bounds."""
    operations = get_operations(get_resolver().url_patterns).values()
    return frozenset(find_nested_classes([each.Input() for each in operations]).values())


def find_defaults(operation: Any) -> JSONDict:
    parameters = inspect.signature(operation.perform).parameters.values()
    return {
        each.name: each.default
        for each in parameters
        if each.default not in (inspect.Parameter.empty, None, "")
    }


def describe_field(field: AnyField, auto_schema: AutoSchema, direction: Direction) -> JSONDict:
    """Return the schema of a field's value, without its description."""
    match field:
        case ContractListSerializer() | fields.ListField():
            schema: JSONDict = build_array_type(describe_field(field.child, auto_schema, direction))
            return schema | ({"maxItems": field.max_length} if direction == "request" else {})
        case ContractSerializer(contract_type=str(name)) if name:
            # A part of this type, which another field describes whole.
            return {"$ref": f"#/components/schemas/{name}"}
        case ContractSerializer():
            reference: JSONDict = auto_schema.resolve_serializer(field, direction).ref
            return reference
    schema = describe_value(field, direction)
    nullable = getattr(field, "contract_type", "").endswith("?")
    described: JSONDict = append_meta(schema, {"nullable": True} if nullable else {})
    return described


def describe_value(field: AnyField, direction: Direction) -> JSONDict:
    """Return the schema of a value that is neither an object nor a list."""
    is_request = direction == "request"
    # Requests are checked against bounds, responses are not.
    bounds = describe_bounds(field) if is_request and hasattr(field, "min_value") else {}
    match field:
        case fields.ChoiceField():
            # Responses may get new values, which the clients of today should accept.
            return {"type": "string", "enum" if is_request else "x-extensible-enum": field.values}
        case fields.TextField():
            if not is_request:
                return {"type": "string"}
            least = {} if field.allow_blank else {"minLength": 1}
            return {"type": "string", "maxLength": field.max_length, **least}
        case fields.BooleanField():
            return {"type": "boolean"}
        case fields.IntegerField():
            return {"type": "integer", "format": "int32", **bounds}
        case fields.DoubleField():
            return {"type": "number", "format": "double", **bounds}
        case fields.DecimalField():
            return {"type": "number", **bounds}
        case fields.CenterDayOrTimeField() if is_request:
            return {"type": "string", "pattern": DAY_OR_TIME_PATTERN}
        case fields.CenterDateTimeField() if is_request:
            # A local time without offset is no `date-time`.
            return {"type": "string", "pattern": LOCAL_TIME_PATTERN}
        case fields.DateTimeField():
            return {"type": "string", "format": "date-time"}
        case fields.ObjectField():
            return {"type": "object", "additionalProperties": True}
        case fields.UrlField():
            return {"type": "string", "format": "uri"}
    raise TypeError(f"{type(field).__name__} has no description; add it to describe_value.")


def describe_bounds(field: Any) -> JSONDict:
    bounds = {"minimum": field.min_value, "maximum": field.max_value}
    return {name: bound for name, bound in bounds.items() if bound is not None}
