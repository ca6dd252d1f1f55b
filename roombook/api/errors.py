"""Turns every exception into an HTTP status and an error envelope: the table of errors (B3)."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.core import signals
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as ModelValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.template import loader
from django.utils.log import log_response
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import set_rollback

from roombook import errors
from roombook.api import formats
from roombook.api.csv_table import FieldOrder, FieldPath, FieldTree, join_path, split_path
from roombook.api.fields import TextField
from roombook.api.serializers import ContractSerializer, JSONDict, RenderContext
from roombook.logging import request_id
from roombook.middleware import is_api
from roombook.naming import to_contract_path

# The stable error codes, each with its HTTP status.
HTTP_STATUSES = {
    "InvalidRequest": 400,
    "InvalidCredentials": 401,
    "NotSignedIn": 401,
    "CardDeclined": 402,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "SlotUnavailable": 409,
    "ReservationNotOpen": 409,
    "PromoCodeInvalid": 409,
    "AllowanceExhausted": 409,
    "NoSavedCard": 409,
    "PaymentSetupNotComplete": 409,
    "ReceiptNotAvailable": 409,
    "RateNotConfigured": 409,
    "IdempotencyKeyReused": 409,
    "AccountInUse": 409,
    "RequestTooLarge": 413,
    "UnsupportedMediaType": 415,
    "AppVersionTooOld": 426,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServiceUnavailable": 503,
}

# Code and message of errors that the framework raises, by their status.
ERRORS_BY_STATUS = {
    400: ("InvalidRequest", errors.InvalidRequest.default_message),
    401: ("NotSignedIn", errors.NotSignedIn.default_message),
    # Clients must not learn whether a row of another account exists.
    403: ("NotFound", errors.NotFound.default_message),
    404: ("NotFound", errors.NotFound.default_message),
    405: ("MethodNotAllowed", "This address only takes POST."),
    406: ("NotAcceptable", "The answer can be had as JSON or CSV only."),
    413: ("RequestTooLarge", "The request is too large."),
    415: ("UnsupportedMediaType", "The request must be JSON or CSV."),
    426: ("AppVersionTooOld", "This version of the app is too old. Please update it."),
    429: ("TooManyRequests", errors.TooManyRequests.default_message),
}
UNKNOWN_PATH = ("NotFound", "There is no such operation.")
# Of every response of the API (B2.6).
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
FORMAT_SUFFIX_PATTERN = re.compile(r"\.(json|csv)\Z")


class ResponseError(ContractSerializer):
    """What went wrong, in `Error`, where `Success` is false."""

    Summary = TextField(help_text="A stable code for programs; the table is in behaviour.md, B3.")
    Message = TextField(help_text="A sentence for the person who holds the phone.")
    Details = TextField(
        help_text="Lines for the engineer: `Field.Path: reason`, or the request's id."
    )


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """The content of an error response."""

    summary: str
    message: str
    details: tuple[str, ...] = ()
    retry_after: int | None = None

    def build_body(self) -> JSONDict:
        details = "\n".join(self.details)
        error = {"summary": self.summary, "message": self.message, "details": details}
        return {"Success": False, "Error": ResponseError.render(error, RenderContext())}

    def to_response(self) -> Response:
        response = Response(self.build_body(), HTTP_STATUSES[self.summary], headers=HEADERS)
        if response.status_code == 401:
            response["WWW-Authenticate"] = "Token"
        if self.retry_after is not None:
            response["Retry-After"] = str(self.retry_after)
        return response


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Return the response to an exception in an operation; defects are logged with traceback."""
    request = context["request"].http_request
    set_rollback()
    answer = get_error_answer(error, context["view"].Input.field_tree())
    response = (answer or build_internal_error()).to_response()
    if answer is None:
        # As Django does: error collectors and the test client listen to this signal.
        signals.got_request_exception.send(sender=None, request=request)
    if response.status_code >= 500:
        reason = (response.reason_phrase, request.path)
        log_response("%s: %s", *reason, response=response, request=request, exception=error)
    return response


