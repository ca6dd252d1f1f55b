"""Measures requests. settings.py installs it only if METRICS_BIND is set."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.db import connections
from django.http import HttpRequest, HttpResponse

from roombook.metrics.counters import (
    DATABASE_SECONDS,
    DATABASE_STATEMENTS,
    ERRORS,
    REQUEST_SECONDS,
)

BACK_OFFICE = "back office"
OTHER = "other"


class MetricsMiddleware:
    """Counts and times each request, its statements and its error."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        start = time.perf_counter()
        statements = StatementTimer()
        with ExitStack() as stack:
            for connection in connections.all():
                stack.enter_context(connection.execute_wrapper(statements))
            response = self.get_response(request)
        operation = get_operation_label(request)
        elapsed = time.perf_counter() - start
        REQUEST_SECONDS.labels(operation, response.status_code).observe(elapsed)
        DATABASE_SECONDS.labels(operation).inc(statements.seconds)
        DATABASE_STATEMENTS.labels(operation).inc(statements.count)
        if code := get_error_code(response):
            ERRORS.labels(operation, code).inc()
        return response


class StatementTimer:
    """A wrapper of `connection.execute_wrapper` that adds up statements and their time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.count = 0

    def __call__(self, execute: Callable[..., object], *arguments: object) -> object:
        start = time.perf_counter()
        try:
            return execute(*arguments)
        finally:
            self.seconds += time.perf_counter() - start
            self.count += 1


def get_operation_label(request: HttpRequest) -> str:
    """Return the name of the URL pattern: their number is bounded, that of paths is not."""
    match = request.resolver_match
    if match is None:
        return OTHER
    return BACK_OFFICE if "admin" in match.app_names else match.url_name or OTHER


def get_error_code(response: Any) -> str | None:
    """Return the code in the API's error envelope, if the response has one."""
    body = getattr(response, "data", None)
    return body["Error"]["Summary"] if isinstance(body, dict) and "Error" in body else None
