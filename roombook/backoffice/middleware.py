"""Sets the context of a request of the back office."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from roombook.backoffice import audit_log
from roombook.middleware import get_client_address, is_back_office


class AuditActorMiddleware:
    """Records the signed-in user as the actor of every change (B18).

    It does so only in the back office: operations of the API pass their customer explicitly. A time
    zone that a page activates ends with the request.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_back_office(request):
            return self.get_response(request)
        actor = request.user if request.user.is_authenticated else None
        address = get_client_address(request) or None
        with timezone.override(None), audit_log.recording(actor=actor, network_address=address):
            return self.get_response(request)
