"""The life of a request, from top to bottom: Django's request goes in, a response comes out.

`Operation.dispatch` is DRF's. It calls, in this order (B3):

    initialize_request      OperationRequest: reads the whole body, within its limit
    initial                 the method; then DRF's own order:
        negotiation         the format of the response: formats.ContentNegotiation
        determine_version   parses the body (formats.py), then checks AppVersion
        authentication      the Token: accounts/authentication.py
    post                    Input, perform, Output; a repeated request: idempotency.py
    exception_handler       any error, as an envelope: errors.py
    finalize_response       Django then renders the body: formats.py
"""

import io
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError
from django.utils import timezone
from rest_framework import status
from rest_framework.exceptions import (
    APIException,
    MethodNotAllowed,
    ParseError,
    UnsupportedMediaType,
    ValidationError,
)
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from roombook.api import formats, idempotency
from roombook.api.errors import HEADERS
from roombook.api.fields import TextField
from roombook.api.serializers import ContractSerializer, JSONDict, RenderContext
from roombook.errors import DomainError, NotSignedIn

MAX_BODY_BYTES = 256 * 1024
VERSION_FIELD = TextField()
DOTTED_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")
# How a request can end whose account was erased or disabled since its Token was read.
ERRORS_OF_ENDED_ACCOUNTS = {"InvalidRequest", "NoSavedCard", "NotFound", "ReservationNotOpen"}

# Stands for the Token in examples; the page /docs replaces it.
EXAMPLE_TOKEN = "the Token that Sign in returned"
# The day of the bookings in examples; what is served has a day in the future instead.
EXAMPLE_DAY = "2027-03-01"


class EmptySerializer(ContractSerializer):
    """A request or response without fields of its own."""


class Operation(APIView):
    """An operation of the contract: POST fields, get fields.

    A subclass declares `Input` and `Output` and implements `perform(user, **fields)`, which
    returns a dict or an object with the values of `Output`, or None. If `requires_token` is
    False, no Token is checked and `user` is None. `csv_rows_field` names the list whose elements
    become the rows of a CSV response.

    If `accepts_idempotency_key` is True, a request with an Idempotency-Key is performed once (B23).
    `perform` then runs in one transaction, which an error rolls back: it must not call a gateway
    or count failed attempts. A response with `returns_secret` is neither compressed nor saved.

    The description for client developers (openapi.py) consists of the docstring, the help texts of
    the fields, `errors`, which are those that not every operation has, and `example`, a request
    without Token that succeeds with the demo data.
    """

    Input: ClassVar[type[ContractSerializer]] = EmptySerializer
    Output: ClassVar[type[ContractSerializer]] = EmptySerializer
    requires_token: ClassVar[bool] = True
    csv_rows_field: ClassVar[str | None] = None
    accepts_idempotency_key: ClassVar[bool] = False
    # Whether an Idempotency-Key saves the response; a TwoStepOperation saves its first step.
    saves_response: ClassVar[bool] = True
    returns_secret: ClassVar[bool] = False
    errors: ClassVar[Sequence[type[DomainError]]] = ()
    example: ClassVar[JSONDict] = {}

    http_method_names = ["post"]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        saves_secret = cls.returns_secret and cls.saves_response
        if cls.accepts_idempotency_key and (saves_secret or not cls.requires_token):
            raise TypeError(f"{cls.__name__}: the response belongs to no account, or is secret.")
        if not cls.requires_token:
            cls.authentication_classes = []

    def perform(self, *args: Any, **fields: Any) -> object:
        raise NotImplementedError

    def initialize_request(self, request: HttpRequest, *args: object, **kwargs: object) -> Request:
        return OperationRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method != "POST":
            raise MethodNotAllowed(str(request.method))
        super().initial(request, *args, **kwargs)

    def perform_content_negotiation(
        self,
        request: Request,
        force: bool = False,  # noqa: FBT001, FBT002 (DRF's signature)
    ) -> tuple[BaseRenderer, str]:
        if force:
            # An error occurred before the format was known.
            return formats.select_renderer_for_error(request, self.kwargs.get("format"))
        return super().perform_content_negotiation(request)

    def determine_version(self, request: Request, *args: Any, **kwargs: Any) -> tuple[Any, None]:
        return check_app_version(request), None

    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        if self.requires_token and request.auth is None:
            raise NotSignedIn

    def post(self, request: Request, format: str | None = None) -> Response:  # noqa: A002
        key = idempotency.get_key(request) if self.accepts_idempotency_key else None
        fields = self.Input.deserialize(request.data)
        once = None
        if key is not None:
            assert request.user.pk is not None
            once = idempotency.IdempotentRequest(request.user.pk, type(self).__name__, key, fields)
        try:
            output = self.respond(request, fields, once)
        except DomainError as error:
            if self.requires_token and error.code in ERRORS_OF_ENDED_ACCOUNTS:
                accounts = get_user_model().objects.filter(is_active=True)
                if not accounts.filter(pk=request.user.pk or 0).exists():
                    raise NotSignedIn from None
            raise
        return Response({"Success": True, **output}, headers=HEADERS)

    def respond(
        self, request: Request, fields: JSONDict, once: idempotency.IdempotentRequest | None
    ) -> JSONDict:
        """Return the fields of the response; with `once`, those of the first one with its key."""
        if once is None:
            return self.build_output(request, fields)
        return idempotency.respond_once(
            once,
            lambda: self.build_output(request, fields),
            now=timezone.now(),  # noqa: TID251 (an entry point)
        )

    def build_output(self, request: Request, fields: JSONDict) -> JSONDict:
        result = self.perform(request.user if self.requires_token else None, **fields)
        return self.Output.render({} if result is None else result, RenderContext(request))

    def finalize_response(
        self, request: Request, response: Response, *args: object, **kwargs: object
    ) -> Response:
        response.is_secret = self.returns_secret  # type: ignore[attr-defined]
        return super().finalize_response(request, response, *args, **kwargs)


