"""Records the signed-in user of the back office as the actor of every change (B18)."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from roombook.backoffice import audit_log
from roombook.middleware import get_client_address, is_back_office


class AuditActorMiddleware:
    """Applies only to the back office: operations of the API pass their customer explicitly."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_back_office(request):
            return self.get_response(request)
        user = request.user if request.user.is_authenticated else None
        with audit_log.acting_as(user, network_address=get_client_address(request) or None):
            return self.get_response(request)
