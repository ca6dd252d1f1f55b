"""Whatever goes wrong -> status and envelope: the one table of errors (B3)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.core import signals
from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import ValidationError as ModelValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.utils.log import log_response
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import set_rollback

from roombook import errors
from roombook.api import envelope, negotiation
from roombook.api.csv_table import INDEX_PATTERN, FieldOrder, FieldPath, FieldTree, join_path
from roombook.api.naming import to_contract_path
from roombook.logging import request_id
from roombook.middleware import is_api

# The stable codes, each with its HTTP status.
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
    "RateNotConfigured": 409,
    "RequestTooLarge": 413,
    "UnsupportedMediaType": 415,
    "AppVersionTooOld": 426,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServiceUnavailable": 503,
}

# What the framework refuses by itself: its status, our code and sentence.
ERRORS_BY_STATUS = {
    400: ("InvalidRequest", errors.InvalidRequest.default_message),
    401: ("NotSignedIn", errors.NotSignedIn.default_message),
    # Whether a thing exists that is not the caller's is none of the caller's business.
    403: ("NotFound", errors.NotFound.default_message),
    404: ("NotFound", errors.NotFound.default_message),
    405: ("MethodNotAllowed", "This address only takes POST."),
    406: ("NotAcceptable", "The answer can be had as JSON or CSV only."),
    413: ("RequestTooLarge", "The request is too large."),
    415: ("UnsupportedMediaType", "The request must be JSON or CSV."),
    426: ("AppVersionTooOld", "This version of the app is too old. Please update it."),
    429: ("TooManyRequests", "Too many attempts. Please wait a little and try again."),
}

UNKNOWN_PATH_MESSAGE = "There is no such operation."
FORMAT_SUFFIX_PATTERN = re.compile(r"\.(json|csv)\Z")


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """What the caller gets to know of an error."""

    summary: str
    message: str
    details: tuple[str, ...] = ()
    retry_after: int | None = None

    def to_response(self) -> Response:
        status = HTTP_STATUSES[self.summary]
        headers = {}
        if status == 401:
            headers["WWW-Authenticate"] = "Token"
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        body = envelope.build_failure(self.summary, self.message, self.details)
        return envelope.build_response(body, status, headers)


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """The answer to anything that an operation raised; a defect is logged with its traceback."""
    request = context["request"]
    set_rollback()
    refusal = get_error_answer(error, context["view"].Input.field_tree())
    response = (refusal or build_internal_error()).to_response()
    if refusal is None:
        # As Django does itself: error collectors and the test client listen.
        signals.got_request_exception.send(sender=None, request=request._request)
    if response.status_code >= 500:
        log_response(
            "%s: %s",
            response.reason_phrase,
            request.path,
            response=response,
            request=request._request,
            exception=error,
        )
    return response


def get_error_answer(error: Exception, shape: FieldTree) -> ErrorAnswer | None:
    """What to tell the caller, or None for a defect."""
    match error:
        case errors.InvalidRequest():
            paths = {to_contract_path(path): reason for path, reason in error.fields.items()}
            lines = format_details(((split_path(name), why) for name, why in paths.items()), shape)
            return ErrorAnswer(error.code, error.message, (*lines, *error.details))
        case errors.DomainError() if HTTP_STATUSES.get(error.code, 500) != 500:
            return ErrorAnswer(error.code, error.message, error.details, error.retry_after)
        case drf.ValidationError():
            return ErrorAnswer(
                *ERRORS_BY_STATUS[400], format_details(iterate_reasons(error.detail), shape)
            )
        case drf.Throttled():
            return ErrorAnswer(
                *ERRORS_BY_STATUS[429], retry_after=int(getattr(error, "wait", None) or 1)
            )
        case drf.APIException() if error.status_code in ERRORS_BY_STATUS:
            details = (str(error.detail),) if has_detail_of_ours(error) else ()
            return ErrorAnswer(*ERRORS_BY_STATUS[error.status_code], details)
        case Http404() | PermissionDenied():
            return ErrorAnswer(*ERRORS_BY_STATUS[404])
        case RequestDataTooBig():
            return ErrorAnswer(*ERRORS_BY_STATUS[413])
        case UnreadablePostError():
            return ErrorAnswer(*ERRORS_BY_STATUS[400], ("The body did not arrive whole.",))
        case SuspiciousOperation():
            return ErrorAnswer(*ERRORS_BY_STATUS[400])
        case ModelValidationError():
            # Its own words may repeat the value.
            wrong = error.error_dict if hasattr(error, "error_dict") else {}
            fields = ((split_path(to_contract_path(name)), "Not valid.") for name in wrong)
            return ErrorAnswer(*ERRORS_BY_STATUS[400], format_details(fields, shape))
        case OperationalError() | InterfaceError():
            unavailable = errors.ServiceUnavailable()
            return ErrorAnswer(
                unavailable.code, unavailable.message, retry_after=unavailable.retry_after
            )
    return None


def has_detail_of_ours(error: drf.APIException) -> bool:
    """Whether the text is our own: the framework's default texts tell nothing more."""
    return isinstance(error, drf.ParseError | drf.UnsupportedMediaType)


def build_internal_error() -> ErrorAnswer:
    return ErrorAnswer(
        "InternalError",
        errors.DomainError.default_message,
        (f"Request {request_id.get()}",),
    )


# --- details: one line a field ------------------------------------------------------------------


def iterate_reasons(detail: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Each wrong field with why, out of the framework's nested errors."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            here = path if name == api_settings.NON_FIELD_ERRORS_KEY else (*path, name)
            yield from iterate_reasons(inner, here)
    else:
        yield path, " ".join(str(reason) for reason in detail)


def split_path(name: str) -> FieldPath:
    parts = name.split(".")
    return tuple(int(part) if INDEX_PATTERN.fullmatch(part) else part for part in parts)


def format_details(wrong: Any, shape: FieldTree) -> tuple[str, ...]:
    """`Field.Path: reason`, in the order in which the contract lists the fields."""
    order = FieldOrder(shape)
    found = sorted(wrong, key=lambda item: order.sort_key(item[0]))
    return tuple(f"{join_path(path)}: {why}" if path else why for path, why in found)


# --- what never reaches an operation ------------------------------------------------------------


def respond_outside_operation(request: HttpRequest, refusal: ErrorAnswer) -> Response:
    """The envelope in the format asked for, where no operation is at work."""
    suffix = FORMAT_SUFFIX_PATTERN.search(request.path_info)
    response = refusal.to_response()
    renderer, media_type = negotiation.select_renderer_for_error(
        request, suffix[1] if suffix else None
    )
    response.accepted_renderer = renderer
    response.accepted_media_type = media_type
    response.renderer_context = {"request": request}  # type: ignore[attr-defined]
    return envelope.render_response(response)


@csrf_exempt
def handle_unknown_path(request: HttpRequest) -> HttpResponse:
    """Any path below /api/ that is no operation, also with DEBUG on."""
    return respond_outside_operation(request, ErrorAnswer("NotFound", UNKNOWN_PATH_MESSAGE))


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
        return respond_outside_operation(request, ErrorAnswer("NotFound", UNKNOWN_PATH_MESSAGE))
    return defaults.page_not_found(request, exception)


def handler500(request: HttpRequest) -> HttpResponse:
    if is_api(request):
        return respond_outside_operation(request, build_internal_error())
    return defaults.server_error(request)