def get_error_answer(error: Exception, field_tree: FieldTree) -> ErrorAnswer | None:
    """Return the error response for an exception, or None if the exception is a defect."""
    match error:
        case errors.InvalidRequest():
            lines = format_details(iterate_attributes(error.fields), field_tree)
            return ErrorAnswer(error.code, error.message, (*lines, *error.details))
        case errors.DomainError() if HTTP_STATUSES.get(error.code, 500) != 500:
            return ErrorAnswer(error.code, error.message, error.details, error.retry_after)
        case drf.ValidationError():
            lines = format_details(iterate_reasons(error.detail), field_tree)
            return ErrorAnswer(*ERRORS_BY_STATUS[400], lines)
        case drf.Throttled():
            wait = int(getattr(error, "wait", None) or 1)
            return ErrorAnswer(*ERRORS_BY_STATUS[429], retry_after=wait)
        case drf.ParseError() | drf.UnsupportedMediaType():
            # Their details are messages of this API; DRF's default texts add nothing.
            return ErrorAnswer(*ERRORS_BY_STATUS[error.status_code], (str(error.detail),))
        case drf.APIException() if error.status_code in ERRORS_BY_STATUS:
            return ErrorAnswer(*ERRORS_BY_STATUS[error.status_code])
        case Http404() | PermissionDenied():
            return ErrorAnswer(*ERRORS_BY_STATUS[404])
        case RequestDataTooBig():
            return ErrorAnswer(*ERRORS_BY_STATUS[413])
        case UnreadablePostError():
            return ErrorAnswer(*ERRORS_BY_STATUS[400], ("The body did not arrive whole.",))
        case SuspiciousOperation():
            return ErrorAnswer(*ERRORS_BY_STATUS[400])
        case ModelValidationError():
            # Django's own messages may repeat the value.
            names = error.error_dict if hasattr(error, "error_dict") else {}
            reasons = iterate_attributes(dict.fromkeys(names, "Not valid."))
            return ErrorAnswer(*ERRORS_BY_STATUS[400], format_details(reasons, field_tree))
        case OperationalError() | InterfaceError():
            return build_unavailable()
    return None


def build_internal_error() -> ErrorAnswer:
    message = errors.DomainError.default_message
    return ErrorAnswer("InternalError", message, (f"Request {request_id.get()}",))


def build_unavailable() -> ErrorAnswer:
    error = errors.ServiceUnavailable()
    return ErrorAnswer(error.code, error.message, retry_after=error.retry_after)


# --- Details: one line for each invalid field -----------------------------------------------------


def iterate_attributes(reasons: Mapping[str, str]) -> Iterator[tuple[FieldPath, str]]:
    """Yield the contract's path of each invalid attribute with the reason."""
    for path, reason in reasons.items():
        yield split_path(to_contract_path(path)), reason


def iterate_reasons(
    detail: Mapping[Any, Any] | Iterable[object], path: FieldPath = ()
) -> Iterator[tuple[FieldPath, str]]:
    """Yield the path of each invalid field with the reason, from DRF's nested errors."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            inner_path = path if name == api_settings.NON_FIELD_ERRORS_KEY else (*path, name)
            yield from iterate_reasons(inner, inner_path)
    else:
        yield path, " ".join(str(reason) for reason in detail)


def format_details(
    reasons: Iterable[tuple[FieldPath, str]], field_tree: FieldTree
) -> tuple[str, ...]:
    """Return lines such as `Field.Path: reason`, in the contract's order of fields."""
    order = FieldOrder(field_tree)
    found = sorted(reasons, key=lambda item: order.sort_key(item[0]))
    return tuple(f"{join_path(path)}: {reason}" if path else reason for path, reason in found)


# --- Errors outside of operations -----------------------------------------------------------------


def respond_outside_operation(request: HttpRequest, answer: ErrorAnswer) -> Response:
    """Return the envelope in the requested format if no operation handles the request."""
    suffix = FORMAT_SUFFIX_PATTERN.search(request.path_info)
    response = answer.to_response()
    renderer = formats.select_renderer_for_error(request, suffix and suffix[1])
    response.accepted_renderer, response.accepted_media_type = renderer
    response.renderer_context = {"request": request}  # type: ignore[attr-defined]
    response.render()
    # CommonMiddleware sets it only if the view was called.
    response.headers["Content-Length"] = str(len(response.content))
    return response


@csrf_exempt
def handle_unknown_path(request: HttpRequest) -> HttpResponse:
    """Respond to any path below /api/ that is not an operation, even if DEBUG is on."""
    return respond_outside_operation(request, ErrorAnswer(*UNKNOWN_PATH))


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return respond_outside_operation(request, ErrorAnswer(*ERRORS_BY_STATUS[400]))
    return defaults.bad_request(request, exception)


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return respond_outside_operation(request, ErrorAnswer(*ERRORS_BY_STATUS[403]))
    return defaults.permission_denied(request, exception)


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return respond_outside_operation(request, ErrorAnswer(*UNKNOWN_PATH))
    return defaults.page_not_found(request, exception)


def handler500(request: HttpRequest) -> HttpResponse:
    # Django calls this while it handles the exception.
    is_unavailable = isinstance(sys.exception(), OperationalError | InterfaceError)
    if is_api(request):
        answer = build_unavailable() if is_unavailable else build_internal_error()
        return respond_outside_operation(request, answer)
    if is_unavailable:
        return HttpResponse(loader.get_template("503.html").render(), status=503)
    return defaults.server_error(request)
