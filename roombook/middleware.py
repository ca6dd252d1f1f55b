"""What happens around every request: its id, its log line, its security headers."""

import ipaddress
import logging
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver, resolve
from django.utils.encoding import escape_uri_path

from roombook.card_numbers import mask_cards
from roombook.logging import request_id

GetResponse = Callable[[HttpRequest], HttpResponse]

logger = logging.getLogger("roombook.request")

USABLE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Our own ids have no digits: the log might mask them as card numbers.
DIGITS_TO_LETTERS = str.maketrans("0123456789", "ghijklmnop")
MAX_LOGGED_PATH_LENGTH = 200
SECRET = re.compile(
    f"({'|'.join(map(re.escape, settings.SECRET_PATHS))}).+", re.DOTALL | re.IGNORECASE
)


class RequestIdMiddleware:
    """Gives every request an id, the client's own if it is usable, and returns it (B2).

    `roombook.logging.request_id.get()` returns the id while the request is processed.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        submitted = request.META.get("HTTP_X_REQUEST_ID", "")
        if is_usable_request_id(submitted):
            chosen = submitted
        else:
            chosen = uuid.uuid4().hex.translate(DIGITS_TO_LETTERS)
        token = request_id.set(chosen)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-ID"] = chosen
        return response


def is_usable_request_id(submitted: str) -> bool:
    """Whether the log can show the id as it is: an id that looks like a card would be masked."""
    return bool(USABLE_REQUEST_ID.fullmatch(submitted)) and mask_cards(submitted) == submitted


class RequestLogMiddleware:
    """Logs one line per request, without its body and query, which hold tokens and cards."""

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
    """The beginning of the path, escaped for one log line, with secrets and card numbers masked.

    Masking comes first: escaping would hide digits of other scripts, and cutting could leave a
    part of a card number that the mask does not recognize.
    """
    return escape_uri_path(mask_cards(SECRET.sub(r"\1...", path)))[:MAX_LOGGED_PATH_LENGTH]


class KnownHostMiddleware:
    """Answers requests for unknown hosts with the API's error envelope.

    Django refuses them too, but with DEBUG on it answers with an HTML page.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            request.get_host()
        except DisallowedHost as error:
            handler400: Any = get_resolver().resolve_error_handler(400)
            return handler400(request, error)
        return self.get_response(request)


class ContentSecurityPolicyMiddleware:
    """Allows pages to load resources from this host only, and nobody to frame them.

    The theme of the back office evaluates expressions in attributes and writes inline styles, so
    its pages may do that. No page may contain an inline script.
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
        self.back_office_policy = self.POLICY.format(
            images=f"{images} data:", scripts=" 'unsafe-eval'", styles=" 'unsafe-inline'"
        )

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # Django's error pages for developers contain inline styles.
        if not (settings.DEBUG and response.status_code in {404, 500}):
            policy = self.back_office_policy if is_back_office(request) else self.policy
            response.setdefault("Content-Security-Policy", policy)
        return response


def is_api(request: HttpRequest) -> bool:
    return request.path_info == "/api" or request.path_info.startswith("/api/")


def is_back_office(request: HttpRequest) -> bool:
    return request.path_info.startswith("/admin/")


class ApiMiddleware:
    """Calls the views of the API itself, so that its requests skip the middleware after this one.

    That is for pages: the API has no cookies, no forms and no redirects to another slash. Its
    views render their responses, and Django answers what they raise as it does everywhere.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_api(request):
            return self.get_response(request)
        request.resolver_match = match = resolve(request.path_info)
        response: HttpResponse = match.func(request, *match.args, **match.kwargs)
        return response


def get_client_address(request: HttpRequest) -> str:
    """The IP address of the client, seen through TRUSTED_PROXIES proxies.

    Each proxy appends the address that called it. Addresses before those were written by the
    client and prove nothing.
    """
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
    hops = [*filter(None, hops), request.META.get("REMOTE_ADDR", "")]
    address = hops[max(0, len(hops) - 1 - settings.TRUSTED_PROXIES)]
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return str(request.META.get("REMOTE_ADDR", ""))
