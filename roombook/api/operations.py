"""The base class of all operations: one request class, one response class, one domain call."""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from roombook.api import envelope, idempotency, negotiation
from roombook.api.app_version import check_app_version
from roombook.api.parsers import BoundedRequest
from roombook.api.rendering import JSONDict, RenderContext
from roombook.api.serializers import ContractSerializer
from roombook.errors import DomainError, NotSignedIn

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

    def perform(self, *args: Any, **fields: Any) -> object:
        raise NotImplementedError

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
        return envelope.build_response(envelope.build_success(output))

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

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check in the order of B3: method, format, body, app, Token; `post` checks the fields."""
        if request.method != "POST":
            raise MethodNotAllowed(str(request.method))
        self.format_kwarg = self.get_format_suffix(**kwargs)
        accepted = self.perform_content_negotiation(request)
        request.accepted_renderer, request.accepted_media_type = accepted
        check_app_version(request)  # Reads and parses the body.
        if self.requires_token:
            self.perform_authentication(request)
            if request.auth is None:
                raise NotSignedIn

    def initialize_request(self, request: HttpRequest, *args: object, **kwargs: object) -> Request:
        return BoundedRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    # Parsers and renderers have no state, so all requests share their instances.

    def get_parsers(self) -> list[BaseParser]:
        return get_shared_instances(tuple(self.parser_classes))

    def get_renderers(self) -> list[BaseRenderer]:
        return get_shared_instances(tuple(self.renderer_classes))

    def get_authenticators(self) -> list[BaseAuthentication]:
        return super().get_authenticators() if self.requires_token else []

    def perform_content_negotiation(
        self,
        request: Request,
        force: bool = False,  # noqa: FBT001, FBT002 (DRF's signature)
    ) -> tuple[BaseRenderer, str]:
        if force:
            # An error occurred before the format was known.
            return negotiation.select_renderer_for_error(request, self.kwargs.get("format"))
        return super().perform_content_negotiation(request)

    def finalize_response(
        self, request: Request, response: Response, *args: object, **kwargs: object
    ) -> Response:
        """Render the body here, so that an error while rendering gets the envelope too."""
        response.is_secret = self.returns_secret  # type: ignore[attr-defined]
        try:
            finalized = super().finalize_response(request, response, *args, **kwargs)
            return envelope.render_response(finalized)
        except Exception as error:
            failed = self.handle_exception(error)
            finalized = super().finalize_response(request, failed, *args, **kwargs)
            return envelope.render_response(finalized)


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


@cache
def get_shared_instances(classes: tuple[type[Any], ...]) -> list[Any]:
    return [each() for each in classes]
