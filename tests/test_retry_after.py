"""Every response with status 429 or 503 tells when to try again."""

import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import URLPattern, get_resolver

from roombook.middleware import RetryAfterMiddleware
from tests.contract.schema import ALL_OPERATIONS
from tests.factories_people import AdministratorFactory
from tests.http import post

# What needs no database, and what accepts POST requests only.
STATIC_PAGES = {
    *("/docs", "/openapi.json", "/openapi-3.0.json", "/payments/return"),
}
OTHER_STATUSES = {**dict.fromkeys(STATIC_PAGES, 200), "/webhooks/stripe": 405}


def list_pages(patterns, prefix="/"):
    """Yield the paths of all views that need no argument, without those of the API."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if not isinstance(pattern, URLPattern):
            yield from list_pages(pattern.url_patterns, route)
        elif not any(character in route for character in "<(^"):
            yield route


@pytest.mark.django_db
def test_operations_and_pages_without_database_say_when_to_try_again(client, monkeypatch):
    client.force_login(AdministratorFactory())
    client.raise_request_exception = False
    pages = list(list_pages(get_resolver().url_patterns))
    assert {"/readyz", "/healthz", "/admin/", "/admin/centers/center/"} <= set(pages)

    def fail(*_):
        raise OperationalError("away")

    chosen = HttpResponse(status=429, headers={"Retry-After": "60"})
    assert RetryAfterMiddleware(lambda _: chosen)(RequestFactory().get("/"))["Retry-After"] == "60"
    monkeypatch.setattr(BaseDatabaseWrapper, "_cursor", fail)
    answers = {path: client.get(path) for path in pages}
    password = "Quiet-Harbour-27"
    sign_in = {"EmailAddress": "a@example.com", "Password": password}
    sign_up = {"FirstName": "Ada", "LastName": "Byron", "NewEmailAddress": "b@example.com"}
    reset = {"Code": "12345678", "NewPassword": password, "ConfirmNewPassword": password}
    body = {"Token": "t", **sign_in, **sign_up, **reset, "WebhookId": 1, "AccessKey": "k"}
    for operation in ALL_OPERATIONS:
        for path in (operation.path, f"{operation.path}.csv"):
            answers[path] = post(client, path, body)

    for path, answer in answers.items():
        assert answer.status_code == OTHER_STATUSES.get(path, 503), path
        assert path in OTHER_STATUSES or int(answer["Retry-After"]) > 0, path