class TwoStepOperation(Operation):
    """An operation that stores what is requested, and then calls a gateway about it.

    `prepare(user, **fields)` does the first step in a transaction, and returns the fields of
    `perform`, which does the second one outside. A request with a known Idempotency-Key repeats
    only the second step, so that no secret of the response is saved.
    """

    saves_response = False

    def prepare(self, *args: Any, **fields: Any) -> JSONDict:
        """Store what is requested. The result consists of JSON values."""
        raise NotImplementedError

    def respond(
        self, request: Request, fields: JSONDict, once: idempotency.IdempotentRequest | None
    ) -> JSONDict:
        if once is None:
            return self.build_output(request, self.prepare(request.user, **fields))
        prepared = idempotency.respond_once(
            once,
            lambda: self.prepare(request.user, **fields),
            now=timezone.now(),  # noqa: TID251 (an entry point)
        )
        try:
            return self.build_output(request, prepared)
        except Exception:
            idempotency.forget(once)
            raise


# --- The body -------------------------------------------------------------------------------------


class OperationRequest(Request):
    """A request whose whole body is read at once, up to MAX_BODY_BYTES."""

    def __init__(self, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(request, **kwargs)
        # Signals, logs and the middleware get Django's own.
        self.http_request = request

    @property
    def data(self) -> Any:
        """The fields of the body. An error leads to no part of it, which may be a card number."""
        try:
            return super().data
        except (APIException, DomainError, RequestDataTooBig, UnreadablePostError) as error:
            refusal = error
        # Drop the frames and the causes, which have read the body.
        refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
        raise refusal

    @property
    def stream(self) -> io.BytesIO | None:
        """The body, which is not kept. An empty one without Content-Type has no fields."""
        body = read_body(self.http_request)
        return io.BytesIO(body) if body or self.content_type else None


def read_body(request: HttpRequest) -> bytes:
    """Return the body, whether its length is declared or it comes in chunks."""
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in {"", "identity"}:
        # A few compressed bytes may expand to gigabytes.
        raise UnsupportedMediaType(encoding, "Content-Encoding: Only identity is read.")
    if "CONTENT_LENGTH" not in request.META:
        return read_chunked_body(request)
    length = request.META["CONTENT_LENGTH"].strip()
    if not re.fullmatch(r"[0-9]{0,18}", length):
        raise ParseError("Content-Length: Must be a number.")
    if int(length or 0) > MAX_BODY_BYTES:
        raise RequestDataTooBig
    # Not `request.body`, which would keep it.
    body = request.read()
    if len(body) < int(length or 0):
        raise ParseError("The body ended too early.")
    return body


def read_chunked_body(request: HttpRequest) -> bytes:
    """Return a body without declared length. Django reads none, but gunicorn marks its end."""
    if not request.META.get("wsgi.input_terminated"):
        return b""
    try:
        body: bytes = request.META["wsgi.input"].read(MAX_BODY_BYTES + 1)
    except OSError as error:
        raise UnreadablePostError(*error.args) from error
    except Exception as error:
        # The server raises exceptions of its own for malformed chunks.
        raise ParseError("The body is not chunked as it should be.") from error
    if len(body) > MAX_BODY_BYTES:
        raise RequestDataTooBig
    return body


# --- AppVersion (B4) ------------------------------------------------------------------------------


class AppVersionTooOld(APIException):
    """The app is older than MINIMUM_APP_VERSION."""

    status_code = status.HTTP_426_UPGRADE_REQUIRED
    default_code = "AppVersionTooOld"


def check_app_version(request: Request) -> str | None:
    """Raise AppVersionTooOld if the app is too old; a missing or unreadable version passes."""
    fields: Any = request.data  # The parsers make sure that it is an object.
    sent = fields.get("AppVersion")
    if sent is None:
        return None
    try:
        version = VERSION_FIELD.run_validation(sent)
    except ValidationError as error:
        raise ValidationError({"AppVersion": error.detail}) from error
    # For the log line of this request.
    request.http_request.app_version = "".join(filter(str.isprintable, version))  # type: ignore[attr-defined]
    numbers, minimum = parse_version(version), parse_version(settings.MINIMUM_APP_VERSION)
    if numbers is not None and minimum is not None and numbers < minimum:
        raise AppVersionTooOld
    return version


def parse_version(version: str) -> tuple[int, ...] | None:
    """Return `2.10.0` as numbers that compare: 2.10 is above 2.9 and equal to 2.10.0."""
    if not DOTTED_NUMBERS.fullmatch(version):
        return None
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
