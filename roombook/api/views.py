"""The OpenAPI description, and the page that shows it and sends requests (/docs)."""

import datetime as dt
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import conditional_page, require_safe

from roombook.api.operations import EXAMPLE_DAY, EXAMPLE_TOKEN
from roombook.middleware import ContentSecurityPolicyMiddleware

DOCS = Path(settings.BASE_DIR) / "docs"
# On which the demo centers are closed.
HOLIDAYS = {(1, 1), (7, 4), (12, 25)}
# The icons of Swagger UI are data URLs.
POLICY = ContentSecurityPolicyMiddleware.POLICY.format(images="'self' data:", scripts="", styles="")


@require_safe
@conditional_page
def serve_openapi(request: HttpRequest, name: str) -> HttpResponse:
    """Return this file of docs/. Its examples are bookings that can be made now."""
    day = choose_day(timezone.now().date()).isoformat()
    text = read_file(name).replace(EXAMPLE_DAY, day)
    return HttpResponse(text, content_type="application/json")


@cache
def read_file(name: str) -> str:
    return (DOCS / name).read_text()


def choose_day(today: dt.date) -> dt.date:
    """Return a Monday about a month ahead, or the day after it if that is a holiday."""
    day = today + dt.timedelta(days=35 - today.weekday())
    return day + dt.timedelta(days=(day.month, day.day) in HOLIDAYS)


@require_safe
def show_docs(request: HttpRequest) -> HttpResponse:
    page = render(request, "docs.html", {"placeholder": EXAMPLE_TOKEN})
    page["Content-Security-Policy"] = POLICY
    return page
