"""One class per operation: what comes in, what goes out, and one call into the domain."""

from functools import cache
from typing import Any, ClassVar

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from roombook.api import app_version, envelope, negotiation
from roombook.api.parsers import BoundedRequest
from roombook.api.serializers import ContractSerializer
from roombook.errors import NotSignedIn


@cache
def get_shared_instances(classes: tuple[type[Any], ...]) -> list[Any]:
    return [each() for each in classes]


class EmptySerializer(ContractSerializer):
    """No fields of its own."""


class Operation(APIView):
    """One operation of the contract: POST fields, get fields.

    A subclass says `Input` and `Output` and implements `perform(user, **fields)`, which returns a
    mapping or an object that has the fields of `Output`, or None. With `signed_in = False` no Token
    is asked for and `user` is None. `csv_rows` names the list that makes the rows of a CSV answer.
    """

    Input: ClassVar[type[ContractSerializer]] = EmptySerializer
    Output: ClassVar[type[ContractSerializer]] = EmptySerializer
    requires_token: ClassVar[bool] = True
    csv_rows_field: ClassVar[str | None] = None

    http_method_names = ["post"]

    def perform(self, *args: Any, **fields: Any) -> Any:
        raise NotImplementedError

    def post(self, request: Request, format: str | None = None) -> Response:  # noqa: A002
        fields = self.Input.deserialize(request.data)
        result = self.perform(request.user if self.requires_token else None, **fields)
        output = self.Output.render({} if result is None else result, {"request": request})
        return envelope.build_response(envelope.build_success(output))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Judge in the order of B3: method, format, body, app, Token; `post` judges the fields."""
        if request.method != "POST":
            raise MethodNotAllowed(str(request.method))
        self.format_kwarg = self.get_format_suffix(**kwargs)
        accepted = self.perform_content_negotiation(request)
        request.accepted_renderer, request.accepted_media_type = accepted
        app_version.check_app_version(
            request
        )  # The first to touch the body: it is read and parsed here.
        if self.requires_token:
            self.perform_authentication(request)
            if request.auth is None:
                raise NotSignedIn

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        return BoundedRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    # Parsers, renderers and negotiator keep nothing of a request: made once, not for each.

    def get_parsers(self) -> list[BaseParser]:
        return get_shared_instances(tuple(self.parser_classes))

    def get_renderers(self) -> list[BaseRenderer]:
        return get_shared_instances(tuple(self.renderer_classes))

    def get_authenticators(self) -> list[BaseAuthentication]:
        return super().get_authenticators() if self.requires_token else []

    def perform_content_negotiation(
        self,
        request: Request,
        force: bool = False,  # noqa: FBT001, FBT002 (the framework's signature)
    ) -> tuple[BaseRenderer, str]:
        if force:
            # An error before the format was known: in the format asked for, if that can be.
            return negotiation.select_renderer_for_error(request, self.kwargs.get("format"))
        return super().perform_content_negotiation(request)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Write the body here already, so that a value it cannot hold gets the envelope too."""
        try:
            finalized = super().finalize_response(request, response, *args, **kwargs)
            return envelope.render_response(finalized)
        except Exception as error:
            failed = self.handle_exception(error)
            return envelope.render_response(
                super().finalize_response(request, failed, *args, **kwargs)
            )
