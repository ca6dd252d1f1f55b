"""Every error has one status and one code, and reveals nothing internal."""

import logging

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.exceptions import ValidationError as ModelValidationError
from django.core.signals import got_request_exception
from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from django.test import Client
from rest_framework.exceptions import APIException, Throttled
from rest_framework.exceptions import PermissionDenied as NotPermitted
from rest_framework.exceptions import ValidationError as FieldError

from accounts.views import SignIn
from reservations.views.bookings import CreateReservation
from roombook import errors, urls
from roombook.api.errors import HTTP_STATUSES, get_error_answer

SIGN_IN = "/api/sign-in"
VALID = {"EmailAddress": "ada@example.com", "Password": "x"}
AWAY = OperationalError("server closed the connection")


@pytest.fixture
def raises(post, monkeypatch):
    """Post a valid request to an operation that raises an error."""

    def send(error, **extra):
        def perform(*args, **fields):
            raise error

        monkeypatch.setattr(SignIn, "perform", perform)
        return post(SIGN_IN, VALID, **extra)

    return send


@pytest.mark.parametrize(
    ("error", "status", "summary", "retry_after"),
    [
        (errors.CardDeclined(details=("decline code 51",)), 402, "CardDeclined", None),
        (Http404("Center matching query 42"), 404, "NotFound", None),
        (PermissionDenied(), 404, "NotFound", None),
        (NotPermitted(), 404, "NotFound", None),
        (errors.SlotUnavailable("The room is closed then."), 409, "SlotUnavailable", None),
        (errors.TooManyRequests(retry_after=900), 429, "TooManyRequests", "900"),
        (Throttled(wait=5), 429, "TooManyRequests", "5"),
        (AWAY, 503, "ServiceUnavailable", "2"),
        (InterfaceError("connection already closed"), 503, "ServiceUnavailable", "2"),
        (SuspiciousOperation("odd"), 400, "InvalidRequest", None),
        (UnreadablePostError("gone"), 400, "InvalidRequest", None),
        (ModelValidationError("“4242424242424242” is wrong"), 400, "InvalidRequest", None),
        (IntegrityError("duplicate key"), 500, "InternalError", None),
        (errors.DomainError("internals"), 500, "InternalError", None),
        (APIException(), 500, "InternalError", None),
    ],
)
def test_each_error_has_its_status_and_code(raises, error, status, summary, retry_after):
    response = raises(error)

    assert (response.status_code, response.get("Retry-After")) == (status, retry_after)
    body = response.json()
    assert list(body) == ["Success", "Error"]
    assert body["Error"]["Summary"] == summary
    assert body["Error"]["Message"]
    for secret in ("4242", "internals", "query 42", "duplicate", "Traceback"):
        assert secret not in response.content.decode()


def test_every_domain_error_code_has_a_status():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, errors.DomainError)}

    assert codes <= set(HTTP_STATUSES)


@pytest.mark.parametrize("debug", [False, True])
def test_defect_returns_the_request_id_and_is_logged_once_with_traceback(
    raises, settings, caplog, debug
):
    settings.DEBUG = debug
    signalled = []
    got_request_exception.connect(lambda **kw: signalled.append(kw["request"].path), weak=False)
    try:
        response = raises(ZeroDivisionError("secret"), HTTP_X_REQUEST_ID="phone-7")
    finally:
        got_request_exception.receivers.pop()

    assert response.json()["Error"] == {
        "Summary": "InternalError",
        "Message": "Something went wrong.",
        "Details": "Request phone-7",
    }
    [logged] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert isinstance(logged.exc_info[1], ZeroDivisionError)
    assert signalled == [SIGN_IN]


def test_value_that_cannot_be_rendered_is_a_defect(post, monkeypatch):
    monkeypatch.setattr(SignIn.Output, "render", lambda *_: {"Number": float("nan")})
    monkeypatch.setattr(SignIn, "perform", lambda *_, **__: None)
    response = post(SIGN_IN, VALID)

    assert response.status_code == 500
    assert b"InternalError" in response.content


