"""Addresses that a client can open from anywhere."""

from typing import Any

from django.conf import settings


def build_absolute_url(request: Any, url: str) -> str:
    """The URL with scheme and host: the setting PUBLIC_URL, else the request's checked Host.

    A URL that a storage made absolute already stays as it is.
    """
    if not url or "://" in url:
        return url
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL).rstrip("/") + "/" + url.lstrip("/")
    return str(request.build_absolute_uri(url)) if request is not None else url
