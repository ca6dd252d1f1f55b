"""What happens around every request: its id, its log line, its security headers."""

import ipaddress
import logging
import re
import secrets
import time
from collections.abc import Callable
from functools import wraps
from string import ascii_lowercase

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers
from django.utils.encoding import escape_uri_path

from roombook.card_numbers import mask_cards
from roombook.errors import TooManyRequests
from roombook.logging import request_id
from roombook.secret_paths import mask_path

GetResponse = Callable[[HttpRequest], HttpResponse]

logger = logging.getLogger("roombook.request")

USABLE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_LENGTH = 16
MAX_LOGGED_PATH_LENGTH = 200
COMPRESSIBLE_TYPE = re.compile(r"text/|application/([\w.-]+\+)?(json|javascript)\b|image/svg\+xml")
# Django's own check overlooks that `q=0` forbids gzip.
ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|\Z))")


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
            # Letters only: the log masks digits that could be a card number.
            letters = (secrets.choice(ascii_lowercase) for _ in range(REQUEST_ID_LENGTH))
            chosen = "".join(letters)
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
    return escape_uri_path(mask_cards(mask_path(path)))[:MAX_LOGGED_PATH_LENGTH]


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


class RetryAfterMiddleware:
    """Tells when to try again in every response with status 429 or 503 whose view does not."""

    SECONDS = "2"

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code in {429, 503}:
            response.setdefault("Retry-After", self.SECONDS)
        return response


class CompressionMiddleware(GZipMiddleware):
    """Compresses responses of more than 1 KB if the client accepts gzip (B2.7).

    A response whose `is_secret` is true is never compressed: who can make a client repeat a request
    could guess the secret from the length. Django adds random bytes to all others, against
    guesses at what is merely private.
    """

    MIN_BYTES = 1024

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        # Most responses are short: they pass without any other work.
        if isinstance(response, HttpResponse) and len(response.content) <= self.MIN_BYTES:
            return response
        content_type = response.headers.get("Content-Type", "")
        if getattr(response, "is_secret", False) or not COMPRESSIBLE_TYPE.match(content_type):
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        if not ACCEPTS_GZIP.search(request.META.get("HTTP_ACCEPT_ENCODING", "")):
            return response
        return super().process_response(request, response)


def mark_secret(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorates a view whose responses contain a secret: they are never compressed."""

    @wraps(view)
    def wrapper(*args: object, **kwargs: object) -> HttpResponseBase:
        response = view(*args, **kwargs)
        response.is_secret = True  # type: ignore[attr-defined]
        return response

    return wrapper


def secret_page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorates a page at a secret path: no cache stores it, and no other site learns the path.

    A view that sets Cache-Control itself keeps it. TooManyRequests is answered in plain text.
    """

    @wraps(view)
    def wrapper(*args: object, **kwargs: object) -> HttpResponseBase:
        try:
            response = view(*args, **kwargs)
        except TooManyRequests as error:
            response = HttpResponse(error.message, "text/plain", status=429)
            response["Retry-After"] = str(error.retry_after)
        response.headers.setdefault("Cache-Control", "no-store")
        response["Referrer-Policy"] = "no-referrer"
        return response

    return wrapper


def is_api(request: HttpRequest) -> bool:
    return request.path_info == "/api" or request.path_info.startswith("/api/")


def is_back_office(request: HttpRequest) -> bool:
    return request.path_info.startswith("/admin/")


def get_base_url(request: HttpRequest | None) -> str:
    """The setting PUBLIC_URL, else the request's checked Host, without a slash at the end."""
    if settings.PUBLIC_URL or request is None:
        return str(settings.PUBLIC_URL).rstrip("/")
    return request.build_absolute_uri("/").rstrip("/")


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
