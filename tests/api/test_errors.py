"""Every error has one status and one code, and reveals nothing internal."""

import logging

import pytest
from django.core.signals import got_request_exception

from roombook.api.errors import HTTP_STATUSES
from tests.api.urls import ERRORS


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("debug", [False, True])
def test_each_error_has_its_status_and_code(post, settings, name, debug):
    settings.DEBUG = debug
    status, summary, _ = ERRORS[name]
    response = post(f"/api/raises/{name}")

    assert response.status_code == status
    body = response.json()
    assert list(body) == ["Success", "Error"]
    assert body["Error"]["Summary"] == summary
    assert body["Error"]["Message"]
    for secret in ("4242", "secret", "internals", "query 42", "duplicate", "Traceback"):
        assert secret not in response.content.decode()


def test_every_domain_error_code_has_a_status():
    from roombook import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, errors.DomainError)}

    assert codes <= set(HTTP_STATUSES)


def test_invalid_fields_of_domain_errors_have_contract_names_in_order(post):
    assert post("/api/raises/invalid").json()["Error"]["Details"] == (
        "Id: First.\nItems.2.Name: Two.\nItems.10.Name: Ten.\nHasCVV: Last."
    )


def test_model_validation_errors_name_fields_without_values(post):
    assert post("/api/raises/model").json()["Error"]["Details"] == (
        "Id: Not valid.\nFirstName: Not valid."
    )


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("slow-down", "900"), ("throttled", "5"), ("away", "2"), ("database", "2")],
)
def test_retry_after_is_sent_with_errors_that_may_be_retried(post, name, seconds):
    assert post(f"/api/raises/{name}")["Retry-After"] == seconds


@pytest.mark.parametrize("debug", [False, True])
def test_defect_returns_the_request_id_and_is_logged_once_with_traceback(
    post, settings, caplog, debug
):
    settings.DEBUG = debug
    signalled = []
    got_request_exception.connect(lambda **kw: signalled.append(kw["request"].path), weak=False)
    try:
        response = post("/api/raises/crash", HTTP_X_REQUEST_ID="phone-7")
    finally:
        got_request_exception.receivers.pop()

    assert response.json()["Error"] == {
        "Summary": "InternalError",
        "Message": "Something went wrong.",
        "Details": "Request phone-7",
    }
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(logged) == 1
    assert isinstance(logged[0].exc_info[1], ZeroDivisionError)
    assert signalled == ["/api/raises/crash"]


@pytest.mark.parametrize("path", ["/api/raises/database", "/api/page/database", "/page/database"])
def test_unreachable_database_is_503_and_one_warning_without_traceback(post, caplog, path):
    response = post(path)

    assert response.status_code == 503
    assert response["Retry-After"] == "2"
    logged = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [(record.levelname, record.exc_info) for record in logged] == [("WARNING", None)]
    assert logged[0].getMessage() == (
        f"Service Unavailable: {path}: OperationalError: server closed the connection"
    )


def test_warning_of_a_503_names_the_cause_and_not_what_the_database_quotes(post, caplog):
    post("/api/raises/outcome-unknown")

    assert caplog.messages[-2] == (
        "Service Unavailable: /api/raises/outcome-unknown: ServiceUnavailable: Please ask again."
        ": OperationalError: canceling statement"
    )


@pytest.mark.parametrize("query", ["", "?callback=cb", "?format=csv"])
def test_value_that_cannot_be_rendered_is_a_defect(post, query):
    response = post(f"/api/unwritable{query}")

    if query == "?format=csv":
        # CSV is text and can hold it; JSON cannot.
        assert response.status_code == 200
        return
    assert response.status_code == 500
    assert b"InternalError" in response.content


# --- outside the operations ---------------------------------------------------------------------


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("method", ["get", "post", "put", "options"])
@pytest.mark.parametrize("path", ["/api", "/api/", "/api/unknown", "/api/echo/", "/api/echo.xml"])
def test_unknown_path_has_the_envelope(client, settings, debug, method, path):
    settings.DEBUG = debug
    response = getattr(client, method)(path)

    assert response.status_code == 404
    assert response["Cache-Control"] == "no-store"
    assert response.json() == {
        "Success": False,
        "Error": {"Summary": "NotFound", "Message": "There is no such operation."},
    }


def test_unknown_path_is_answered_in_the_requested_format(client):
    for path, accept in (("/api/x.csv", ""), ("/api/x?format=csv", ""), ("/api/x", "text/csv")):
        response = client.post(path, HTTP_ACCEPT=accept)
        assert response.status_code == 404
        assert response.content.startswith(b"Success,Error.Summary,Error.Message\r\nfalse,NotFound")
    assert client.get("/api/x?callback=cb").content.startswith(b"/**/cb(")
    assert client.get("/api/x?callback=1").json()["Success"] is False
    assert client.get("/api/x?format=xml").status_code == 404


def test_unknown_path_needs_no_csrf_token():
    from django.test import Client

    assert Client(enforce_csrf_checks=True).post("/api/unknown").status_code == 404


@pytest.mark.parametrize(
    ("name", "status", "summary"),
    [
        ("suspicious", 400, "InvalidRequest"),
        ("denied", 404, "NotFound"),
        ("http404", 404, "NotFound"),
        ("crash", 500, "InternalError"),
    ],
)
def test_django_errors_below_api_have_the_envelope(client, name, status, summary):
    client.raise_request_exception = False
    response = client.get(f"/api/page/{name}")

    assert response.status_code == status
    assert response.json()["Error"]["Summary"] == summary


@pytest.mark.parametrize(
    ("name", "status"), [("suspicious", 400), ("denied", 403), ("http404", 404), ("crash", 500)]
)
def test_django_errors_elsewhere_are_html_pages(client, name, status):
    client.raise_request_exception = False
    response = client.get(f"/page/{name}")

    assert response.status_code == status
    assert response["Content-Type"].startswith("text/html")


def test_error_pages_have_a_message_and_a_link_back(client):
    client.raise_request_exception = False
    back = '<a href="/admin/">Go to the dashboard</a>'

    for name, message in (
        ("suspicious", "The service does not understand this request"),
        ("denied", "Your role does not allow this"),
        ("crash", "Something went wrong on our side"),
        ("database", "Please try again in a few seconds."),
    ):
        page = client.get(f"/page/{name}").text
        assert message in page, name
        assert back in page, name
    # Only pages of the back office link back to it.
    elsewhere = client.get("/page/http404").text
    assert "This page does not exist" in elsewhere
    assert back not in elsewhere
