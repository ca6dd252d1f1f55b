"""What happens around every request: its id, its line in the log, its security policy."""

import ipaddress
import logging
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

from auditlog.context import set_actor
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware
from django.urls import get_resolver
from django.utils.deprecation import MiddlewareMixin
from django.utils.encoding import escape_uri_path

from roombook.logging import mask_cards, request_id

GetResponse = Callable[[HttpRequest], HttpResponse]

logger = logging.getLogger("roombook.request")

USABLE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Ids of ours have no digits, which the log might take for a card and mask.
DIGITS_TO_LETTERS = str.maketrans("0123456789", "ghijklmnop")
MAX_LOGGED_PATH_LENGTH = 200


class RequestIdMiddleware:
    """Give every request an id, the client's own if it is usable, and answer with it (B2).

    `roombook.logging.request_id.get()` tells it meanwhile; every line that is logged holds it.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        offered = request.headers.get("X-Request-ID", "")
        chosen = (
            offered
            if is_usable_request_id(offered)
            else uuid.uuid4().hex.translate(DIGITS_TO_LETTERS)
        )
        token = request_id.set(chosen)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-ID"] = chosen
        return response


def is_usable_request_id(offered: str) -> bool:
    """Whether the log can tell this id as it is: it would mask one that looks like a card."""
    return bool(USABLE_REQUEST_ID.fullmatch(offered)) and mask_cards(offered) == offered


class RequestLogMiddleware:
    """Log one line a request: never its body, which holds tokens and cards, nor its query."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        start = time.monotonic()
        response = self.get_response(request)
        fields = {
            "method": request.method,
            "path": get_loggable_path(request.path),
            "status": response.status_code,
            "ms": round((time.monotonic() - start) * 1000, 1),
            "app_version": getattr(request, "app_version", None) or "-",
        }
        logger.info(
            "%(method)s %(path)s %(status)s %(ms)s ms, app %(app_version)s", fields, extra=fields
        )
        return response


def get_loggable_path(path: str) -> str:
    """A path fit for one line of the log: its beginning, and no card.

    Masked before it is escaped, which would hide digits of other scripts, and before it is cut,
    which would leave a part of a card that no mask knows.
    """
    return escape_uri_path(mask_cards(path))[:MAX_LOGGED_PATH_LENGTH]


class AuditActorMiddleware:
    """Put down who is at work in the back office as the author of every change (B18).

    Only there: operations of the API know their customer themselves.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_back_office(request):
            return self.get_response(request)
        who = request.user if request.user.is_authenticated else None
        with set_actor(who, remote_addr=get_client_address(request) or None):
            return self.get_response(request)


class KnownHostMiddleware:
    """Refuse a request that was meant for another host, in words that the caller can read.

    Django would refuse it too, but with DEBUG on by a page that no client of the API understands.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            request.get_host()
        except DisallowedHost as error:
            refuse: Any = get_resolver().resolve_error_handler(400)
            return refuse(request, error)
        return self.get_response(request)


class ContentSecurityPolicyMiddleware:
    """Let pages load scripts, styles and pictures from here only, and nobody frame them.

    The theme of the back office evaluates expressions in its pages' attributes and writes styles
    into them: its pages, and no others, may do that. No page may hold a script.
    """

    POLICY = (
        "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; font-src 'self';"
        " connect-src 'self'; img-src {images}; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    )

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        media = re.match(r"https?://[^/]+", settings.MEDIA_URL)
        images = f"'self' {media.group()}" if media else "'self'"
        self.policy = self.POLICY.format(images=images, scripts="", styles="")
        self.office_policy = self.POLICY.format(
            images=f"{images} data:", scripts=" 'unsafe-eval'", styles=" 'unsafe-inline'"
        )

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # Django's own error pages for developers have their styles inside.
        if not (settings.DEBUG and response.status_code in {404, 500}):
            policy = self.office_policy if is_back_office(request) else self.policy
            response.setdefault("Content-Security-Policy", policy)
        return response


def is_api(request: HttpRequest) -> bool:
    return request.path_info == "/api" or request.path_info.startswith("/api/")


def is_back_office(request: HttpRequest) -> bool:
    return request.path_info.startswith("/admin/")


def skip_for_api(middleware: type[MiddlewareMixin]) -> type[MiddlewareMixin]:
    """A middleware of Django's that the API passes by: it knows no cookie, form or other slash.

    Still a subclass of the one that the admin asks for.
    """

    def call(self: Any, request: HttpRequest) -> Any:
        if is_api(request):
            return self.get_response(request)
        return middleware.__call__(self, request)

    return type(middleware.__name__, (middleware,), {"__call__": call, "__module__": __name__})


PageSessionMiddleware = skip_for_api(SessionMiddleware)
PageCommonMiddleware = skip_for_api(CommonMiddleware)
PageAuthenticationMiddleware = skip_for_api(AuthenticationMiddleware)
PageMessageMiddleware = skip_for_api(MessageMiddleware)


def get_client_address(request: HttpRequest) -> str:
    """The network address of the caller, seen through as many proxies as are ours.

    Each proxy appends the address that it was called from; what stands before those was written
    by the caller and proves nothing.
    """
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
    hops = [*filter(None, hops), request.META.get("REMOTE_ADDR", "")]
    address = hops[max(0, len(hops) - 1 - settings.TRUSTED_PROXIES)]
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return str(request.META.get("REMOTE_ADDR", ""))