def test_warning_of_a_503_names_the_cause_and_not_what_the_database_quotes(raises, caplog):
    error = errors.ServiceUnavailable("Please ask again.")
    error.__cause__ = OperationalError("canceling statement\nDETAIL: Key (email)=(ada@example.com)")
    raises(error)
    raises(AWAY)

    logged = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.exc_info for record in logged] == [None, None]
    assert [record.getMessage() for record in logged] == [
        "Service Unavailable: /api/sign-in: ServiceUnavailable: Please ask again."
        ": OperationalError: canceling statement",
        "Service Unavailable: /api/sign-in: OperationalError: server closed the connection",
    ]


# --- Details --------------------------------------------------------------------------------------


def describe(error):
    return list(get_error_answer(error, CreateReservation.Input.field_tree()).details)


def test_invalid_fields_are_named_one_per_line_in_the_contracts_order():
    options = [{"ServiceId": 1}] * 11
    options[2] = {"ServiceId": "1"}
    options[10] = {"ServiceId": 1, "Quantity": "x", "DurationHours": []}
    body = {"Attendees": {}, "ServiceOptions": options, "EndDate": "2027-03-03T09:00"}
    with pytest.raises(FieldError) as caught:
        CreateReservation.Input.deserialize({**body, "StartDate": None, "MeetingRoomId": "7"})

    assert describe(caught.value) == [
        "MeetingRoomId: Must be a whole number.",
        "StartDate: Required.",
        "ServiceOptions.2.ServiceId: Must be a whole number.",
        "ServiceOptions.10.DurationHours: Must be a number.",
        "ServiceOptions.10.Quantity: Must be a whole number.",
        "Attendees: Must be a list.",
    ]


def test_invalid_fields_of_the_domain_and_of_models_have_contract_names_in_order():
    names = {
        "attendees": "Last.",
        "service_options.10.quantity": "Ten.",
        "service_options.2.service_id": "Two.",
        "meeting_room_id": "First.",
    }
    assert describe(errors.InvalidRequest(names)) == [
        "MeetingRoomId: First.",
        "ServiceOptions.2.ServiceId: Two.",
        "ServiceOptions.10.Quantity: Ten.",
        "Attendees: Last.",
    ]
    # Django's own messages may repeat the value.
    error = ModelValidationError({"start_date": "“4242” is wrong", "meeting_room_id": "No."})
    assert describe(error) == ["MeetingRoomId: Not valid.", "StartDate: Not valid."]


# --- Outside the operations -----------------------------------------------------------------------


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("method", ["get", "post", "options"])
def test_unknown_path_has_the_envelope(settings, debug, method):
    settings.DEBUG = debug
    for path in ("/api", "/api/", "/api/unknown", "/api/sign-in/", "/api/sign-in.xml"):
        response = getattr(Client(enforce_csrf_checks=True), method)(path)

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


BACK = '<a href="/admin/">Go to the dashboard</a>'


@pytest.mark.parametrize(
    ("error", "status", "api_status", "summary", "message"),
    [
        (SuspiciousOperation(), 400, 400, "InvalidRequest", "does not understand this request"),
        (PermissionDenied(), 403, 404, "NotFound", "Your role does not allow this"),
        (ZeroDivisionError(), 500, 500, "InternalError", "Something went wrong on our side"),
        (AWAY, 503, 503, "ServiceUnavailable", "Please try again in a few seconds."),
        # Only pages of the back office link back to it.
        (Http404(), 404, 404, "NotFound", "This page does not exist"),
    ],
    ids=["suspicious", "denied", "crash", "database", "http404"],
)
def test_errors_of_django_have_the_envelope_below_api_and_are_pages_elsewhere(
    client, monkeypatch, error, status, api_status, summary, message
):
    def view(request, **_):
        raise error

    for each in urls.urlpatterns:
        if getattr(each, "name", None) in {"api/sign-in", "docs"}:
            monkeypatch.setattr(each, "callback", view)
    client.raise_request_exception = False

    response, page = client.post(SIGN_IN), client.get("/docs")

    assert response.status_code == api_status
    assert response.json()["Error"]["Summary"] == summary
    assert (page.status_code, page["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert message in page.text
    assert (BACK in page.text) is (status != 404)
